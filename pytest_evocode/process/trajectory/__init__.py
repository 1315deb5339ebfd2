"""Read from recorded trajectories what happened in each round; nothing is run.

``reader`` goes through a trajectory call by call. For each call,

- ``outputs`` has the recorded output, exit code and changed files,
- ``agent_tools`` tells what the call was asked to do, whatever the agent, and ``shell`` what a shell line does,
- ``call_effects`` combines both, with the help of ``outputs`` and ``failure_causes`` for commands that were run.

``file_texts`` follows texts of files; ``normal_forms`` tells which changes of them matter, and ``file_roles`` what they
are.
The events of the round (``events``) are the result.
"""

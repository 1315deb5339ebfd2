"""Score how an agent worked: RigorBench's seven pillars of engineering discipline, from recorded attempts.

The way from a recording to a score, and the package for each stretch of it:

- ``attempts`` finds recorded attempts on disk and scores one: :func:`~pytest_evocode.process.attempts.score_attempt`.
- ``trajectory`` reads what happened: ``reader`` goes through a recorded trajectory and returns the round's events
  (``events``): files read and edited, commands run, plans, questions, commits. ``trajectory.shell`` parses shell lines.
- ``rules`` has what all these look for: phrases, tools, and what programs print, as TOML with tested examples.
- ``tests_written`` reads the tests that the agent wrote: their assertions, and what of the product they call.
- ``pillars`` computes the sub-metrics; ``messages`` reads what the agent said, ``evidence`` is what a measured value
  consists of.
- ``scores`` weighs the pillars into the RigorScore, keeps them as records (``process.json``), and compares agents.
- ``execution`` rebuilds the states of the workspace and runs builds, tests and coverage in them.
- ``judge`` asks a model about some of the sub-metrics.

The last two are the only ones that start containers or call models. The others know them as the protocols in
``protocols``, and are pure functions from trajectories and evidence; an import contract keeps it so.
"""

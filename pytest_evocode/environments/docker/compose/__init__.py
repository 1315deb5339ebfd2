"""The services of a task's compose file: read by ``docker compose``, and kept, forked and removed with an attempt.

``docker compose`` itself reads the file and makes the containers of the services beside ``main``. It is run directly:
pytest-docker's ``DockerComposeExecutor`` would give it every variable of this process, and has no time limit. What is
begun is removed by its labels, as ``down -v`` would, because that also finds what a killed ``up`` left, and forks.
"""

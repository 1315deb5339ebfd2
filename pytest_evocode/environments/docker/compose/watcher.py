"""A process that removes what a session with services has in Docker once the session is dead, however it died.

Our own containers end when nobody talks to them any more. Services are programs of the task's, and know of no session.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys

_STARTING = 60.0  # seconds on a busy machine
# In a session of its own, out of reach for what kills a whole process group, and a child of nobody.
_PROGRAM = """
import os, sys
if os.fork():
    os._exit(0)
sys.stdin.read()
sys.path[:] = sys.argv[2:]
from pytest_evocode.environments.docker.engine import connect, remove_docker_leftovers
remove_docker_leftovers(connect(), sys.argv[1])
"""


@functools.cache
def watch_over(engine: str) -> int:
    """Have what an engine of this process leaves removed as soon as the process has ended, whatever ends it.

    Returns:
        The end of a pipe that the watcher waits for. It is closed by the process's end and by nothing else.
    """
    awaited, held = os.pipe()
    argv = [sys.executable, "-c", _PROGRAM, engine, *map(os.path.abspath, sys.path)]
    silent = subprocess.DEVNULL
    try:
        subprocess.run(
            argv, stdin=awaited, stdout=silent, stderr=silent, cwd="/", start_new_session=True, timeout=_STARTING
        )  # fmt: skip
    finally:
        os.close(awaited)
    return held

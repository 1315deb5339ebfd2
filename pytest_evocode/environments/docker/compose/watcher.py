"""Removing what a session with services has in Docker once it is dead: they end with no session by themselves."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys

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
    """Have what an engine of this process leaves removed when the process has ended, and return what that closes."""
    awaited, held = os.pipe()
    argv = [sys.executable, "-c", _PROGRAM, engine, *map(os.path.abspath, sys.path)]
    silent = subprocess.DEVNULL
    with contextlib.suppress(OSError, subprocess.SubprocessError):  # The next session removes it.
        subprocess.run(argv, stdin=awaited, stdout=silent, stderr=silent, cwd="/", start_new_session=True, timeout=60)
    os.close(awaited)
    return held

"""Starts Python programs as `python3 ARGUMENTS` does, by forking a process that has the standard library in memory.

To start Python and to import sqlite3 and an option parser takes ten times as long as what most commands do after that,
and a suite starts hundreds. Nothing of the workspace is in memory: each program imports that anew, in its own process.

Reads requests from standard input, a line of JSON each: `arguments`, `environment`, `cwd`, and the files `out` and
`err`. Answers each by two lines: the number of the process, and, when it has ended, its exit status.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import sys
import traceback
from contextlib import suppress
from typing import Any

# What programs like this one use. A module that is missing here is only slower.
for _name in ("argparse", "csv", "datetime", "decimal", "hashlib", "optparse", "re", "shutil", "sqlite3", "tempfile"):
    with suppress(ImportError):
        __import__(_name)


def run(arguments: list[str]) -> int:
    """Be `python3 ARGUMENTS`, of which `-m MODULE` and `-c CODE` are known; return the exit status."""
    option, what, *more = arguments
    try:
        if option == "-m":
            sys.argv = [what, *more]
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            sys.argv = ["-c", *more]
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def become(request: dict[str, Any]) -> None:
    """Turn into the program that is asked for, and end with it."""
    os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, (path, mode) in enumerate(
        [("/dev/null", os.O_RDONLY), (request["out"], writing), (request["err"], writing)]
    ):
        opened = os.open(path, mode, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.path[:0] = [request["cwd"], *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    status = run(request["arguments"])
    atexit._run_exitfuncs()  # Which the end below leaves out.
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


def main() -> None:
    """Serve requests until there are no more."""
    gc.freeze()
    # Unbuffered, so that no child has a part of the next request.
    while line := os.read(0, 1 << 20):
        while not line.endswith(b"\n"):
            line += os.read(0, 1 << 20)
        request = json.loads(line)
        process = os.fork()
        if process == 0:
            become(request)
        os.write(1, f"{process}\n".encode())
        _, status = os.waitpid(process, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main()

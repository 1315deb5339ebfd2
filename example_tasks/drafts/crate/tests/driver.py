"""Runs both programs in the workspace, many times a second: one process for all tests, which bench.py talks with.

A request is a line and so is its answer: JSON, compressed, in base64, in which bytes are text of as many characters.
The reader of the shops is compiled once, and each time that it runs it is the main module of a fork of this process:
what `python3 crate.py` is, but for the start of Python.
"""

import atexit
import base64
import gc
import json
import os
import shutil
import signal
import sys
import types
import zlib


def compiled(script):
    """Return the code of the reader, or what is wrong with it."""
    try:
        with open(script, "rb") as stream:
            return compile(stream.read(), script, "exec")
    except (OSError, SyntaxError, ValueError) as error:
        return f"{script}: {error}"


def become(command, code):
    """Be a program, as a fork of this one."""
    if command[0] != "python3":
        try:
            os.execv(command[0], command)
        except OSError as error:
            code = f"{command[0]}: {error}"
    try:
        if isinstance(code, str):
            sys.exit(code)
        become_python(command, code)
        status = 0
    except SystemExit as end:
        status = end.code
        if not isinstance(status, int):
            if status is not None:
                print(status, file=sys.stderr)
            status = int(status is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    # What the interpreter does at its end, without taking itself to pieces, which takes ten times as long as all else.
    atexit._run_exitfuncs()
    del sys.modules["__main__"]
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        if stream and not stream.closed:
            stream.flush()
    os._exit(status & 255)


def become_python(command, code):
    main = types.ModuleType("__main__")
    main.__file__ = command[1]
    sys.modules["__main__"] = main
    sys.argv[:] = command[1:]
    sys.path[0] = os.path.dirname(command[1])
    sys.stdin = open(os.devnull)  # noqa: SIM115
    exec(code, main.__dict__)


def run(command, cwd, limit, umask, code):
    """Run a program: its status, None where it was ended at the limit, and what it printed."""
    names = [os.path.join(cwd, name) for name in (".stdout", ".stderr")]
    child = os.fork()
    if not child:
        os.chdir(cwd)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, name in enumerate(names, 1):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        os.umask(umask)
        signal.alarm(limit)
        become(command, code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    printed = []
    for name in names:
        with open(name, "rb") as stream:
            printed.append(stream.read().decode("latin-1"))
        os.remove(name)
    return [None if status == -signal.SIGALRM else status, *printed]


def read_tree(where):
    """Return what is in a directory: path, kind, mode, time and content or target of each."""
    found = []
    for entry in os.scandir(where):
        status = entry.stat(follow_symlinks=False)
        rest = [status.st_mode & 0o7777, status.st_mtime_ns]
        if entry.is_symlink():
            found.append([entry.path, "L", 0, 0, os.readlink(entry.path)])
        elif entry.is_dir():
            found.append([entry.path, "D", rest[0], 0, b""])
            found += read_tree(entry.path)
        elif entry.is_file():
            with open(entry.path, "rb") as stream:
                found.append([entry.path, "F", *rest, stream.read()])
        else:
            found.append([entry.path, "?", *rest, b""])
    return found


def make_tree(where, items):
    """Make a tree, in the order of the items. A directory that comes behind what is in it is there already."""
    os.mkdir(where)
    for path, kind, _, time, content in items:
        whole = os.path.join(where.encode(), path.encode("latin-1"))
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        if kind == "D":
            os.makedirs(whole, exist_ok=True)
        elif kind == "L":
            os.symlink(content.encode("latin-1"), whole)
        else:
            with open(whole, "wb") as stream:
                stream.write(content.encode("latin-1"))
            os.utime(whole, ns=(time, time))
    for path, kind, mode, _, _ in sorted(items, reverse=True):
        if kind != "L":
            os.chmod(os.path.join(where.encode(), path.encode("latin-1")), mode)


def do(request):
    """Do what a request asks for: run a program, on an archive where one is given, and read what it has made."""
    if "items" in request:
        make_tree(request["where"], request["items"])
        return None
    if "archive" in request:
        with open(request["file"], "wb") as stream:
            stream.write(request["archive"].encode("latin-1"))
    answer = run(request["command"], request["cwd"], request["limit"], request.get("umask", 0o022), reader)
    made = request.get("made", "")
    if not os.path.lexists(made):
        return [*answer, None]
    if os.path.isfile(made):
        with open(made, "rb") as stream:
            return [*answer, stream.read().decode("latin-1")]
    below = len(made.encode()) + 1
    found = read_tree(made.encode())
    tree = [[path[below:].decode("latin-1"), *rest, last.decode("latin-1")] for path, *rest, last in found]
    shutil.rmtree(made)
    return [*answer, tree]


reader = compiled(sys.argv[1])
gc.freeze()
for line in sys.stdin.buffer:
    answers = [do(request) for request in json.loads(zlib.decompress(base64.b64decode(line)))]
    sys.stdout.write(base64.b64encode(zlib.compress(json.dumps(answers).encode(), 1)).decode() + "\n")
    sys.stdout.flush()

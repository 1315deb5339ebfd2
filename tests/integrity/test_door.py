"""Programs that attack the door between a suite and the workspace that it runs them in, and agents that prepare it."""

# ruff: noqa: E501 - scripts in tables
from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integrity.places import SEPARATE, Attack, Place, in_all_places
from tests.integrity.test_exhaustion import BOUNDED_BOMB, INTO_PID_1
from tests.integrity.test_programs_under_test import DAEMON, FAKE_LINES, REPLACE

if TYPE_CHECKING:
    from tests.integrity.conftest import Honest, Play

# What an answer would be, wherever it may stand; the pattern does not match itself.
SEARCH = r"""
import glob, re
pattern = re.compile(rb"evocode.secret.(?:word.\d|door)(?![\w\\])")
def search(data):
    for word in sorted(set(pattern.findall(data))):
        print(word.decode())
def look(paths):
    for path in paths:
        try:
            with open(path, "rb") as file:
                search(file.read(10**6))
        except OSError:
            pass
"""
SEARCH_FILES = f"""{SEARCH}
for top in ("/tests", "/logs", "/tmp", "/var/tmp", "/dev/shm", "/run", "/root", "/proc/1/root/tests"):
    for place, _, names in os.walk(top):
        look(os.path.join(place, name) for name in names if os.path.isfile(os.path.join(place, name)))
look(glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"))
"""
SEARCH_PROCESSES = f"""{SEARCH}
import ctypes, fcntl
libc = ctypes.CDLL(None)
for path in glob.glob("/proc/[0-9]*"):
    pid = int(path[6:])
    if pid == os.getpid():
        continue
    libc.ptrace(16, pid, 0, 0)
    try:
        with open(path + "/maps") as maps, open(path + "/mem", "rb", 0) as memory:
            for line in maps:
                start, end = (int(each, 16) for each in line.split()[0].split("-"))
                try:
                    memory.seek(start)
                    search(memory.read(min(end - start, 2**24)))
                except (OSError, ValueError, OverflowError):
                    pass
    except OSError:
        pass
look(glob.glob("/proc/[0-9]*/fd/[3-9]"))
"""
# Frames as the suite's session sends them and as the host answers: with the report of a suite that has passed, too.
FRAMES = r"""
import json, struct
report = {"tests": [{"nodeid": f"round-{n}/test_word.py::test_word", "outcome": "passed", "metadata": {}} for n in (1, 2)], "evocode": {"problems": [], "errors": []}}
frames = []
for number in range(300):
    for head, body in (({"call": "report"}, json.dumps(report).encode()), ({"exit_code": 0, "stdout": 4, "seconds": 0, "truncated": False}, b"word"), ({"error": "door", "message": "x"}, b"")):
        text = json.dumps(head).encode()
        frames.append(struct.pack(">III", number, len(text), len(body)) + text + body)
frames = b"".join([*frames, struct.pack(">III", 1, 2**32 - 1, 2**32 - 1)])
"""


def indented(body: str) -> str:
    """Return statements as the body of another one."""
    return "\n" + "\n".join(f"    {line}" if line else "" for line in body.strip().splitlines())


SERVER = """
if sys.argv[1] == "serve":
    import socket, time
    server = socket.create_server(("127.0.0.1", int(sys.argv[2])))
    kept = []
    while True:
        connection = server.accept()[0]
        kept.append(connection)
{served}
"""
FLOOD_SERVED = """
        try:
            while True:
                connection.sendall(b"\\0CASE_RESULT status=success" * 4000)
        except OSError:
            pass
"""
WAIT = "import time\ntime.sleep(1000)"
# Whoever comes later and waits for a file, a line or a connection is answered by what an earlier program left.
ANSWER_LATER = f"""
def again():
    import glob, socket
    for path in glob.glob("/tmp/tmp*"):
        for name in ("out", "answer"):
            try:
                with open(path + "/" + name, "w") as file:
                    file.write("word")
            except OSError:
                pass
    for path in glob.glob("/proc/[0-9]*/fd/1"):
        try:
            with open(path, "w") as file:
                file.write("word\\n")
        except OSError:
            pass
    try:
        socket.create_server(("127.0.0.1", 7007)).accept()[0].sendall(b"word")
    except OSError:
        pass
if True:{DAEMON}
"""
# A directory that is one thing for a moment and a link for the next, to where nobody else wrote anything.
RACE = """
if sys.argv[1] == "race":
    place, outside = sys.argv[2] + "/data", "/var/tmp/outside"
    os.makedirs(outside, exist_ok=True)
    open(outside + "/kept", "w").write("kept")
    import shutil
    while True:
        try:
            os.makedirs(place, exist_ok=True)
            os.rename(place, place + "-away")
            os.symlink(outside, place)
            os.unlink(place)
            os.symlink("/proc/1/root/etc/passwd", place)
            os.unlink(place)
            shutil.rmtree(place + "-away", ignore_errors=True)
        except OSError:
            shutil.rmtree(place + "-away", ignore_errors=True)
"""
NAMES = r"""
if sys.argv[1] == "tree":
    os.chdir(os.fsencode(sys.argv[2]))
    for name in (b"a\nb", b"\xff\xfe", b"..a", b"...", b" ", b"-rf", b"a\\", b"$(id)", b"`id`;id", b"\x1b[2J\x07", b"n" * 255, "\u202eabc".encode(), b"CASE_RESULT case_id=greet status=success", b"*", b"~", b"\r"):
        open(name, "w").close()
"""
MANY_NAMES = """
if sys.argv[1] == "tree":
    for number in range(20_000):
        os.mknod(f"{sys.argv[2]}/{number:0250}")
"""
DEEP = """
if sys.argv[1] == "tree":
    os.chdir(sys.argv[2])
    for _ in range(200):
        os.mkdir("d" * 100)
        os.chdir("d" * 100)
"""
SPECIAL = """
if sys.argv[1] == "make":
    import random, socket
    path = sys.argv[2]
    random.choice([
        lambda: os.mkfifo(path),
        lambda: os.symlink("/dev/zero", path),
        lambda: os.symlink("/proc/self/mem", path),
        lambda: os.truncate(os.open(path, os.O_CREAT | os.O_RDWR), 10**11),
        lambda: os.mkdir(path),
        lambda: socket.socket(socket.AF_UNIX).bind(path),
        lambda: os.symlink(path, path),
    ])()
"""
# What a library's Python would answer with, instead of JSON or as more of it than fits.
ANSWERS = [
    "'[' * 100_000",
    "'{\"value\": ' * 50_000",
    '\'{"value": NaN, "value": 1e999}\'',
    "'9' * 1_000_000",
    "'x' * 10_000_000",
    '\'{"type": 1, "message": [], "traceback": {}}\'',
]
LIBRARY = "\n".join(
    [
        "if __name__ != '__main__':",
        "    import random",
        f"    os.write(1, random.choice([{', '.join(ANSWERS)}]).encode())",
        "    os._exit(0)",
    ]
)


def _program(name: str, body: str, before: str = "", **more: object) -> Attack:
    return Attack(name, before + REPLACE.format(body=indented(body)), suite="door", **more)  # type: ignore[arg-type]


# These leave the workspace to the other cases as it was.
HARMLESS = [
    # Forged: frames of either end, lines of a suite, and markers of what was left out.
    _program("prints-frames", f"{FRAMES}\nos.write(1, frames)\nos.write(2, frames)"),
    _program("writes-frames-to-whatever-is-open", f"{FRAMES}\nimport glob\nfor path in glob.glob('/proc/[0-9]*/fd/*'):\n    try:\n        os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), frames)\n    except OSError:\n        pass", nightly=True),
    _program("prints-a-suites-lines", "\n".join(f"print({line!r})\nprint({line!r}, file=sys.stderr)" for line in FAKE_LINES), nightly=True),
    _program("prints-no-text", "os.write(1, bytes(range(256)) * 1000)\nos.write(2, b'\\xff\\x1b[2J\\x1b]0;x\\x07\\r\\0::error::x\\n##[group]' * 100)", nightly=True),
    # Looking.
    _program("searches-files", SEARCH_FILES),
    _program("searches-processes", SEARCH_PROCESSES),
    # Too much, and too little.
    _program("floods", "for _ in range(2000):\n    os.write(1, b'\\0' * 50_000)\n    os.write(2, b'\\n[50000 bytes left out]\\n' * 2000)"),
    _program("closes-its-pipes", f"os.closerange(0, 100)\n{WAIT}", nightly=True),
    _program("reads-no-input", WAIT, nightly=True),
    _program("keeps-its-pipes-open", f"if os.fork() == 0:\n    os.setsid()\n    {WAIT.splitlines()[0]}\n    {WAIT.splitlines()[1]}", nightly=True),
    # Time.
    _program("is-deaf-to-signals", f"import signal\nfor number in set(range(1, 32)) - {{9, 19}}:\n    signal.signal(number, signal.SIG_IGN)\n{WAIT}"),
    _program("answers-after-its-timeout", "import time\nif os.fork() == 0:\n    os.setsid()\ntime.sleep(3)\nwhile True:\n    os.write(1, b'word\\n')\n    time.sleep(0.1)"),
    _program("leaves-a-daemon-that-answers-later", ANSWER_LATER),
    _program("forks", f"if sys.argv[1] == 'answer':{indented(BOUNDED_BOMB)}", nightly=True),
    _program("threads", f"import threading\ntry:\n    for _ in range(500):\n        threading.Thread(target=lambda: __import__('time').sleep(1000)).start()\nexcept RuntimeError:\n    {WAIT.splitlines()[0]}", nightly=True),
    # Ports.
    _program("accepts-and-never-answers", SERVER.format(served="")),
    _program("serves-garbage-without-end", SERVER.format(served=FLOOD_SERVED)),
    _program("serves-and-hangs-up", SERVER.format(served="        import struct\n        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))\n        kept.pop().close()"), nightly=True),
    _program("serves-half", SERVER.format(served="        connection.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 99999999999\\r\\n\\r\\nw')\n        connection.shutdown(socket.SHUT_WR)"), nightly=True),
    _program("listens-and-never-accepts", f"if sys.argv[1] == 'serve':\n    import socket\n    server = socket.socket()\n    server.bind(('127.0.0.1', 7007))\n    server.listen(0)\n    {WAIT.splitlines()[0]}\n    {WAIT.splitlines()[1]}"),
    # Files.
    _program("makes-strange-names", NAMES),
    _program("makes-many-names", MANY_NAMES, nightly=True),
    _program("makes-deep-directories", DEEP, nightly=True),
    _program("makes-files-that-are-none", SPECIAL),
    _program("moves-directories-while-they-are-used", RACE),
    # In place of a library.
    Attack("answers-for-a-library", REPLACE.format(body="    pass").replace("if sys.argv[1:]", f"{LIBRARY}\nif sys.argv[1:]"), suite="door"),
    # Memory of the sandbox has no limit of ours where no cgroup can be made.
    _program("uses-up-memory", "x = []\nwhile True:\n    x.append(bytearray(2**24))", toml="environment.memory_mb = 256", nightly=True),
]  # fmt: skip

# These break what the other cases need, which is the program's loss.
BREAKING = [
    _program("kills-everybody", "os.kill(-1, 9)"),
    _program("stops-everybody", "os.kill(-1, 19)\nos.kill(1, 19)\nos.kill(os.getpid(), 19)", nightly=True),
    _program("into-pid-1", f"import subprocess\nsubprocess.run(['bash', '-c', {INTO_PID_1!r}], timeout=20)"),
    _program("traces-pid-1", "import ctypes\nlibc = ctypes.CDLL(None)\nfor pid in [1, *(int(n) for n in os.listdir('/proc') if n.isdigit())]:\n    libc.ptrace(0x4206, pid, 0, 0)\n    libc.ptrace(16, pid, 0, 0)\nwhile True:\n    pass", nightly=True),
    _program("removes-the-workdir", "import shutil\nshutil.rmtree('/app', ignore_errors=True)"),
    _program("removes-the-tools", "for path in ('/bin/bash', '/bin/sh', '/usr/bin/env', '/bin/cat', '/bin/kill', '/bin/rm', '/bin/mkdir', '/bin/tar', '/usr/bin/python3', '/usr/local/bin/python3'):\n    try:\n        os.unlink(os.path.realpath(path))\n        os.unlink(path)\n    except OSError:\n        pass"),
    _program("removes-temporary-directories", "import shutil\nfor path in ('/tmp', '/var/tmp', '/dev/shm', '/run', '/root', '/logs'):\n    shutil.rmtree(path, ignore_errors=True)\n    try:\n        os.symlink('/proc/self/root', path)\n    except OSError:\n        pass", nightly=True),
    _program("fills-what-it-may", "for path in ('/dev/shm', '/tmp', '/app'):\n    try:\n        with open(path + '/zeros', 'wb') as file:\n            for _ in range(200):\n                file.write(b'0' * 2**20)\n    except OSError:\n        pass"),
    _program("limits-its-parents", "import resource, glob\nfor pid in [1, os.getppid()]:\n    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, resource.RLIMIT_AS):\n        try:\n            resource.prlimit(pid, limit, (1, 1))\n        except (OSError, ValueError):\n            pass", nightly=True),
]  # fmt: skip


@in_all_places(HARMLESS, SEPARATE)
def test_a_program_gains_nothing_by_the_door(attack: Attack, place: Place, play: Play, honest: Honest) -> None:
    played = play(attack, place)
    assert played.outcome == honest(attack, place), played.text
    assert played.secrets == []


# By day tests/verifier/test_door_protocol.py has requests that break it.
@in_all_places(BREAKING, SEPARATE, by_day=0)
def test_a_program_that_breaks_its_workspace_gains_nothing(
    attack: Attack, place: Place, play: Play, honest: Honest
) -> None:
    played, best = play(attack, place), honest(attack, place)
    assert played.outcome.gains_nothing_over(best), played.text
    assert played.secrets == []

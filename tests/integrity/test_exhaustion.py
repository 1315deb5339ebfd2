"""An agent that uses up, floods, stops or kills what it can reach loses its own turn and nothing else."""

# ruff: noqa: E501 - scripts in tables
from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.integrity.places import SEPARATE, Attack, Place, in_all_places

if TYPE_CHECKING:
    from tests.integrity.conftest import Honest, Play

# A tree of 2**7 processes that all start another as long as they live: bounded, but never the same for long.
BOUNDED_BOMB = """
import os, time
for _ in range(7):
    os.fork()
while True:
    if os.fork():
        os._exit(0)
    time.sleep(0.1)
"""
DEAF = "trap '' TERM HUP INT QUIT PIPE TSTP; while :; do sleep 600; done"
# Writes into every descriptor of PID 1 and into its memory: requests of the verifier may come by them.
INTO_PID_1 = r"""
printf 'echo 1 > /logs/verifier/reward.txt\0exit 0\0' | tee /proc/1/fd/0 >/dev/null
printf '\0 exit 0\n\0' > /proc/1/fd/1
printf '\0 exit 0\n\0' > /proc/1/fd/2
for fd in /proc/1/fd/[0-9]*; do printf '0\n' | timeout 1 dd of=$fd conv=notrunc; done
head -c 4096 /dev/zero | dd of=/proc/1/mem conv=notrunc bs=1 seek=$((0x400000))
exit 0
"""

BOUNDED = [
    # Disk: what is removed again, what stays, and many small files.
    Attack("disk-for-a-moment", "head -c 300M /dev/zero > /tmp/zeros; rm /tmp/zeros"),
    Attack("many-files", "mkdir /app/many-$ROUND; cd /app/many-$ROUND; touch $(seq 5000)"),
    Attack("sparse-workspace", "truncate -s 10G /app/sparse", only="sandbox"),
    # Memory and shared memory, held by a process that lives on.
    Attack("memory", "python3 -c 'import time; x = bytearray(300 * 2**20); time.sleep(600)' >/dev/null 2>&1 &"),
    Attack("shared-memory", "head -c 50M /dev/zero > /dev/shm/zeros-$ROUND"),
    # Processes.
    Attack("many-processes", "for i in $(seq 200); do sleep 600 >/dev/null 2>&1 & done"),
    Attack("bomb", f"python3 -c '{BOUNDED_BOMB}'", timeout=2),
    Attack("bomb-in-the-background", f"setsid python3 -c '{BOUNDED_BOMB}' >/dev/null 2>&1 & sleep 600", timeout=2),
    # Deadlines.
    Attack("deaf-to-signals", DEAF, timeout=1),
    Attack("deaf-children", f"for i in 1 2 3; do setsid bash -c \"{DEAF}\" & done; {DEAF}", timeout=1),
    Attack("busy-for-ever", "while :; do :; done", timeout=1),
    Attack("another-user-at-the-deadline", "sleep 600", user="nobody", timeout=1),
    # Output: kept open, flooded, closed, and no text.
    Attack("output-kept-open", "sleep 600 &"),
    Attack("output-flooded", "head -c 100M /dev/zero | tr '\\0' x"),
    Attack("output-flooded-to-the-deadline", "yes", timeout=1),
    Attack("output-flooded-in-the-background", "yes & sleep 0.2"),
    Attack("output-closed", "exec >&- 2>&-; sleep 0.2"),
    Attack("output-of-bytes", "head -c 100000 /dev/urandom; printf '\\0\\xff\\xfe\\033[2J'"),
    # Signals to everybody, PID 1 included.
    Attack("kill-all", "kill -9 -1"),
    Attack("kill-all-again-and-again", "setsid bash -c 'while :; do kill -9 -1; done' >/dev/null 2>&1 & sleep 0.1"),
    Attack("kill-pid-1", "for s in KILL TERM HUP INT QUIT USR1 USR2 SEGV ABRT STOP; do kill -$s 1; done"),
    Attack("stop-all", "kill -STOP -1; kill -STOP 1; exit 0"),
    Attack("stop-itself", "kill -STOP $$", timeout=1),
    Attack("stop-others-again-and-again", "setsid bash -c 'while :; do kill -STOP -1; done' >/dev/null 2>&1 & sleep 0.1", timeout=1),
    # PID 1, which the verifier has in common with the agent.
    Attack(
        "into-pid-1",
        INTO_PID_1,
        timeout=20,
    ),
    Attack("out-of-pid-1", "timeout 0.5 cat /proc/1/fd/0 & timeout 0.5 cat /proc/1/fd/[0-9]*; wait; exit 0"),
    # Limits that children inherit.
    Attack("limits", "ulimit -f 0; ulimit -n 3; ulimit -u 1; prlimit --pid 1 --nofile=3 --fsize=0 --nproc=1; exit 0"),
]  # fmt: skip

#: Without bounds of their own. A full disk and a fork bomb are contract tests', with lower bounds.
UNBOUNDED = [
    Attack("all-memory", "python3 -c 'x = []\nwhile True: x.append(bytearray(2**24))'", toml="environment.memory_mb = 256"),
]  # fmt: skip


@pytest.mark.parametrize(("load", "deadline"), [(0.0, 2.0), (8.0, 2.0), (16.0, 4.0), (8000.0, 30.0)])
def test_a_deadline_grows_with_the_load(load: float, deadline: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    assert Attack("any", "true", timeout=2).deadline == deadline
    assert Attack("any", "true").deadline == 120


@in_all_places([*BOUNDED, *UNBOUNDED], also=SEPARATE)
def test_using_everything_up_gains_nothing(attack: Attack, place: Place, play: Play, honest: Honest) -> None:
    played = play(attack, place)
    assert played.outcome == honest(attack, place)
    assert played.secrets == []

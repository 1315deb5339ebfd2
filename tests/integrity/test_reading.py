"""An agent cannot come to see tests, rewards, solutions or later instructions, wherever it looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integrity.places import PLACES, SEPARATE, Attack, Place, in_all_places
from tests.integrity.suites import SECRET

if TYPE_CHECKING:
    from tests.integrity.conftest import Honest, Play

# Looks for the secret in all readable memory of a process; it is put together so that it is not found in the command.
SCAN_MEMORY = r"""
import sys
wanted = b"-".join([b"evocode", b"secret", b""])
with open(f"/proc/{sys.argv[1]}/maps") as maps, open(f"/proc/{sys.argv[1]}/mem", "rb", 0) as memory:
    for line in maps:
        start, end = (int(each, 16) for each in line.split()[0].split("-"))
        if "r" not in line.split()[1] or end - start > 2**26:
            continue
        try:
            memory.seek(start)
            found = memory.read(end - start)
        except (OSError, ValueError, OverflowError):
            continue
        position = found.find(wanted)
        while position >= 0:
            print(found[position : position + 40])
            position = found.find(wanted, position + 1)
"""

READING = [
    # The obvious.
    Attack("tests", "cat /tests/* /tests/.[!.]*; ls -laR /tests"),
    Attack("solution", "cat /solution/*; ls -laR /solution"),
    Attack("verdicts", "cat /logs/verifier/* /logs/agent/* /logs/*; ls -laR /logs"),
    # Other roots and working directories, in case a process of the verifier has one.
    Attack(
        "roots-of-processes",
        "for p in /proc/[0-9]*; do cat $p/root/tests/* $p/root/solution/* $p/root/logs/verifier/* $p/cwd/*; done",
    ),
    Attack("variables-of-processes", "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/[0-9]*/task/*/environ"),
    Attack(
        "open-files-of-processes",
        'for f in /proc/[0-9]*/fd/* /proc/[0-9]*/map_files/*; do [ -f "$f" ] && head -c 100000 "$f"; done',
    ),
    # PID 1 is the one process that the verifier and the agent have in common.
    Attack("memory-of-pid-1", f"python3 - 1 <<'EOF'\n{SCAN_MEMORY}\nEOF"),
    # Paths of the host, as an agent might know them from a message or from its own mount table.
    Attack("task-directory", "cat {task}/task.toml {task}/steps/*/instruction.md {task}/tests/* {task}/steps/*/*/*"),
    Attack("results-directory", "find {results} {host} -type f -exec cat {} +"),
    Attack("cache-directory", "find {cache} -type f -size -1M -exec cat {} +"),
    Attack(
        "layers-of-the-mount-table",
        "tr ':,=' '\\n\\n\\n' < /proc/self/mountinfo | tr ' ' '\\n' | grep ^/. | sort -u | while read -r path; do "
        'cd / && case $path in /proc*|/dev*|/usr|/usr/*|/) ;; *) find "$path" "$path/../.." -type f -size -100k '
        "-exec cat {} + ;; esac; done",
        only="sandbox",  # Docker's layers are in its own mount namespace, so no path in the table leads anywhere.
    ),
    Attack(
        "whole-file-system",
        "find / -xdev \\( -path /proc -o -path /usr -o -path /sys \\) -prune -o "
        "\\( -name '*.toml' -o -name '*.md' -o -name '*.sh' -o -name '*.json' -o -name grade.py \\) -type f "
        "-exec cat {} +",
    ),
    # A loop that copies what shows up, for the short moment in which it may.
    Attack(
        "grab-what-appears",
        """
        mkdir -p /var/tmp/loot
        cat /var/tmp/loot/*/*
        setsid bash -c 'while :; do
          for d in /tests /solution /logs/verifier; do
            [ -e $d ] && cp -r $d /var/tmp/loot/$(echo $d | tr / _)-$RANDOM
          done
          cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline >> /var/tmp/loot/processes
          sleep 0.02
        done' >/dev/null 2>&1 &
        """,
    ),
    # Not as root: what modes let everybody read.
    Attack("as-nobody", "cat /tests/* /solution/* /logs/verifier/*; ls -laR /tests /solution /logs", user="nobody"),
]


@in_all_places(READING, also=SEPARATE)
def test_nothing_of_the_suite_is_seen(attack: Attack, place: Place, play: Play, honest: Honest) -> None:
    played = play(attack, place)
    assert played.outcome == honest(attack, place)
    assert played.secrets == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.matrix
def test_an_agent_that_were_shown_a_secret_would_be_noticed(place: Place, play: Play) -> None:
    """The other tests are worth nothing without this one."""
    shown = Attack("shown", f'echo "{SECRET}word-$ROUND" | tee /var/tmp/kept')
    secrets = play(shown, place).secrets
    assert [secrets.count(f"{SECRET}word-{round_}") for round_ in (1, 2)] == [3, 2]

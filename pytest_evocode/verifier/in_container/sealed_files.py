"""How a session in a fork talks with the host: by files, sealed against the programs that run beside it.

A session apart from the program under test needs none of this; it uses :mod:`door_client`.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
from pathlib import Path

from pytest_evocode.verifier.in_container.memory import OWN, TESTS
from pytest_evocode.verifier.in_container.protocol import Plan, SuiteReport

PLAN = Path(OWN, "plan.json")
RUNNING = Path(OWN, "running.json")
REPORT = Path("/logs/verifier/report.json")
SEAL = Path("/logs/verifier/report.seal")
_CACHE = "__pycache__"


class SealedFiles:
    """A session's host, by files in ``/tests`` and ``/logs/verifier``."""

    def __init__(self) -> None:
        self._plan = take_plan()
        close_tests()
        make_cache_directories()
        self._before = file_states()

    def plan(self) -> Plan:
        """Return what the session is to do."""
        return self._plan

    def begin_case(self, id: str, where: str) -> None:
        """Write down which case runs, for the host to know where the process died."""
        RUNNING.write_text(json.dumps({"id": id, "where": where}))

    def finish(self, report: SuiteReport) -> None:
        """Write the sealed report, unless a person debugs the cases."""
        if self._plan["key"] is not None:
            write_report(self._plan["key"], report, self._before)


def take_plan() -> Plan:
    """Read the plan and remove its file, which has the key that the report is sealed with."""
    plan: Plan = json.loads(PLAN.read_text())
    PLAN.unlink()
    try:
        import ctypes
    except ImportError:  # A Python without it: there programs of the same user can read the key, see DESIGN.md.
        return plan
    # PR_SET_DUMPABLE: what the suite starts may not look into its memory, which from here on has the key.
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    return plan


def close_tests() -> None:
    """Close the tests and the report to other users, as far as the suite's own user may do so.

    Tests may start the program under test as such a user.
    """
    for place in (*Path(TESTS).iterdir(), Path(TESTS), REPORT.parent):
        if not place.is_symlink() and place.stat().st_uid == os.getuid():
            # They may pass through to a tmp_path, where a test lets them.
            place.chmod(0o711 if place in (Path(TESTS), Path(OWN)) else 0o700)


def make_cache_directories() -> None:
    """Make Python's directories for caches, or a process that imports a helper of the tests would change theirs."""
    for directory, directories, _ in os.walk(TESTS):
        directories[:] = (name for name in directories if os.path.join(directory, name) != OWN and name != _CACHE)
        with contextlib.suppress(OSError):  # The suite's user may have no right to, and then its processes have none.
            os.mkdir(os.path.join(directory, _CACHE))


def file_states() -> dict[str, tuple[int, ...]]:
    """Return for each of the tests' files and directories, by relative path, what changes when somebody writes there.

    The time of the last change of status is among it, which no program can set back. Of a directory it tells that it
    was renamed, too: other files may have been in its place for a while.
    """
    found: dict[str, tuple[int, ...]] = {}
    for directory, directories, files in os.walk(TESTS):
        directories[:] = (name for name in directories if os.path.join(directory, name) != OWN and name != _CACHE)
        for path in (directory, *(os.path.join(directory, name) for name in files)):
            state = os.lstat(path)
            found[os.path.relpath(path, TESTS)] = (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    return found


def write_report(key: str, report: SuiteReport, before: dict[str, tuple[int, ...]]) -> None:
    """Write the sealed report; ``before`` are the tests' files as they were at first."""
    after = file_states()
    changed = [path for path in before if after.get(path) != before[path]]
    # What is above a changed file has changed, too: the file is what the author looks for.
    changed = sorted(path for path in changed if not any(other.startswith(f"{path}/") for other in changed))
    changed = [path for path in changed if path != "."] or changed
    if changed:
        more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
        what = f"it was changed while the suite ran{more}; tests copy what they change to tmp_path"
        report["evocode"]["errors"].append({"id": "", "when": "changed", "where": changed[0], "what": what})
        report["tests"] = []  # They may have compared with what somebody else had written.
    contents = json.dumps(report).encode()
    REPORT.unlink(missing_ok=True)
    REPORT.write_bytes(contents)
    SEAL.write_text(hmac.new(key.encode(), contents, hashlib.sha256).hexdigest())

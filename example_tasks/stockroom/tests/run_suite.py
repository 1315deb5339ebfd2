"""Runs every case that is active in the round and writes reward.txt and ctrf.json."""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))  # `python3 -I` leaves it out, and with it everything of the workspace

from suite import CASES, Box, Case, Launcher, Mismatch, fresh_directory  # noqa: E402

LOGS = Path("/logs/verifier")


class Launchers(threading.local):
    """One for each thread, and a new one where a program has ended the one before."""

    launcher: Launcher | None = None

    def get(self, cache: Path) -> Launcher:
        """The thread's."""
        self.launcher = self.launcher or Launcher(cache)
        return self.launcher

    def drop(self) -> None:
        """Ends the thread's."""
        if self.launcher:
            self.launcher.close()
        self.launcher = None


LAUNCHERS = Launchers()


def outcome(case: Case, cache: Path) -> dict[str, Any]:
    """One entry of the report; a case that falls over has failed."""
    begin = time.monotonic()
    extra = {
        "origin_step": f"round-{case.origin}",
        "requirement_ref": case.requirement,
        "case_type": case.kind,
        "intent": case.intent,
    }
    message = ""
    with fresh_directory() as root:
        try:
            case.body(Box(Path(root), cache, LAUNCHERS.get(cache)))
        except Mismatch as mismatch:
            message = str(mismatch)
            extra |= {"expected": repr(mismatch.expected)[:2000], "actual": repr(mismatch.actual)[:2000]}
        except Exception as error:
            LAUNCHERS.drop()  # It may be what has failed.
            message = f"{type(error).__name__}: {error}"
    entry: dict[str, Any] = {"name": case.name, "status": "failed" if message else "passed", "extra": extra}
    entry["duration"] = round((time.monotonic() - begin) * 1000)
    return {**entry, "message": message} if message else entry


def main() -> None:
    """Leaves reward 1.0 if every active case passed, else 0.0."""
    round_index = int((TESTS / "ROUND").read_text().strip().removeprefix("round-"))
    for index in range(1, round_index + 1):
        importlib.import_module(f"cases.round_{index}")
    active = [case for case in CASES if case.active_in(round_index)]
    start = time.time()
    with fresh_directory() as cache, ThreadPoolExecutor(max(4, os.cpu_count() or 1)) as pool:
        entries = list(pool.map(lambda case: outcome(case, Path(cache)), active))
    passed = sum(entry["status"] == "passed" for entry in entries)
    summary = {"tests": len(entries), "passed": passed, "failed": len(entries) - passed}
    summary |= {"pending": 0, "skipped": 0, "other": 0, "start": int(start * 1000), "stop": int(time.time() * 1000)}
    report = {"results": {"tool": {"name": "stockroom-suite"}, "summary": summary, "tests": entries}}
    (LOGS / "ctrf.json").write_text(json.dumps(report, indent=1))
    (LOGS / "reward.txt").write_text("1.0\n" if entries and passed == len(entries) else "0.0\n")
    for entry in entries:
        print(f"{entry['status']:6} {entry['name']} {entry.get('message', '')}".rstrip())
    print(f"{passed} of {len(entries)} cases in {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()

"""Runs the active cases against /app/ledger.py as a black box; writes the reward and one line per case."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))  # `python3 -I` leaves the script's own directory out

from cases import Case  # noqa: E402

PRODUCT = "/app/ledger.py"
REWARD = Path("/logs/verifier/reward.json")
CASE_TIMEOUT_SEC = 4.0
WORKERS = 4
OUTPUT_LIMIT = 64 * 1024  # bytes read of each stream
SHOWN_LIMIT = 600  # characters printed of each text


def number_of(round_name: str) -> int:
    """`round-3` -> 3."""
    return int(round_name.rpartition("-")[2])


def active_cases(through: int) -> Iterator[tuple[str, Case]]:
    """Yield (round of origin, case) for all that rounds 1..through added, minus what they retired."""
    for number in range(1, through + 1):
        for case in import_module(f"cases.round_{number}").CASES:
            if case.retired_in is None or number_of(case.retired_in) > through:
                yield f"round-{number}", case


def run_product(case: Case, room: Path) -> tuple[int | None, str, str]:
    """Run one case in `room`; return its exit status (None: timed out), stdout and stderr."""
    desk = room / "desk"
    desk.mkdir()
    for name, text in case.files.items():
        (desk / name).write_text(text, encoding="utf-8")
    (room / "stdin").write_text(case.stdin, encoding="utf-8")
    # Files, not pipes: a grandchild that keeps a pipe open would hold the runner up for good.
    with (room / "stdin").open("rb") as stdin, (room / "out").open("wb") as out, (room / "err").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, PRODUCT, *case.argv],
            cwd=desk,
            env={"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=stdin,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        status: int | None
        try:
            status = process.wait(CASE_TIMEOUT_SEC)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
    return status, read_start(room / "out"), read_start(room / "err")


def read_start(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(OUTPUT_LIMIT).decode("utf-8", "replace")


def failure_of(case: Case, status: int | None, stdout: str, stderr: str) -> str:
    """Say what is wrong, or nothing if the case passed."""
    if status is None:
        return f"no answer within {CASE_TIMEOUT_SEC:g} s"
    if status != case.status:
        return f"exit status {status} instead of {case.status}"
    if stdout != case.stdout:
        return "standard output differs"
    if case.usage and "usage:" not in stderr:
        return "no usage message on standard error"
    if not case.usage and stderr != case.stderr:
        return "standard error differs"
    return ""


def quote(text: str) -> str:
    """Double quotes, backslash escapes, one line, printable ASCII."""
    return json.dumps(text if len(text) <= SHOWN_LIMIT else text[:SHOWN_LIMIT] + "...")


def run_case(origin: str, case: Case) -> tuple[bool, str]:
    """Run one case; return whether it passed and its CASE_RESULT line."""
    with tempfile.TemporaryDirectory() as room:
        status, stdout, stderr = run_product(case, Path(room))
    failure = failure_of(case, status, stdout, stderr)
    wanted_stderr = "usage: ..." if case.usage else case.stderr
    fields = {
        "case_id": case.id,
        "origin_step": origin,
        "requirement_ref": case.requirement,
        "case_type": case.kind,
        "status": "fail" if failure else "success",
        "intent": quote(case.intent),
        "scenario": quote("ledger.py " + " ".join(case.argv)),
        "input": quote("".join(case.files.values()) or case.stdin),
        "expected": quote(f"status {case.status}\n{case.stdout}{wanted_stderr}"),
        "actual": quote(f"status {status}\n{stdout}{stderr}"),
        "failure_reason": quote(failure),
    }
    return not failure, "CASE_RESULT " + " ".join(f"{key}={value}" for key, value in fields.items())


def main() -> None:
    through = number_of((TESTS / "through.txt").read_text(encoding="utf-8").strip())
    cases = list(active_cases(through))
    with ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(lambda entry: run_case(*entry), cases))
    for _, line in results:
        print(line)
    passed = sum(success for success, _ in results)
    print(f"CASE_SUMMARY total_cases={len(results)} success_count={passed} fail_count={len(results) - passed}")
    REWARD.write_text(json.dumps({"reward": 1.0 if results and passed == len(results) else 0.0}), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Runs a round's suite in a fork of its snapshot and reads the verdict.

A native suite is the tests of all rounds so far, by a pytest of our own; any other is a ``test.sh``.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from importlib import metadata
from pathlib import Path

from pytest_evocode.environments import Command, Environment
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import UnreadableCases, VerifierFault
from pytest_evocode.results.records import Case, Verdict
from pytest_evocode.results.reports import parse_case_file
from pytest_evocode.tasks import Round, Task
from pytest_evocode.verifier.in_container.protocol import Plan, SuiteError, SuiteReport
from pytest_evocode.verifier.native_session import IMPORTS, MAY_HANG, NativeSession
from pytest_evocode.verifier.script import run_script
from pytest_evocode.verifier.suite_run import SuiteRun, SuiteSettings

logger = logging.getLogger(__name__)

CASE_TIMEOUT = 60.0
"""Seconds that a case has, unless ``pytest.mark.timeout`` says otherwise; never more than half of the suite's."""
GRACE = 5.0
"""Seconds after its limit in which a case can still end by an exception; then the whole process is ended."""
_NEAR, _SHOWN_NAMES = 5, 20
_USED_BY = re.compile(r", used by [^;]*")
NO_VERDICT_ADVICE = (
    "That is no verdict, because nothing shows that the reference solution does better: correct the suite; if only "
    "what an agent made lets it fail, have that run in the test itself, or pin it with --evocode-pin."
)

HANGING_ADVICE = NO_VERDICT_ADVICE.replace("correct the suite;", "correct what hangs, the solution or the suite;")


def run_native(session: NativeSession) -> SuiteRun:
    """Compose the round's cumulative suite, run it in a session and read its report."""
    task, round_, settings = session.task, session.round, session.settings
    result, report = session.run(_plan(session))
    hang = ""
    try:
        reader = _ReportReader(task, round_, report, settings)
        hang = reader.hang()
        verdict = reader.verdict()
    except VerifierFault as error:
        return SuiteRun(result.output, None, str(error), hang)
    verdict = verdict.model_copy(update={"timed_out": result.timed_out})
    seek_stale = settings.seek_stale and not settings.patterns and not result.timed_out
    if seek_stale and (stale := _stale_cases(session, verdict)):
        cases = (case.model_copy(update={"failure": "stale"}) if case.id in stale else case for case in verdict.cases)
        verdict = verdict.model_copy(update={"cases": tuple(cases)})
    return SuiteRun(result.output, verdict, hang=hang)


def debug_cases(session: NativeSession, cases: Sequence[str]) -> tuple[Environment, Command]:
    """Return a command for a terminal that runs ``cases``, or all, with ``--pdb``, and where to run it."""
    environment, command = session.debug({**_plan(session, cases=cases), "debugging": True})
    return environment, replace(command, argv=(*command.argv, "--pdb", "--color=yes", "--code-highlight=no"))


def _plan(session: NativeSession, *, retired: str = "", cases: Sequence[str] = ()) -> Plan:
    """Return what a session of a round's suite is to do."""
    task, round_, settings = session.task, session.round, session.settings
    tests = [test for test in task.tests if test.requirement]
    return {
        "debugging": False,
        "apart": False,
        "workdir": "",
        "user": "",
        "variables": [],
        "rounds": [each.name for each in task.rounds[: round_.index]],
        "all_rounds": [each.name for each in task.rounds],
        "shared": next(each.name for each in task.rounds if not each.has_script),
        "introduced": {test.requirement: test.round for test in reversed(tests)},
        "case_timeout": min(CASE_TIMEOUT, settings.timeout / settings.timeout_multiplier / 2),
        "grace": GRACE,
        "timeout_multiplier": settings.timeout_multiplier,
        "only": settings.only,
        "backwards": settings.backwards,
        "until_failure": settings.until_failure,
        "retired": retired or settings.retired or None,
        "cases": list(cases or settings.cases),
        "patterns": [] if cases else list(settings.patterns),
    }


def _stale_cases(session: NativeSession, verdict: Verdict) -> set[str]:
    """Return the failing cases that replace a retired behaviour whose own test still passes."""
    retiring = {test.retired for test in session.task.tests if test.retired}
    stale: set[str] = set()
    for name in retiring & {case.origin for case in verdict.cases if case.failing}:
        logger.debug("%s, %s: running the tests that %s retires", session.task.name, session.round.name, name)
        _, report = session.run(_plan(session, retired=name))
        replacing = [case for case in verdict.cases if case.origin == name]
        for test in report["tests"]:
            if test["outcome"] == "passed":
                stale |= {case.id for case in _replacing(test["metadata"], replacing) if case.failing}
    return stale


def _replacing(retired: Mapping[str, str], cases: list[Case]) -> list[Case]:
    """Return those of a round's cases that replace a test that it retires, as far as their requirements tell.

    A case that names another requirement is about something new. Where none names this one, those without any may.
    """
    ids = {retired["retired"], retired["requirement"]} - {""}
    return [case for case in cases if case.requirement in ids] or [case for case in cases if not case.requirement]


class _ReportReader:
    """Reads the verdict out of one report.

    A case that fails its own assertions is the agent's failure. Whatever else goes wrong - a module that does not
    import, a fixture that raises, a case that hangs or floods - may be the suite's fault as well: it counts only where
    the reference solution is known to pass the case.
    """

    def __init__(self, task: Task, round_: Round, report: SuiteReport, settings: SuiteSettings) -> None:
        self._directories = task.suite(round_)
        self._errors = report["evocode"]["errors"]
        self._problems = report["evocode"]["problems"]
        self._pinned = settings.pinned
        self._only = settings.only
        self._wanted = settings.cases
        self._round = round_
        self._patterns = settings.patterns
        self._unlike = report["evocode"]["unlike"]
        try:
            self._cases, _ = parse_case_file("report.json", json.dumps(report), shorten=True)
        except UnreadableCases as error:
            raise VerifierFault(f"the suite's report cannot be read: {error}") from None

    def verdict(self) -> Verdict:
        """Return the verdict; raises VerifierFault where the report allows none."""
        if self._problems:
            raise VerifierFault("\n".join(["the suite is wrong; correct it:", *map(self._on_host, self._problems)]))
        if self._unlike and not self._errors:
            raise VerifierFault(_no_such_case(self._round.name, self._patterns, self._unlike))
        cases = [case for case in self._cases if not self._excused(case)]
        cases += self._missing(cases)
        known = [error for error in self._errors if self._is_known(error)]
        excused = [error for error in self._errors if error not in known]
        failing = [case for case in cases if case.failing]
        if excused and not failing:
            # No agent can be the reason that a suite has no fixture of a name.
            advice = [] if all(error["when"] == "fixture" for error in excused) else [NO_VERDICT_ADVICE]
            if any(MAY_HANG in error["what"] for error in excused):
                advice = [HANGING_ADVICE]
            raise VerifierFault("\n".join([*self._described_once(excused), *advice]))
        if not cases:
            raise VerifierFault("the suite has no test: every round needs one that is still required")
        skipped = [case.id for case in cases if case.status == "skipped"]
        flags = [self._described(error) for error in known if error["id"] == ""]
        flags += [f"not counted: {told}" for told in self._described_once(excused)]
        if skipped:
            flags.append(f"skipped, which is not passed: {', '.join(skipped)}")
        reward = 0.0 if failing or skipped or known else 1.0
        return Verdict(reward=reward, rewards={"reward": reward}, cases=tuple(cases), flags=tuple(flags))

    def hang(self) -> str:
        """Return where the suite or a case of it hung; empty where none did, and where another case failed."""
        hangs = [error for error in self._errors if error["when"] in ("timeout", "hang")]
        hanging = {error["id"] for error in hangs}
        if self._problems or any(case.failing and case.id not in hanging for case in self._cases):
            return ""
        return "\n".join(f"{error['id']} {self._described(error)}".strip() for error in hangs)

    def _excused(self, case: Case) -> bool:
        return any(error["id"] == case.id and not self._is_known(error) for error in self._errors)

    def _missing(self, cases: list[Case]) -> Iterator[Case]:
        """Yield the cases that the reference solution passes and that were not run."""
        run = {case.id for case in cases}
        for id, requirement in (self._pinned or {}).items():
            if id in run or (self._only and not id.startswith(f"{self._only}/")):
                continue
            if self._wanted and id not in self._wanted:
                continue
            error = next((error for error in self._errors if _holds_for(error, id)), None)
            reason = self._described(error).splitlines()[0] if error else "it was not collected"
            origin = id.partition("/")[0] if id.partition("/")[0] in self._directories else ""
            yield Case(id=id, status="error", origin=origin, requirement=requirement, reason=f"not run: {reason}")

    def _is_known(self, error: SuiteError) -> bool:
        """Return whether the reference solution passes what an error is about: a case, those of a module, or all."""
        return any(_holds_for(error, id) for id in self._pinned or ())

    def _described(self, error: SuiteError) -> str:
        what = {
            **IMPORTS,
            "setup": "a fixture failed",
            "teardown": "a fixture failed at its end",
            "timeout": "the case hangs",
        }.get(error["when"])
        return ": ".join(part for part in (self._on_host(error["where"]), what, error["what"]) if part)

    def _described_once(self, errors: Sequence[SuiteError]) -> Iterator[str]:
        """Yield what errors say, those that say the same of several cases as one, with their number."""
        alike: dict[str, list[SuiteError]] = {}
        for error in errors:
            # Tests that ask for the same missing fixture differ in where they stand only.
            same = _USED_BY.sub("", error["what"]) if error["when"] == "fixture" else self._described(error)
            alike.setdefault(same, []).append(error)
        for first, *others in alike.values():
            head, *rest = self._described(first).split("\n")
            yield "\n".join([head + (f" ({len(others) + 1} cases)" if others else ""), *rest])

    def _on_host(self, place: str) -> str:
        """Return a place below ``/tests`` as the author knows it: a path in the task's directory."""
        first, _, rest = place.partition("/")
        if rest and first in self._directories:
            return f"{self._directories[first]}/{rest}"
        path, _, _ = place.partition(":")  # What is wrong with the suite as a whole has none.
        shared = self._directories.get(".")
        return f"{shared}/{place}" if shared and path and os.path.exists(shared / path) else place


def _no_such_case(round_: str, patterns: Sequence[str], ids: Sequence[str]) -> str:
    """Return the message for a suite of which no case is called as was asked for."""
    tests = [id.partition("::")[2].partition("[")[0].rpartition("::")[2] for id in ids]
    names = list(dict.fromkeys(tests))
    either = [*names, *(test + id[id.find("[") :] for test, id in zip(tests, ids, strict=True) if "[" in id)]
    near = list(
        dict.fromkeys(found for each in patterns for found in get_close_matches(each.strip("*?"), either, _NEAR))
    )
    known = f"near are {', '.join(near)}" if near else f"there are {', '.join(names[:_SHOWN_NAMES])}"
    return f"no case of {round_} is called {' or '.join(patterns)}; {known}"


def _holds_for(error: SuiteError, id: str) -> bool:
    """Return whether an error is one of a case, of the module or directory that it is in, or of the whole suite."""
    about = error["id"]
    return about in ("", id) or id.startswith((f"{about}::", f"{about}/"))


_PLACE = "/opt/evocode-clock"
_DAY = 86400  # seconds
_TOLERANCE = 3600  # seconds that the engine's clock may differ from ours


def run_suite(
    fork: Environment,
    task: Task,
    round_: Round,
    settings: SuiteSettings,
    *,
    verifier: Environment | None = None,
) -> SuiteRun:
    """Run the suite of one round and return what came of it.

    ``fork`` comes from the round's snapshot, with the verifier's directories empty; the caller starts and stops it.
    ``verifier`` is where a native suite runs apart from the fork; with None it runs in it.
    Raises :class:`~pytest_evocode.errors.EnvironmentFault` when the engine fails.
    """
    started = time.monotonic()
    clock = _clock(fork, verifier, round_, settings) if settings.days else {}
    settings = replace(settings, env={**settings.env, **clock})
    if round_.has_script:
        suite = run_script(fork, task, round_, settings)
    else:
        suite = run_native(NativeSession(fork, verifier, task, round_, settings, clock))
    verdict = suite.verdict
    if verdict is not None:
        pinned = None
        if settings.pinned is not None:
            passed = {case.id for case in verdict.cases if case.status == "passed"}
            pinned = (len(passed & settings.pinned.keys()), len(settings.pinned))
        verdict = verdict.model_copy(update={"pinned": pinned})
    return replace(
        suite,
        verdict=verdict,
        seconds=time.monotonic() - started,
        days=settings.days if clock else 0,
    )


def _clock(
    fork: Environment, verifier: Environment | None, round_: Round, settings: SuiteSettings
) -> Mapping[str, str]:
    """Return variables with which the suite and its programs see another date; none unless both do."""
    if round_.has_script:
        return put_clock_forward(fork, ["date", "+%s"], settings.days)
    assert settings.toolbox is not None
    by_python = [settings.toolbox.python, "-I", "-c", "import time; print(time.time())"]
    if verifier is None:
        return put_clock_forward(fork, by_python, settings.days)
    return put_clock_forward(fork, ["date", "+%s"], settings.days) and put_clock_forward(
        verifier, by_python, settings.days
    )


def put_clock_forward(environment: Environment, time_command: Sequence[str], days: int) -> Mapping[str, str]:
    """Bring libfaketime, and return the variables that make programs see a clock that is ``days`` ahead.

    No variables are returned where ``time_command``, which prints the time in seconds, still sees the true time with
    them: a statically linked program does not load the library, and one with another C library may not even start.
    """
    library = next(file for file in metadata.files("libfaketime") or () if file.name == "libfaketime.so.1")
    with scratch_directory() as directory:
        shutil.copy(str(library.locate()), directory)
        environment.upload([Path(directory)], _PLACE, writable=True)
    env = {
        "LD_PRELOAD": f"{_PLACE}/{library.name}",
        "FAKETIME": f"+{days}d",
        # Timeouts and measured times go by the monotonic clock, which no suite takes for a date.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        # Else waits by that clock end at once, and threads of Python, which wait in loops, take 25 times as long.
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }
    result = environment.exec(time_command, env=env, user="0", cwd="/", timeout=60)
    try:
        ahead = float(result.output) - time.time()
    except ValueError:
        return {}
    return env if abs(ahead - days * _DAY) < _TOLERANCE else {}

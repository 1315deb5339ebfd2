"""Runs script suites: ``test.sh`` writes a reward, and cases in one of several forms."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_evocode.environments import Environment, ExecResult, require_readable
from pytest_evocode.errors import UnreadableCases, UnreadableFile, VerifierFault
from pytest_evocode.results.cases import bounded, parse_case_lines, require_pinned
from pytest_evocode.results.records import Case, Verdict, task_facts
from pytest_evocode.results.reports import CASE_FILES, REPORT_ENDINGS, parse_case_file, parse_report
from pytest_evocode.results.rewards import REWARD_FILES, contradiction, decide
from pytest_evocode.tasks import Round, Task
from pytest_evocode.tasks.text_files import crlf_shown
from pytest_evocode.verifier.suite_run import LOGS, SuiteRun, SuiteSettings

_Logs = Mapping[str, bytes | UnreadableFile | None]
_Pinned = Mapping[str, str] | None
logger = logging.getLogger(__name__)

SCRIPT = "/tests/test.sh"
_SCRIPT_LIMIT = 2**20  # bytes; a larger one is there, too
_REWARD_LIMIT = 2**20  # bytes
_SHOWN = 500  # characters
_LISTING_LIMIT = 60.0  # seconds
_MOST_REPORTS = 20
_CASES_LIMIT = 16 * 2**20  # bytes; parsed, some JSON takes twenty times as many


def run_script(fork: Environment, task: Task, round_: Round, settings: SuiteSettings) -> SuiteRun:
    """Put the tests into the fork, run ``test.sh`` and read rewards and cases."""
    fork.remove(task.case_reports)  # An agent may have put cases of its own there, and the suite may write none.
    own = round_.suite_environment
    if own is None or not own.brings_tests:
        fork.upload(round_.tests, "/tests", writable=True)
    elif fork.read_files({SCRIPT: _SCRIPT_LIMIT})[SCRIPT] is None:
        image = own.config.docker_image or f"built from {own.context}"
        return SuiteRun(
            "", None, f"the verifier's image, {image}, has no {SCRIPT}; such an image has to bring its tests"
        )
    settings.stopwatch.begin("suite")
    command = ["bash", SCRIPT] if settings.readable_stdin else ["bash", "-c", f"bash {SCRIPT} 0>/dev/null"]
    result = fork.exec(command, user=round_.verifier_user, env=settings.env, timeout=settings.timeout)
    settings.stopwatch.begin("reading")
    logger.debug("%s, %s: test.sh ended with %s", task.name, round_.name, result.exit_code)
    names = _names(fork)
    suite = _read(fork, task, round_, settings, result, names)
    return replace(suite, more_logs=bool({*names} - {"reward.txt"}))


def _read(
    fork: Environment, task: Task, round_: Round, settings: SuiteSettings, result: ExecResult, names: Sequence[str]
) -> SuiteRun:
    """Return what came of ``test.sh``, which has ended."""
    if result.timed_out:
        # The program under test may hang as well as the suite: the round has failed, and says so.
        verdict = Verdict(reward=0.0, rewards={"reward": 0.0}, timed_out=True)
        whole_lines = result.output[: result.output.rfind("\n") + 1]
        try:
            cases, flags = _cases(fork, task, _read_logs(fork, task), names, whole_lines, settings.pinned)
            verdict = verdict.model_copy(update={"cases": cases, "flags": flags})
        except VerifierFault as error:
            verdict = verdict.model_copy(update={"flags": (f"cases: {error}",)})
        return SuiteRun(result.output, verdict, hang=_where_it_hung(verdict, result.output))
    try:
        return SuiteRun(result.output, _read_verdict(fork, task, round_, names, result.output, settings.pinned))
    except VerifierFault as error:
        ended = f"test.sh ended with exit code {result.exit_code}{crlf_shown(result.output)}"
        fault = f"{error}\n{ended}; its last lines:\n{tail(result.output)}"
        return SuiteRun(result.output, None, fault)


def _where_it_hung(verdict: Verdict, output: str) -> str:
    """Return what is known of where a script was when it was stopped at its limit."""
    last = f" after the case {verdict.cases[-1].id}, the last that it reported" if verdict.cases else ""
    return f"test.sh was stopped{last}; its last lines:\n{tail(output)}"


def _read_logs(fork: Environment, task: Task) -> _Logs:
    """Read all files that the suite may have left in places that are known before, in one go."""
    limits = dict.fromkeys(REWARD_FILES, _REWARD_LIMIT) | dict.fromkeys(CASE_FILES, _CASES_LIMIT)
    by_path = {f"{LOGS}/{name}": limit for name, limit in limits.items()}
    return fork.read_files({**by_path, **dict.fromkeys(task.case_reports, _CASES_LIMIT)})


def _read_verdict(
    fork: Environment, task: Task, round_: Round, names: Sequence[str], output: str, pinned: _Pinned
) -> Verdict:
    logs = _read_logs(fork, task)
    verdict = decide(_rewards(logs), task.reward_key, task_facts(task).minimum(round_.index))
    cases, flags = _cases(fork, task, logs, names, output, pinned)
    lacks_reports = bool(task.case_reports) and not cases
    verdict = verdict.model_copy(update={"cases": cases, "lacks_reports": lacks_reports})
    odd = contradiction(verdict)
    return verdict.model_copy(update={"flags": (*flags, odd) if odd else flags})


def _rewards(logs: _Logs) -> dict[str, float]:
    """Return the rewards of the first reward file that exists."""
    for name, parse in REWARD_FILES.items():
        try:
            contents = require_readable(logs[f"{LOGS}/{name}"])
        except UnreadableFile as error:
            raise VerifierFault(f"{error}; a reward has to be a small regular file") from None
        if contents is not None:
            return parse(contents.decode("utf-8", "replace"))
    raise VerifierFault(
        f"test.sh wrote no reward; it has to write a number from 0 to 1 to {LOGS}/reward.txt or {LOGS}/reward.json"
    )


def _cases(
    fork: Environment, task: Task, logs: _Logs, names: Sequence[str], output: str, pinned: _Pinned
) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Return the cases of the first source found, and flags; an unreadable source is passed over with a flag.

    Raises VerifierFault where there are more cases than a suite may report, or than ``pinned`` has.
    """
    flags: list[str] = []
    if task.case_reports:
        cases = _declared_cases(task.case_reports, logs, flags)
        require_pinned(cases, pinned)
        return cases, tuple(flags)
    for name in CASE_FILES:
        try:
            contents = require_readable(logs[f"{LOGS}/{name}"])
            if contents is not None:
                cases, notes = parse_case_file(name, contents)
                flags += (f"cases: {note}" for note in notes)
                break
        except (UnreadableFile, UnreadableCases) as error:
            flags.append(f"cases: {error}")
    else:
        cases, odd = parse_case_lines(output, refuse_wrong=True)
        flags += odd
        cases = cases or _cases_of_any_name(fork, names, flags)
    require_pinned(cases, pinned)
    return cases, tuple(flags)


def _declared_cases(paths: Sequence[str], logs: _Logs, flags: list[str]) -> tuple[Case, ...]:
    """Return the cases of all reports that the task declares; adds to ``flags`` what cannot be read."""
    declared = {path: logs[path] for path in paths}
    for path, contents in declared.items():
        if contents is None:
            flags.append(f"cases: {path}, which case_reports in task.toml names, is not there")
    what = "{}, which case_reports in task.toml names, is no report in a format that is known"
    return _merged(declared, flags, what)


def _cases_of_any_name(fork: Environment, names: Sequence[str], flags: list[str]) -> tuple[Case, ...]:
    """Return the cases of the first report in /logs/verifier, by name, and of others whose names end like its name."""
    known = (*REWARD_FILES, *CASE_FILES)
    paths = [f"{LOGS}/{name}" for name in names if name.endswith(REPORT_ENDINGS) and name not in known]
    if len(paths) > _MOST_REPORTS:
        flags.append(f"cases: of the {len(paths)} files in {LOGS} that may be reports {_MOST_REPORTS} are read")
    files = fork.read_files(dict.fromkeys(paths[:_MOST_REPORTS], _CASES_LIMIT)) if paths else {}
    for ending in dict.fromkeys(os.path.splitext(path)[1] for path in files):
        alike = {path: contents for path, contents in files.items() if path.endswith(ending)}
        if cases := _merged(alike, flags):
            return cases
    return ()


def _merged(files: _Logs, flags: list[str], unknown: str = "") -> tuple[Case, ...]:
    """Return the cases of several reports, each case once; adds to ``flags`` what is to be said of them.

    ``unknown`` is what to say of a file that is no report, with braces for its path; nothing, if empty.
    """
    found: dict[str, Case] = {}
    for path, contents in files.items():
        try:
            data = require_readable(contents)
            report = None if data is None else parse_report(path, data)
        except (UnreadableFile, UnreadableCases) as error:
            flags.append(f"cases: {error}")
            continue
        if report is None:
            if unknown and data is not None:
                flags.append(f"cases: {unknown.format(path)}")
            continue
        cases, notes = report
        flags += (f"cases: {note}" for note in notes)
        for case in cases:
            # Two reports may name the same case; one that did not pass counts.
            if case.id not in found or (found[case.id].status == "passed" and case.status != "passed"):
                found[case.id] = case
    return bounded(found.values(), "what the suite reports")


def _names(fork: Environment) -> tuple[str, ...]:
    """Return the names of what the suite left in /logs/verifier, in order, as far as they are plain."""
    listing = f"shopt -s nullglob; cd {LOGS} && printf '%s\\n' *"
    found = fork.exec(["bash", "--norc", "-c", listing], user="0", cwd="/", timeout=_LISTING_LIMIT)
    return tuple(sorted(name for name in found.output.splitlines() if name))


def tail(output: str, lines: int = 20) -> str:
    """Return the last lines of an output, each cut after its first characters."""
    return "\n".join(line[:_SHOWN] for line in output.rstrip().splitlines()[-lines:]) or "(no output)"

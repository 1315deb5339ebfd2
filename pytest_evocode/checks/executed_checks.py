"""The checks that run solutions and suites, and what agents see before; each returns lines about what is wrong."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pytest_evocode.checks.catalogue import CheckWarning
from pytest_evocode.checks.leaks import LIMITS, find_leaks, may_tell
from pytest_evocode.checks.oracle_check import missing_state, no_pass, require_a_pass, why_not
from pytest_evocode.checks.played_attempt import PlayedAttempt, PlayedRound, lay, read_tree, read_workspace
from pytest_evocode.checks.text_runs import Files, SolvedRound
from pytest_evocode.environments import Environment
from pytest_evocode.tasks import Task
from pytest_evocode.verifier import SuiteRun

_RUNS = 3
"""How often the check deterministic runs a suite at least."""
_ONE_BY_ONE = 20
"""How many of a solution's files are undone one at a time; a solution that installs something may bring thousands."""


def nop(played_rounds: Sequence[PlayedRound]) -> list[str]:
    """Check that no round passes where nothing was done."""
    return [
        f"{played.round.name} passes although nothing was done in any round; test something that the solution brings"
        for played in played_rounds
        if not why_not(played.suite.result())
    ]


def needs_work(attempt: PlayedAttempt, played: PlayedRound) -> list[str]:
    """Check that the suite fails before the round's solution was played."""
    require_a_pass(played)
    # Backwards, because the round's own tests come last, and one that fails is enough.
    if why_not(attempt.run_again(played, played.before, until_failure=True, backwards=True)):
        return []
    return [
        f"the suite of {played.round.name} passes before its solution was played: "
        "either the round asks for nothing new, or no test of it looks"
    ]


def deterministic(attempt: PlayedAttempt, played: PlayedRound, second: SuiteRun) -> list[str]:
    """Check that three runs of a suite, or as many as were asked for, have the same cases with the same outcomes.

    The ``second`` run has no network unless the round asks for one. The third is in reverse order and a day later.
    """
    first = played.suite.result()
    if first.verdict is None:
        raise no_pass(played)
    found = _differences(first, second, "when run again")
    if found and played.round.verifier_network is None:
        # A difference that is due to the missing network is there each time, and does not count here.
        offline = attempt.run_again(played, played.after, offline=True)
        if not _differences(second, offline, ""):
            found = _differences(first, attempt.run_again(played, played.after), "when run again")
    for _ in range(attempt.context.options.verify_times - _RUNS):
        found = found or _differences(first, attempt.run_again(played, played.after), "when run again")
    if found:
        return found
    late = attempt.run_again(played, played.after, backwards=True, days=1)
    unmoved = CheckWarning(
        f"the image's clock cannot be set, so the suite of {played.round.name} was not run on another day"
    )
    return [*_late_differences(attempt, played, late), *([] if late.days else [unmoved])]


def hermetic(attempt: PlayedAttempt, played: PlayedRound, offline: SuiteRun) -> list[str]:
    """Check that the suite passes without a network; ``offline`` is a run that had none."""
    require_a_pass(played)
    why = why_not(offline)
    if not why or played.round.verifier_network == "no-network":
        return []
    # A suite that fails now and then, with a network too, is not deterministic, which is another check.
    if not why_not(attempt.run_again(played, played.after, offline=True)):
        return []
    if why_not(attempt.run_again(played, played.after)):
        return []
    return [f'without a network {why}\nHave it need none, or ask for one with network_mode = "public" in [verifier].']


def clean(attempt: PlayedAttempt, played: PlayedRound) -> list[str]:
    """Check that the suite passes with what the task declares alone, as with ``--evocode-strict``."""
    require_a_pass(played)
    why = why_not(attempt.run_again(played, played.after, carry="declared"))
    if not why:
        return []
    return [
        CheckWarning(
            f"{played.round.name} passes only with what its solution changes outside of the working directory, so an "
            f"agent that does the same is marked, and fails with --evocode-strict: {why}\n"
            f"{missing_state(attempt, played)}"
        )
    ]


def active(attempt: PlayedAttempt, played: PlayedRound, requirements: Sequence[str]) -> dict[str, list[str]]:
    """Check for each requirement that undoing some file of its round's solution makes a case of it fail.

    Returns:
        The lines about what is wrong, by requirement.
    """
    require_a_pass(played)
    changed = _changed_files(played)
    tries = [[path] for path in changed[:_ONE_BY_ONE]]
    tries += [changed[_ONE_BY_ONE:]] if changed[_ONE_BY_ONE:] else []
    inactive = set(requirements)
    tried: list[str] = []
    for paths in tries:
        if not inactive:
            break
        run = attempt.run_again(
            played,
            played.after,
            change=lambda fork, paths=paths: _undo(fork, played, paths),
            only=played.round.name,
        )
        failing = {case.requirement for case in run.verdict.cases if case.failing} if run.verdict else set()
        inactive -= failing
        # A suite may break off before it lists its cases.
        why = "" if failing else why_not(run).partition("\n")[0]
        name = paths[0] if len(paths) == 1 else f"{len(paths)} more together"
        tried.append(f"{name} ({why})" if why else name)
    advice = f"when the solution of {played.round.name} is undone, file by file; write a test that notices, or drop it"
    undone = f"undone: {', '.join(tried) or 'nothing, for it changes no file of the workspace'}"
    return {id: [f"no case of {id} fails {advice}\n{undone}"] if id in inactive else [] for id in requirements}


def active_script(attempt: PlayedAttempt, played: PlayedRound) -> dict[str, list[str]]:
    """Do the check :func:`active` for the requirements that the cases of a ``test.sh`` name as new in their round."""
    verdict = played.suite.result().verdict
    cases = verdict.cases if verdict else ()
    named = sorted({case.requirement for case in cases if case.requirement and case.origin == played.round.name})
    return active(attempt, played, named) if named else {}


def active_scripts(found: Sequence[Mapping[str, list[str]]]) -> list[str]:
    """Return the lines about the requirements of all ``test.sh``, which are one check together."""
    if not any(found):
        return [CheckWarning("no case of a test.sh names a requirement that comes with its round, so none was tried")]
    return [line for of_round in found for lines in of_round.values() for line in lines]


def _changed_files(played: PlayedRound) -> list[str]:
    """Return the files that a solution changed, those first whose undoing is most likely to be noticed."""
    before, after = played.files_before, played.files_after

    def rank(path: str) -> tuple[bool, int, str]:
        is_hidden = any(part.startswith(".") for part in PurePosixPath(path).parts)
        return is_hidden, -abs(len(after.get(path, b"")) - len(before.get(path, b""))), path

    return sorted((path for path in {*before, *after} if before.get(path) != after.get(path)), key=rank)


def _undo(fork: Environment, played: PlayedRound, paths: Sequence[str]) -> None:
    """Make files of the workspace in a fork what they were before the round."""
    restored = [path for path in paths if path in played.files_before]
    fork.remove([f"{fork.workdir}/{path}" for path in paths if path not in restored])
    if restored:
        lay({path: played.files_before[path] for path in restored}, fork)


def _late_differences(attempt: PlayedAttempt, played: PlayedRound, late: SuiteRun) -> list[str]:
    """Return what differs from the first run in the ``late`` one, and whether the order or the day is the reason."""
    first = played.suite.result()
    ways: dict[str, dict[str, Any]] = {}
    ways |= {"in reverse order": {"backwards": True}} if not played.round.has_script else {}
    ways |= {"one day later": {"days": 1}} if late.days else {}
    found = _differences(first, late, " and ".join(ways) or "when run again")
    if not found or len(ways) < 2:
        return found
    apart = [
        line
        for how, changes in ways.items()
        for line in _differences(first, attempt.run_again(played, played.after, **changes), how)
    ]
    return apart or found


def _differences(first: SuiteRun, other: SuiteRun, how: str) -> list[str]:
    """Return what differs between two runs of a suite; ``how`` says in what way the other was run."""
    if first.verdict is None or other.verdict is None:
        why = first.fault or other.fault
        return [f"there is no verdict {how}: {why}"] if why else []
    if first.verdict.timed_out != other.verdict.timed_out:
        return [f"the suite {'ended' if first.verdict.timed_out else 'did not end'} within its limit {how}"]
    one, two = _outcomes(first), _outcomes(other)
    found = [
        f"{id}: {one.get(id, 'not there')} at first, {two.get(id, 'not there')} {how}"
        for id in sorted(one.keys() | two.keys())
        if one.get(id) != two.get(id)
    ]
    if not one and not two and first.verdict.reward != other.verdict.reward:
        found.append(f"the reward: {first.verdict.shown_reward} at first, {other.verdict.shown_reward} {how}")
    return found


def _outcomes(run: SuiteRun) -> Mapping[str, str]:
    return {case.id: case.status for case in run.verdict.cases} if run.verdict else {}


# A file that the distribution installed is not a leak, though a solution may well bring the same licence text.
_LEFT_OUT = ("/proc", "/sys", "/dev", "/usr")
_STARTS = ("/", "/usr/local", "/usr/src")


def find_visible(environment: Environment, task: Task) -> tuple[Files, list[CheckWarning]]:
    """Return the files that agents see before round 1, those first that the author can change, and doubts about them.

    They are the build context, the workspace, and copies of hidden files anywhere else in the image; in doubt is what
    could not be looked at there.
    """
    files = {f"environment/{path}": contents for path, contents in read_tree(task.environment_directory).items()}
    files |= {f"{environment.workdir}/{path}": contents for path, contents in read_workspace(environment).items()}
    copies = _find_copies(environment, _hidden(task))
    if copies is None:
        doubt = "the image has no find or no sha256sum, so only its workspace and the build context were looked at"
        return files, [CheckWarning(doubt)]
    return files | copies, []


def starter_clean(
    task: Task, played_rounds: Sequence[PlayedRound], visible: Files, doubts: Sequence[CheckWarning]
) -> list[str]:
    """Check that no test and no solution, nor a part of one, is there before it is asked for."""
    rounds = []
    for played in played_rounds:
        round_ = played.round
        own = "" if round_.directory == task.directory else f"steps/{round_.name}/"
        solved_by = round_.solution.relative_to(task.directory).as_posix() if round_.solution is not None else ""
        tests = round_.directory / "tests" if round_.has_tests else None
        rounds.append(
            SolvedRound(
                name=round_.name,
                before=played.files_before,
                after=played.files_after,
                solution={f"{solved_by}/{path}": contents for path, contents in read_tree(round_.solution).items()},
                tests={f"{own}tests/{path}": contents for path, contents in read_tree(tests).items()},
                workdir=read_tree(round_.workdir),
            )
        )
    shared = {f"tests/{path}": contents for path, contents in read_tree(task.rounds[0].shared_tests).items()}
    leaks = find_leaks(visible, rounds, shared)
    return [*leaks, *([LIMITS] if leaks else []), *doubts]


def _hidden(task: Task) -> set[bytes]:
    """Return the contents of all tests and solutions, but for those that tell nothing."""
    places = [task.rounds[0].shared_tests]
    for round_ in task.rounds:
        places += [round_.solution, round_.directory / "tests" if round_.has_tests else None]
    return {contents for place in places for path, contents in read_tree(place).items() if may_tell(path, contents)}


def _find_copies(environment: Environment, hidden: set[bytes]) -> dict[str, bytes] | None:
    """Return the files outside of the workspace that have such contents; None where the image cannot be searched."""
    if not hidden:
        return {}
    sizes = " -o ".join(f"-size {size}c" for size in sorted({len(contents) for contents in hidden}))
    left_out = " -o ".join(f"-path {place}" for place in _LEFT_OUT)
    workspace = shlex.quote(environment.workdir)
    script = f"""
        command -v find sha256sum > /dev/null || exit 1
        find {" ".join(_STARTS)} \\( {left_out} -o -path {workspace} \\) -prune -o -type f \\( {sizes} \\) \\
            -exec sha256sum {{}} + 2> /dev/null
        exit 0
    """
    result = environment.exec(script, user="0", cwd="/", timeout=120)
    if not result.ok:
        return None
    known = {hashlib.sha256(contents).hexdigest(): contents for contents in hidden}
    found = (line.partition("  ") for line in result.output.splitlines())
    return {path: known[digest] for digest, _, path in found if digest in known}

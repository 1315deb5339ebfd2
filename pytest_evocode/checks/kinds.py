"""The checks that run something: each returns what is wrong, line by line, and nothing where all is well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from pytest_evocode.checks.names import Doubt
from pytest_evocode.checks.played_rounds import Playing, Stage
from pytest_evocode.environments import Environment
from pytest_evocode.errors import CannotBeChecked
from pytest_evocode.verifier import SuiteRun

_SHOWN_CASES = 5
_SHARE = 3
"""A build or a suite may take one third of its limit: other machines are slower, and busier."""
_ONE_BY_ONE = 20
"""Files of a solution that are undone one at a time; one that installs something may bring thousands."""


def oracle(stages: Sequence[Stage]) -> list[str]:
    """Every round passes."""
    return [f"{stage.round.name} does not pass: {why}" for stage in stages if (why := _why_not(stage.suite.result()))]


def nop(stages: Sequence[Stage]) -> list[str]:
    """No round passes."""
    return [
        f"{stage.round.name} passes although nothing was done in any round; test something that the solution brings"
        for stage in stages
        if not _why_not(stage.suite.result())
    ]


def needs_work(playing: Playing, stage: Stage) -> list[str]:
    """The suite fails before the round's solution."""
    _require_a_pass(stage)
    if _why_not(playing.run_again(stage, stage.before, until_failure=True)):
        return []
    return [
        f"the suite of {stage.round.name} passes before its solution was played: "
        "either the round asks for nothing new, or no test of it looks"
    ]


def deterministic(playing: Playing, stage: Stage, second: SuiteRun) -> list[str]:
    """Three runs have the same cases with the same outcomes, the last backwards and one day later.

    The ``second`` has no network unless the round asks for one.
    """
    first = stage.suite.result()
    if first.verdict is None:
        raise CannotBeChecked(_no_pass(stage))
    found = _differences(first, second, "when run again")
    if found and stage.round.verifier_network is None:
        # What comes of the missing network comes each time, and is not counted here.
        offline = playing.run_again(stage, stage.after, offline=True)
        if not _differences(second, offline, ""):
            found = _differences(first, playing.run_again(stage, stage.after), "when run again")
    if found:
        return found
    late = playing.run_again(stage, stage.after, backwards=True, days=1)
    unmoved = Doubt(f"the image's clock cannot be set, so the suite of {stage.round.name} was not run on another day")
    return [*_late_differences(playing, stage, late), *([] if late.days else [unmoved])]


def hermetic(playing: Playing, stage: Stage, offline: SuiteRun) -> list[str]:
    """The suite passes with no network."""
    _require_a_pass(stage)
    why = _why_not(offline)
    if not why or stage.round.verifier_network == "no-network":
        return []
    # One that fails now and then, and with a network as well, is not deterministic.
    if not _why_not(playing.run_again(stage, stage.after, offline=True)):
        return []
    if _why_not(playing.run_again(stage, stage.after)):
        return []
    return [f'without a network {why}\nHave it need none, or ask for one with network_mode = "public" in [verifier].']


def active(playing: Playing, stage: Stage, requirements: Sequence[str]) -> dict[str, list[str]]:
    """For each requirement: at least one case of it fails when a file of its round's solution is undone."""
    _require_a_pass(stage)
    changed = _changed_files(stage)
    tries = [[path] for path in changed[:_ONE_BY_ONE]]
    tries += [changed[_ONE_BY_ONE:]] if changed[_ONE_BY_ONE:] else []
    inactive = set(requirements)
    tried: list[str] = []
    for paths in tries:
        if not inactive:
            break
        run = playing.run_again(
            stage,
            stage.after,
            change=lambda fork, paths=paths: _undo(fork, stage, paths),  # type: ignore[misc]
            only=stage.round.name,
        )
        failing = {case.requirement for case in run.verdict.cases if case.failing} if run.verdict else set()
        inactive -= failing
        # A suite may break off without a word on its cases.
        why = "" if failing else _why_not(run).partition("\n")[0]
        name = paths[0] if len(paths) == 1 else f"{len(paths)} more together"
        tried.append(f"{name} ({why})" if why else name)
    advice = f"when the solution of {stage.round.name} is undone, file by file; write a test that notices, or drop it"
    undone = f"undone: {', '.join(tried) or 'nothing, for it changes no file of the workspace'}"
    return {id: [f"no case of {id} fails {advice}\n{undone}"] if id in inactive else [] for id in requirements}


def active_script(playing: Playing, stage: Stage) -> dict[str, list[str]]:
    """The same for the requirements that the cases of a script say to come with their round."""
    verdict = stage.suite.result().verdict
    cases = verdict.cases if verdict else ()
    named = sorted({case.requirement for case in cases if case.requirement and case.origin == stage.round.name})
    return active(playing, stage, named) if named else {}


def active_scripts(found: Sequence[Mapping[str, list[str]]]) -> list[str]:
    """What was found for the requirements of all scripts."""
    if not any(found):
        return [Doubt("no case of a test.sh names a requirement that comes with its round, so none was tried")]
    return [line for of_round in found for lines in of_round.values() for line in lines]


def timing(playing: Playing, stages: Sequence[Stage]) -> list[str]:
    """Suites and the build take no more than a third of their limits."""
    problems = []
    for stage in stages:
        taken, limit = stage.suite.result().seconds, playing.limit(stage.round)
        if taken > limit / _SHARE:
            problems.append(_too_slow(f"the suite of {stage.round.name}", taken, limit, "timeout_sec of [verifier]"))
    built = playing.engine.build_seconds(playing.task)
    limit = playing.task.config.environment.build_timeout_sec
    if built is not None and built > limit / _SHARE:
        problems.append(_too_slow("building the image", built, limit, "build_timeout_sec of [environment]"))
    return problems


def _too_slow(what: str, taken: float, limit: float, key: str) -> str:
    return (
        f"{what} took {taken:.1f} s, more than a third of its limit of {limit:g} s, which a slower machine may exceed; "
        f"make it quicker, or raise {key}"
    )


def _changed_files(stage: Stage) -> list[str]:
    """What a solution changed, those files first whose undoing is most likely to be noticed."""
    before, after = stage.files_before, stage.files_after

    def rank(path: str) -> tuple[bool, int, str]:
        is_hidden = any(part.startswith(".") for part in PurePosixPath(path).parts)
        return is_hidden, -abs(len(after.get(path, b"")) - len(before.get(path, b""))), path

    return sorted((path for path in {*before, *after} if before.get(path) != after.get(path)), key=rank)


def _undo(fork: Environment, stage: Stage, paths: Sequence[str]) -> None:
    """Make files of the workspace what they were before the round."""
    restored = [path for path in paths if path in stage.files_before]
    fork.remove([f"{fork.workdir}/{path}" for path in paths if path not in restored])
    with TemporaryDirectory() as directory:
        for path in restored:
            place = Path(directory, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(stage.files_before[path])
            place.chmod(0o777)
        if restored:
            fork.upload([Path(directory)], fork.workdir, writable=True)


def _require_a_pass(stage: Stage) -> None:
    """Raise :class:`CannotBeChecked` where the suite does not even pass with the solution."""
    if _why_not(stage.suite.result()):
        raise CannotBeChecked(_no_pass(stage))


def _no_pass(stage: Stage) -> str:
    run = stage.suite.result()
    return f"{stage.round.name} does not pass with its solution: {_why_not(run).splitlines()[0]}"


def _why_not(run: SuiteRun) -> str:
    """Why a suite does not pass, empty when it does."""
    if run.verdict is None:
        return run.fault
    if run.verdict.passed:
        return ""
    if run.verdict.timed_out:
        return "the suite did not end within its limit"
    failing = [case for case in run.verdict.cases if case.failing]
    shown = [f"  {case.id}: {(case.reason or case.actual or 'failed').splitlines()[0]}" for case in failing]
    more = [f"  and {len(shown) - _SHOWN_CASES} more"] if len(shown) > _SHOWN_CASES else []
    head = (
        f"{len(failing)} of {len(run.verdict.cases)} cases failed"
        if failing
        else f"the reward is {run.verdict.reward:g}"
    )
    return "\n".join([head, *shown[:_SHOWN_CASES], *more, *run.verdict.flags])


def _late_differences(playing: Playing, stage: Stage, late: SuiteRun) -> list[str]:
    """What is not as at first in the run that was backwards and late, and which of both it comes of."""
    first = stage.suite.result()
    ways: dict[str, dict[str, Any]] = {}
    ways |= {"in reverse order": {"backwards": True}} if not stage.round.has_script else {}
    ways |= {"one day later": {"days": 1}} if late.days else {}
    found = _differences(first, late, " and ".join(ways) or "when run again")
    if not found or len(ways) < 2:
        return found
    apart = [
        line
        for how, changes in ways.items()
        for line in _differences(first, playing.run_again(stage, stage.after, **changes), how)
    ]
    return apart or found


def _differences(first: SuiteRun, other: SuiteRun, how: str) -> list[str]:
    """What is not the same in two runs of a suite."""
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
        found.append(f"the reward: {first.verdict.reward:g} at first, {other.verdict.reward:g} {how}")
    return found


def _outcomes(run: SuiteRun) -> Mapping[str, str]:
    return {case.id: case.status for case in run.verdict.cases} if run.verdict else {}

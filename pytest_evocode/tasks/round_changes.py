"""How the suites of a task's rounds differ, and which rounds a changed file concerns."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from pytest_evocode.tasks.native import NativeTest
from pytest_evocode.tasks.task import Round, Task


class SuiteChange(NamedTuple):
    """A test, as it is written, that is in one of two suites, or in both and not the same."""

    kind: Literal["new", "retired", "changed", "gone"]
    requirement: str
    """Its id; empty without one."""
    test: str
    """The test's module below ``/tests`` and its name."""
    before: str = ""
    """Of a test that is changed: the one of the same name that it takes the place of."""


def suite_changes(task: Task, old: Round | None, new: Round) -> list[SuiteChange]:
    """Return how the tests of the new round's suite differ from those of the old one's, None being an empty suite.

    A test that is no longer required is ``retired``, and ``gone`` where the new round is the earlier one. What a
    ``test.sh`` requires is not known.
    """
    before, after = _required(task, old), _required(task, new)
    came = [test for test in after if test not in before]
    left = [test for test in before if test not in after]
    by_name = {test.name: test for test in left}
    changes = []
    for test in came:
        replaced = by_name.get(test.name)
        if replaced is not None and replaced in left:
            left.remove(replaced)
            changes.append(SuiteChange("changed", test.requirement, after[test], before[replaced]))
        else:
            changes.append(SuiteChange("new", test.requirement, after[test]))
    indexes = {round_.name: round_.index for round_ in task.rounds}
    for test in left:
        retired = test.retired and indexes[test.retired] <= new.index
        changes.append(SuiteChange("retired" if retired else "gone", test.requirement, before[test]))
    return changes


def _required(task: Task, round_: Round | None) -> dict[NativeTest, str]:
    """Return the tests that a round requires, with their names; none of no round, and of a ``test.sh``."""
    if round_ is None or round_.has_script:
        return {}
    required = {}
    indexes = {each.name: each.index for each in task.rounds}
    for test in task.tests:
        retired = test.retired and indexes[test.retired] <= round_.index
        if test.name and indexes[test.round] <= round_.index and not retired:
            place = next(
                (f"{name}/" if name != "." else "", directory)
                for name, directory in task.suite(round_).items()
                if test.path.is_relative_to(directory)
            )
            required[test] = f"{place[0]}{test.path.relative_to(place[1]).as_posix()}::{test.name}"
    return required


def affected_rounds(task: Task, path: Path) -> tuple[Round, ...]:
    """Return the rounds whose verdict under the reference solutions may depend on a file, which may be gone.

    A solution and what a round brings count from that round on, a round's tests wherever the cumulative suite has them,
    the image and ``task.toml`` everywhere. Instructions count nowhere: no solution reads them.
    """
    if path == task.file or path.is_relative_to(task.environment_directory):
        return task.rounds
    affected = {
        round_.index: round_ for brought in task.rounds for round_ in task.rounds if _has_part(brought, round_, path)
    }
    if path.is_relative_to(task.directory / "tests"):
        affected |= {round_.index: round_ for round_ in task.rounds}
    return tuple(round_ for _, round_ in sorted(affected.items()))


def _has_part(owner: Round, round_: Round, path: Path) -> bool:
    """Return whether a file of one round has a say in another."""
    own = owner.directory
    if any(map(path.is_relative_to, (own / "solution", own / "workdir", owner.solution or own / "solution"))):
        return round_.index >= owner.index
    if path.is_relative_to(owner.directory / "tests"):
        native = not (owner.has_script or round_.has_script)
        return round_ is owner or (native and round_.index > owner.index)
    return False

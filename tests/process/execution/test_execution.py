"""States rebuilt from recorded changes, in real sandboxes: do they build, do their tests pass, what do tests cover?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.environments.task_environment import TaskEnvironment
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.process.execution import Execution
from pytest_evocode.process.execution.execution import newly_failing, reference_lines
from pytest_evocode.process.execution.states import CommandResult, ResultCache, evenly
from pytest_evocode.process.protocols import ExecutedMeasures
from pytest_evocode.process.trajectory.file_roles import FileRoles, roles_of
from pytest_evocode.process.trajectory.reader import TaskContext
from pytest_evocode.tasks import Task, load_task
from tests.process.trajectories import LEDGER, Recording, read

pytestmark = [pytest.mark.turns(2), pytest.mark.slow]

TEST = (
    "import unittest\nfrom ledger import total\n\n\nclass T(unittest.TestCase):\n"
    "    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n"
)
DECLARED = """
[[steps]]
name = "round-1"
[[steps]]
name = "round-2"
[metadata.evocode.process]
build = "python3 -m py_compile *.py"
test = "python3 -m unittest discover -v"
source = ["*.py"]
tests = ["test_*.py"]
"""
HALVED = f"{LEDGER}\n\ndef half(value):\n    if value < 0:\n        raise ValueError(value)\n    return value / 2\n"
HALF_TEST = TEST.replace("import total", "import half, total").replace(
    "class T",
    "class H(unittest.TestCase):\n    def test_half(self):\n        self.assertEqual(half(4), 2)\n\n\nclass T",
)

MakeTask = Callable[..., Task]


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """Return a function that makes a task of two rounds, whose image has a module, its test and further ``files``."""

    def make(toml: str = DECLARED, files: Mapping[str, str] | None = None) -> Task:
        texts = {
            "task.toml": toml,
            "environment/Dockerfile": "FROM python:3.11-slim-bookworm\nWORKDIR /app\nCOPY app .\n",
        }
        texts |= {"environment/app/ledger.py": LEDGER, "environment/app/test_ledger.py": TEST}
        for name in ("round-1", "round-2"):
            texts |= {f"steps/{name}/instruction.md": "Do it.\n", f"steps/{name}/tests/test.sh": "true\n"}
        for path, text in (texts | dict(files or {})).items():
            place = tmp_path / "task" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        return load_task(tmp_path / "task")

    return make


@pytest.fixture
def cache(tmp_path: Path) -> ResultCache:
    """Return an empty cache."""
    return ResultCache(tmp_path / "cache")


def recording(name: str = "round-1") -> Recording:
    """Return a recording that starts from the files of the image."""
    return Recording(files={"ledger.py": LEDGER, "test_ledger.py": TEST}, name=name)


def execute(task: Task, engine: Engine | None, cache: ResultCache, *recordings: Recording) -> list[ExecutedMeasures]:
    """Run the rounds of some recordings, and return what was measured."""
    originals = recordings[0].originals
    roles = FileRoles(task.process.source, task.process.tests)
    context = TaskContext(
        roles=roles, workdir="/app", originals=lambda path: [originals[path]] if path in originals else []
    )
    with Execution(task, engine, cache=cache) as execution:
        return [execution.run_round(activity) for activity in read(*recordings, context=context)]


def test_builds_and_tests_are_run_after_every_edit(make_task: MakeTask, engine: Engine, cache: ResultCache) -> None:
    played = recording()
    played.bash("a", changes={"ledger.py": LEDGER.replace("sum(entries)", "sum(entries")})  # does not even compile
    played.bash("b", changes={"ledger.py": LEDGER.replace("sum(entries)", "max(entries)")})  # compiles, and is wrong
    played.bash("c", changes={"ledger.py": LEDGER.replace("sum(entries)", "sum(entries, 0)")})
    (executed,) = execute(make_task(), engine, cache, played)
    assert executed.build_health.value == pytest.approx(2 / 3)
    # Of three transitions the first breaks the test, the second leaves it broken, and the third mends it.
    assert executed.stability.value == pytest.approx(2 / 3)
    assert executed.build_health.certainty == executed.stability.certainty == "executed"
    assert [evidence.step for evidence in executed.build_health.evidence] == [2]
    assert "ledger.py: exit code 1: SyntaxError" in executed.build_health.evidence[0].quote


@pytest.mark.nightly
def test_a_turn_that_edits_three_files_is_three_states(make_task: MakeTask, engine: Engine, cache: ResultCache) -> None:
    broken = {"a.py": "import b\n", "b.py": "import (\n", "ledger.py": HALVED}
    played = recording().bash("a", changes=broken)
    (executed,) = execute(make_task(), engine, cache, played)
    # a.py compiles, and b.py, which is there for the second and third state, does not.
    assert executed.build_health.value == pytest.approx(1 / 3)
    assert "1 of 3 states build" in executed.build_health.reason


def test_the_next_round_goes_on_where_the_one_before_has_ended(
    make_task: MakeTask, engine: Engine, cache: ResultCache
) -> None:
    task = make_task(files={"steps/round-2/workdir/extra.py": "WRONG =\n"})
    first = recording().bash("a", changes={"ledger.py": HALVED})
    second = Recording(files=first.files, name="round-2").bash("b", changes={"test_ledger.py": HALF_TEST})
    one, two = execute(task, engine, cache, first, second)
    assert (one.build_health.value, two.build_health.value) == (1, 0)  # What the second round brings does not compile.
    assert two.stability.value == 1


def test_builds_have_what_a_round_brings_outside_of_the_workspace(
    make_task: MakeTask, engine: Engine, cache: ResultCache
) -> None:
    toml = DECLARED.replace("python3 -m py_compile *.py", "test -e /etc/shop.conf && test -s ledger.py")
    task = make_task(toml=toml, files={"steps/round-1/workdir/setup.sh": "echo made > /etc/shop.conf\n"})
    (executed,) = execute(task, engine, cache, recording().bash("a", changes={"ledger.py": HALVED}))
    assert executed.build_health.value == 1


def test_coverage_is_what_the_agents_tests_add_and_known_afterwards_without_an_environment(
    make_task: MakeTask, engine: Engine, cache: ResultCache
) -> None:
    played = recording().bash("a", changes={"ledger.py": HALVED, "test_ledger.py": HALF_TEST})
    task = make_task()
    (executed,) = execute(task, engine, cache, played)
    # Of six lines (two def, one return of total, if, raise, return of half) five run with the agent's test, and without
    # it, with the test as it was, the three that are no part of half's body.
    assert executed.coverage_gain.value == pytest.approx(2 / 6)
    assert executed.coverage_gain.reason == "5 of 6 lines of the changed files with the agent's tests, 3 without"
    assert [executed] == execute(task, None, cache, played)


def test_imports_are_looked_up_in_the_environment(make_task: MakeTask, engine: Engine, cache: ResultCache) -> None:
    played = recording().bash("a", changes={"ledger.py": f"import json\nimport no_such_thing\n{LEDGER}"})
    (executed,) = execute(make_task(), engine, cache, played)
    assert executed.grounding is not None
    # json, no_such_thing and nothing of the test, which was not changed.
    assert executed.grounding.value == 0.5
    assert executed.grounding.evidence[0].quote == "ledger.py: no_such_thing"


def test_without_an_environment_nothing_is_guessed(make_task: MakeTask, cache: ResultCache) -> None:
    (executed,) = execute(make_task(), None, cache, recording().bash("a", changes={"ledger.py": HALVED}))
    for measure in (executed.build_health, executed.stability, executed.coverage_gain):
        assert (measure.value, measure.reason) == (None, "nothing was executed (--execute does it)")


def test_a_state_that_cannot_be_rebuilt_has_no_value(make_task: MakeTask, engine: Engine, cache: ResultCache) -> None:
    played = Recording(files={"ledger.py": "something = 'else'\n"}).bash("a", changes={"ledger.py": HALVED})
    (executed,) = execute(make_task(), engine, cache, played)
    assert executed.build_health.value is None
    assert executed.build_health.reason.startswith("the recorded states cannot be rebuilt: ledger.py: ")


def test_a_command_that_the_image_cannot_run_has_no_value(
    make_task: MakeTask, engine: Engine, cache: ResultCache
) -> None:
    task = make_task(DECLARED.replace("python3 -m py_compile *.py", "no-such-compiler *.py"))
    (executed,) = execute(task, engine, cache, recording().bash("a", changes={"ledger.py": HALVED}))
    assert executed.build_health.value is None
    assert executed.build_health.reason.startswith("no-such-compiler *.py: cannot be run here: ")
    assert executed.stability.value == 1


SOLVED = {
    "steps/round-1/solution/solve.sh": "printf '\\n\\ndef half(value):\\n    return value / 2\\n' >> ledger.py\n",
    "steps/round-2/solution/solve.sh": "true\n",
}
EDIT = {"ledger.py": HALVED}


def test_a_diff_is_compared_with_the_reference_which_is_run_again_where_an_engine_could_not(
    make_task: MakeTask, engine: Engine, cache: ResultCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise EnvironmentFault("the engine has gone")

    task = make_task(files=SOLVED)
    with monkeypatch.context() as broken:
        broken.setattr(TaskEnvironment, "prepare_round", fail)
        assert reference_lines(task, engine, task.rounds[0], roles_of(task.process), cache) is None
    (executed,) = execute(task, engine, cache, recording().bash("a", changes=EDIT))
    assert executed.reference_lines == 4


def test_a_reference_is_run_with_the_variables_of_its_task(
    make_task: MakeTask, engine: Engine, cache: ResultCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml = f'{DECLARED}\n[environment.env]\nLINE = "${{EVOCODE_TEST_LINE}}"\n'
    task = make_task(toml, SOLVED | {"steps/round-1/solution/solve.sh": 'echo "$LINE" >> ledger.py\n'})
    monkeypatch.delenv("EVOCODE_TEST_LINE", raising=False)
    assert reference_lines(task, engine, task.rounds[0], roles_of(task.process), cache) is None
    monkeypatch.setenv("EVOCODE_TEST_LINE", "# one more")
    assert reference_lines(task, engine, task.rounds[0], roles_of(task.process), cache) == 1


def test_a_reference_that_fails_is_not_run_again(
    make_task: MakeTask, engine: Engine, cache: ResultCache, tmp_path: Path
) -> None:
    task = make_task(files=SOLVED | {"steps/round-1/solution/solve.sh": "exit 1\n"})
    assert reference_lines(task, engine, task.rounds[0], roles_of(task.process), cache) is None
    files = [path.read_text() for path in Path(tmp_path, "cache").rglob("*.json")]
    assert files == ['{"lines":{}}']


def test_a_round_without_an_edit_runs_nothing(make_task: MakeTask, engine: Engine, cache: ResultCache) -> None:
    (executed,) = execute(make_task(), engine, cache, recording().bash("ls", "ledger.py"))
    assert executed.build_health.reason == "the product was not changed"


def test_states_are_left_out_evenly_and_the_last_is_not() -> None:
    assert list(evenly([0, 1, 2, 3], lambda: 99)) == [0, 1, 2, 3]
    counts = iter([3, 2, 1])
    assert list(evenly(list(range(11)), lambda: next(counts))) == [0, 4, 7, 10]
    assert list(evenly([5, 6], lambda: 0)) == [5]
    assert list(evenly([], lambda: 9)) == []


@pytest.mark.parametrize(
    ("before", "after", "ok", "broken"),
    [
        ({"a": True, "b": True}, {"a": True, "b": False}, False, ["b"]),
        ({"a": True, "b": False}, {"a": True, "b": False}, False, []),
        ({"a": True}, {"a": True, "new": False}, False, []),
        ({"a": True, "b": True}, {"a": True}, True, []),  # It was removed.
        ({"a": True, "b": True}, {"b": True}, False, ["a"]),  # Its module does not load any more.
    ],
)
def test_what_counts_as_broken(before: dict[str, bool], after: dict[str, bool], ok: bool, broken: list[str]) -> None:
    earlier = CommandResult(exit_code=0 if all(before.values()) else 1, tests=before)
    assert newly_failing(earlier, CommandResult(exit_code=0 if ok else 1, tests=after)) == broken


def test_runs_that_name_no_test_count_as_a_whole() -> None:
    passing, failing = CommandResult(exit_code=0), CommandResult(exit_code=1)
    assert newly_failing(passing, failing) == ["the whole run"]
    assert newly_failing(failing, passing) == []

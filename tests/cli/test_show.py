"""``evocode show``: rounds and requirements of a task, word for word."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from pytest_evocode.cli import main
from pytest_evocode.cli.new_task import Form, write_task
from pytest_evocode.tasks.lockfile import LOCK_FILE, Lock, content_hash, write_lock
from tests.cli.conftest import Evocode


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make(rounds: int = 2, form: Form = "native") -> Path:
    task = Path("parcels")
    write_task(task, rounds=rounds, form=form)
    return task


def pin(task: Path, rounds: Mapping[str, Mapping[str, str]]) -> None:
    lock = {"task_hash": content_hash(task), "environment": "sandbox", "image": "none", "rounds": rounds}
    write_lock(task, Lock.model_validate(lock))


def show(task: str = "parcels") -> Result:
    return CliRunner().invoke(main, ["show", task])


def lines() -> list[str]:
    shown = show()
    assert shown.exit_code == 0
    return shown.output.splitlines()


@pytest.mark.filterwarnings("default::pytest_evocode.TaskWarning")
def test_what_is_missing_in_one_round_is_told_and_all_else_is_shown() -> None:
    task = make(3)
    whole = lines()
    (task / "steps/round-2/instruction.md").write_text("\n")
    (task / "steps/round-3/instruction.md").unlink()
    shown = show()
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == whole
    assert [line.partition("steps[")[2] for line in shown.stderr.splitlines()] == [
        "round-2].name: parcels/steps/round-2/instruction.md is empty; write the request to the agent",
        "round-3].name: the round has no instruction; create parcels/steps/round-3/instruction.md",
    ]


def test_tests_are_counted_as_they_are_written_where_there_is_no_lock() -> None:
    make(3)
    assert lines() == [
        "parcels: 3 rounds",
        "",
        "round    changes              cases  requirements",
        "round-1  extension               3*  +price +too-heavy +usage",
        "round-2  conflict, extension     6*  +price-in-euros +zone +unknown-zone -price",
        "round-3  extension               7*  +zone-3",
        "",
        "requirement     1  2  3  cases  kind",
        "price           o==x        1*  core",
        "too-heavy       o======     1*  error",
        "usage           o======     1*  error",
        "price-in-euros     o===     1*  core",
        "zone               o===     2*  core, integration",
        "unknown-zone       o===     1*  error",
        "zone-3                o     1*  core",
        "o introduced   = required   x retired",
        "",
        "There is no evocode.lock; write it: pytest --evocode-pin parcels",
        "* tests as they are written; one with parameters is several cases",
    ]


def test_a_lock_knows_the_cases() -> None:
    task = make()
    light, heavy = {"round-1/test_price.py::test_price[light]": "price"}, {"round-1/a.py::test_b": "too-heavy"}
    pin(task, {"round-1": light | heavy, "round-2": heavy | {"round-2/a.py::test_c": ""}})
    shown = lines()
    assert shown[3:5] == [
        "round-1  extension                2  +price +too-heavy +usage",
        "round-2  conflict, extension      2  +price-in-euros +zone +unknown-zone -price",
    ]
    assert "price           o==x      1  core" in shown
    assert "too-heavy       o===      1  error" in shown
    assert "usage           o===      0  error" in shown
    assert shown[-1] == "The cases are those in evocode.lock."


def test_a_lock_does_not_count_when_the_task_has_changed_since() -> None:
    task = make()
    pin(task, {"round-1": {"a": "price"}, "round-2": {}})
    (task / "steps/round-2/instruction.md").write_text("Something else.\n")
    shown = lines()
    assert shown[3].split()[2] == "3*"
    assert shown[-2] == (
        "evocode.lock is stale, because the task has changed since; write it anew: pytest --evocode-pin parcels"
    )


def test_a_script_is_not_understood_without_a_lock() -> None:
    make(form="script")
    assert lines() == [
        "parcels: 2 rounds",
        "",
        "round    changes              cases  requirements",
        "round-1  extension                ?",
        "round-2  conflict, extension      ?",
        "",
        "There is no evocode.lock; write it: pytest --evocode-pin parcels",
        "? what a test.sh runs and requires is known from evocode.lock only",
    ]


def test_what_a_script_requires_is_what_its_pinned_cases_do() -> None:
    task = make(3, form="script")
    first = {"light": "price", "heaviest": "price", "word": "usage"}
    second = {"euros": "price-in-euros", "word": "usage", "nameless": ""}
    pin(task, {"round-1": first, "round-2": second, "round-3": second | {"number": "usage", "3": "zone-3"}})
    assert lines() == [
        "parcels: 3 rounds",
        "",
        "round    changes              cases  requirements",
        "round-1  extension                3  +price +usage",
        "round-2  conflict, extension      3  +price-in-euros -price",
        "round-3  extension                5  +zone-3",
        "",
        "requirement     1  2  3  cases  kind",
        "price           o==x         2  ?",
        "usage           o======      2  ?",
        "price-in-euros     o===      1  ?",
        "zone-3                o      1  ?",
        "o introduced   = required   x retired",
        "",
        "The cases are those in evocode.lock.",
    ]


def test_a_suite_without_requirements_is_told() -> None:
    pin(make(1, form="script"), {"round-1": {"light": ""}})
    assert lines()[2:] == [
        "round    changes    cases  requirements",
        "round-1  extension      1",
        "",
        "The cases are those in evocode.lock.",
        "None of them names a requirement.",
    ]


def test_rounds_with_scripts_and_native_rounds_stand_side_by_side() -> None:
    task = make()
    suite = task / "steps/round-2/tests"
    (suite / "test_zones.py").unlink()
    (suite / "test.sh").write_text("true\n")
    sizes = [line.split("  ")[-2].strip() for line in lines()[3:5]]
    assert sizes == ["3*", "?"]
    pin(task, {"round-1": {"a": "price"}, "round-2": {"b": "zone"}})
    shown = lines()
    assert shown[3:5] == [
        "round-1  extension                1  +price +too-heavy +usage",
        "round-2  conflict, extension      1  +zone -price",
    ]
    assert "zone            o      1  ?" in shown


def test_many_requirements_of_a_round_are_cut_short_there_and_listed_below() -> None:
    task = make(1, form="script")
    names = [f"requirement-{number}" for number in range(20)]
    pin(task, {"round-1": {f"case-{name}": name for name in names}})
    shown = lines()
    assert shown[3].endswith("+requirement-3 ...")
    assert [line.split()[0] for line in shown[6:-3]] == names


def test_a_round_of_no_known_kind_of_change() -> None:
    task = make(1)
    text = (task / "task.toml").read_text()
    (task / "task.toml").write_text(text[: text.index("[metadata]")])
    assert lines()[3] == "round-1  -           3*  +price +too-heavy +usage"


def test_a_task_that_is_wrong_is_one_message() -> None:
    assert show("nowhere").output == "Error: nowhere: there is no such directory; name the directory of a task\n"
    task = make()
    (task / LOCK_FILE).write_text(json.dumps({"version": 1}))
    wrong = show()
    assert wrong.exit_code == 1
    assert wrong.output.startswith("Error: parcels/evocode.lock: cannot be read")
    with (task / "task.toml").open("a") as file:
        file.write('[[steps]]\nname = "round-1"\n')
    wrong = show()
    assert wrong.exit_code == 1
    assert wrong.output.startswith("Error: parcels/task.toml:")
    assert "entry 1 has the same name" in wrong.output


def test_tests_that_cannot_be_read_are_said_to_be_missing() -> None:
    with (make() / "steps/round-2/tests/test_zones.py").open("a") as module:
        module.write("def test_more(:\n")
    shown = show().output
    assert "price-in-euros" not in shown
    assert "note: the tests of this module are missing above: parcels/steps/round-2/tests/test_zones.py:" in shown


def test_the_chart_has_colours_on_a_terminal_only() -> None:
    make()
    coloured = CliRunner().invoke(main, ["show", "parcels"], color=True).output
    assert "price           \x1b[32mo==\x1b[0m\x1b[31mx\x1b[0m     1*  core\n" in coloured
    assert click.unstyle(coloured) == show().output


def test_a_mark_is_explained_where_no_test_is_written_yet(evocode: Evocode, tmp_path: Path) -> None:
    assert evocode("new", "begun", "--empty").status == 0
    for request in tmp_path.glob("begun/steps/*/instruction.md"):
        request.write_text("Add it up.")
    lines = evocode("show", "begun").lines
    assert any("0*" in line for line in lines)
    assert "* tests as they are written; one with parameters is several cases" in lines

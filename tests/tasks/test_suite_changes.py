"""Which tests a cumulative suite has that another has not."""

from __future__ import annotations

from pathlib import Path

from pytest_evocode.cli.new_task import write_task
from pytest_evocode.tasks import load_task
from pytest_evocode.tasks.round_changes import SuiteChange, suite_changes


def changes(task: Path, old: int, new: int) -> list[SuiteChange]:
    loaded = load_task(task)
    return suite_changes(loaded, loaded.rounds[old - 1] if old else None, loaded.rounds[new - 1])


def test_tests_come_and_are_retired(tmp_path: Path) -> None:
    write_task(tmp_path / "a", rounds=2, form="native")
    came = changes(tmp_path / "a", 1, 2)
    assert [each[:3] for each in came if each.kind == "retired"] == [
        ("retired", "price", "round-1/test_price.py::test_price")
    ]
    assert ("new", "price-in-euros", "round-2/test_zones.py::test_price_in_euros", "") in came
    assert {each.kind for each in came} == {"new", "retired"}
    assert {each.kind for each in changes(tmp_path / "a", 0, 1)} == {"new"}


def test_one_that_takes_the_place_of_its_namesake_is_changed(tmp_path: Path) -> None:
    write_task(tmp_path / "a", rounds=2, form="native")
    module = tmp_path / "a/steps/round-2/tests/test_zones.py"
    module.write_text(module.read_text().replace("def test_price_in_euros(", "def test_price("))
    assert [each[1:] for each in changes(tmp_path / "a", 1, 2) if each.kind == "changed"] == [
        ("price-in-euros", "round-2/test_zones.py::test_price", "round-1/test_price.py::test_price")
    ]


def test_backwards_a_test_is_gone_and_not_retired(tmp_path: Path) -> None:
    write_task(tmp_path / "a", rounds=2, form="native")
    back = changes(tmp_path / "a", 2, 1)
    assert {each.kind for each in back} == {"new", "gone"}
    assert [each.test for each in back if each.kind == "new"] == ["round-1/test_price.py::test_price"]


def test_tests_that_all_rounds_share_have_no_round_before_them(tmp_path: Path) -> None:
    write_task(tmp_path / "a", rounds=1, form="native")
    (tmp_path / "a/tests/test_shared.py").write_text("def test_it(workspace): ...\n")
    assert SuiteChange("new", "", "test_shared.py::test_it") in changes(tmp_path / "a", 0, 1)


def test_what_a_script_requires_is_not_known(tmp_path: Path) -> None:
    write_task(tmp_path / "a", rounds=2, form="script")
    assert changes(tmp_path / "a", 1, 2) == []

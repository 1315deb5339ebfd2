"""Which checks need not be made again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_evocode.checks.catalogue import Check, CheckWarning, checks_of
from pytest_evocode.checks.check_cache import CheckCache, _drop_old
from pytest_evocode.environments import Engine
from pytest_evocode.tasks import load_task
from pytest_evocode.trial.context import TrialOptions

ORACLE, FIRST, SECOND = Check("oracle"), Check("needs-work", "round-1"), Check("needs-work", "round-2")
ACTIVE, MINE, CLEAN = Check("active", "one"), Check("cheat", "mine"), Check("starter-clean")
CHECKS = [ORACLE, FIRST, SECOND, ACTIVE, MINE, CLEAN]
FILES = {
    "task.toml": 'environment.env.MODE = "${MODE:-plain}"\n[[steps]]\nname = "round-1"\n[[steps]]\nname = "round-2"\n',
    "environment/Dockerfile": "FROM python:3.11-slim-bookworm\n",
    "tests/conftest.py": "",
    "cheat/mine.sh": "true\n",
    "README.md": "# Two rounds\n",
} | {
    f"steps/round-{number}/{name}": text
    for number, id in ((1, "one"), (2, "two"))
    for name, text in {
        "instruction.md": "Do it.\n",
        "solution/solve.sh": "true\n",
        "tests/test_it.py": f"import pytest\n\n@pytest.mark.requirement('{id}')\ndef test_it():\n    pass\n",
    }.items()
}


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    for path, text in FILES.items():
        (tmp_path / "task" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "task" / path).write_text(text)
    return tmp_path / "task"


def cache_of(task: Path, *, image: str = "image", **options: Any) -> CheckCache:
    engine = cast("Engine", SimpleNamespace(name="sandbox", image_key=lambda task: image))
    cache = CheckCache(load_task(task), engine, replace(TrialOptions(environ={}), **options))
    cache.prepare(CHECKS)
    return cache


def keep_all(task: Path) -> None:
    cache = cache_of(task)
    for check in CHECKS:
        cache.keep(check, [])


def known(cache: CheckCache) -> list[Check]:
    return [check for check in CHECKS if cache.find(check) is not None]


def test_what_was_passed_is_known_as_long_as_nothing_changes(task: Path) -> None:
    assert known(cache_of(task)) == []
    keep_all(task)
    assert known(cache_of(task)) == CHECKS


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("steps/round-2/tests/test_it.py", [FIRST, ACTIVE]),
        ("steps/round-2/solution/solve.sh", [FIRST, ACTIVE]),
        ("steps/round-1/solution/solve.sh", []),
        ("tests/conftest.py", []),
        ("task.toml", []),
        ("cheat/mine.sh", [ORACLE, FIRST, SECOND, ACTIVE]),
        ("README.md", [ORACLE, FIRST, SECOND, ACTIVE]),
        ("steps/round-1/tests/.test_it.py.swp", CHECKS),
    ],
)
def test_a_change_makes_those_checks_anew_that_depend_on_it(task: Path, path: str, left: list[Check]) -> None:
    keep_all(task)
    with (task / path).open("a") as file:
        file.write("# more\n")
    assert known(cache_of(task)) == left


@pytest.mark.parametrize(
    "other",
    [{"image": "another"}, {"timeout_multiplier": 2.0}, {"environ": {"MODE": "fast"}}],
)
def test_another_image_other_limits_or_other_variables_are_another_check(task: Path, other: dict[str, Any]) -> None:
    keep_all(task)
    assert known(cache_of(task, **other)) == []


def test_another_version_of_this_package_is_another_check(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_all(task)
    monkeypatch.setattr("pytest_evocode.checks.check_cache.made_by", lambda: "a later one")
    assert known(cache_of(task)) == []


def test_a_check_that_failed_is_made_again_and_a_warning_is_told_again(task: Path) -> None:
    cache = cache_of(task)
    cache.keep(ORACLE, ["round-1 does not pass"])
    cache.keep(FIRST, [CheckWarning("not on another day")])
    (warning,) = cache_of(task).find(FIRST) or []
    assert known(cache_of(task)) == [FIRST]
    assert isinstance(warning, CheckWarning)
    assert warning == "not on another day"


def test_a_time_in_doubt_is_measured_again(task: Path) -> None:
    cache = cache_of(task)
    cache.prepare([Check("time")])
    cache.keep(Check("time"), [CheckWarning("the machine was busy")])
    assert cache.find(Check("time")) is None
    cache.keep(Check("time"), [])
    assert cache.find(Check("time")) == []


def test_what_was_checked_while_its_author_changed_it_is_not_known(task: Path) -> None:
    cache = cache_of(task)
    (task / "steps/round-1/solution/solve.sh").write_text("false\n")
    cache.keep(ORACLE, [])
    assert known(cache) == known(cache_of(task)) == []


def test_a_task_whose_variables_are_missing_is_checked_every_time(task: Path) -> None:
    (task / "task.toml").write_text(FILES["task.toml"].replace(":-plain", ""))
    keep_all(task)
    assert known(cache_of(task)) == []


@pytest.mark.parametrize("damage", [lambda path: path.write_text("{"), lambda path: path.write_text("[]")])
def test_a_damaged_file_is_none(task: Path, damage: Callable[[Path], object]) -> None:
    keep_all(task)
    for path in (task.parent / "cache/checks").iterdir():
        damage(path)
    assert known(cache_of(task)) == []


def test_what_nobody_has_used_for_long_is_dropped(task: Path) -> None:
    keep_all(task)
    old = time.time() - 31 * 86400
    for path in (task.parent / "cache/checks").iterdir():
        os.utime(path, (old, old))
    assert cache_of(task).find(ORACLE) == []  # Used again.
    _drop_old.cache_clear()
    cache_of(task).keep(FIRST, [])
    assert known(cache_of(task)) == [ORACLE, FIRST]


def test_the_author_s_cheats_are_checks_by_their_names_and_rounds(task: Path) -> None:
    for path in ("cheat/exit-zero.sh", "cheat/round-2/mine.sh", "cheat/round-2/notes.txt"):
        (task / path).parent.mkdir(exist_ok=True)
        (task / path).touch()
    names = [check.subject for check in checks_of(load_task(task)) if check.kind == "cheat"]
    generic = ["hard-coded", "exit-zero", "patched-assert", "shadowed-tests", "stubs"]
    generic += ["shadowed-pytest", "shadowed-modules"]
    assert names == [*generic, "exit-zero.sh", "mine", "round-2/mine"]

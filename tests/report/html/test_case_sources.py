"""The tests of failing cases: found where the suite is what it was, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_evocode.report.html.attempt import attempt_data, with_cases
from pytest_evocode.report.html.case_sources import CaseSources
from pytest_evocode.tasks.lockfile import content_hash
from tests.report.html.contract import faults
from tests.report.html.recordings import Played, failing, passing, stored, write_attempt

TESTS = """import pytest


@pytest.mark.requirement("price")
@pytest.mark.parametrize("grams", [1, 2])
def test_price(postage, grams):
    assert postage(grams) == 1


class TestMore:
    def test_more(self):
        assert False
"""
PRICE = TESTS.partition("import pytest\n\n\n")[2].partition("\n\n\n")[0]
MORE = "    def test_more(self):\n        assert False"
Write = Callable[..., Path]


@pytest.fixture(name="task")
def _task(tmp_path: Path) -> Write:
    def write(script: bool = False) -> Path:
        directory = tmp_path / "shop"
        files = {
            "task.toml": '[[steps]]\nname = "round-1"\n[[steps]]\nname = "round-2"\n',
            "environment/Dockerfile": "FROM scratch\n",
            "steps/round-1/tests/test_price.py": TESTS,
            "tests/test_shared.py": "def test_shared(): ...\n",
            "secret.py": "def test_secret(): ...\n",
        }
        for name in ("round-1", "round-2"):
            files[f"steps/{name}/instruction.md"] = "Write it.\n"
            files |= {f"steps/{name}/tests/test.sh": "true\n"} if script else {}
        for place, text in files.items():
            path = directory / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return directory

    return write


@pytest.mark.parametrize(
    ("case", "test"),
    [
        ("round-1/test_price.py::test_price[1]", f"steps/round-1/tests/test_price.py:4\n{PRICE}"),
        ("round-1/test_price.py::TestMore::test_more", f"steps/round-1/tests/test_price.py:11\n{MORE}"),
        ("test_shared.py::test_shared", "tests/test_shared.py:1\ndef test_shared(): ..."),
        ("round-1/test_price.py::test_gone", ""),
        ("round-1/test_price.py::TestMore", ""),
        ("round-9/test_price.py::test_price", ""),
        ("round-1/../../../secret.py::test_secret", ""),
        ("/etc/passwd::root", ""),
        ("has-line-1", ""),
        ("", ""),
    ],
)
def test_the_test_of_a_native_suite_s_case(task: Write, case: str, test: str) -> None:
    directory = task()
    sources = CaseSources(directory)
    assert sources.of(content_hash(directory), "round-2", case) == test
    assert sources.of("another", "round-2", case) == ""
    assert sources.of("", "round-2", case) == ""
    assert CaseSources(None).of("", "round-2", case) == ""


def test_a_script_s_tests_are_found_from_wherever_it_starts_pytest(task: Write) -> None:
    directory = task(script=True)
    sources, known = CaseSources(directory), content_hash(directory)
    for place in ("test_price.py", "tests/test_price.py", "../tests/test_price.py", "/tests/test_price.py"):
        assert sources.of(known, "round-1", f"{place}::test_price[2]").endswith(PRICE)
    # It is not what verifies another round.
    assert sources.of(known, "round-2", "test_price.py::test_price[2]") == ""


def test_a_link_out_of_the_suite_shows_nothing(task: Write, tmp_path: Path) -> None:
    directory = task()
    (tmp_path / "other.py").write_text("def test_other(): ...\n")
    (directory / "steps/round-1/tests/test_linked.py").symlink_to(tmp_path / "other.py")
    assert CaseSources(directory).of(content_hash(directory), "round-1", "round-1/test_linked.py::test_other") == ""


def test_failing_cases_have_it_in_a_report(task: Write, tmp_path: Path) -> None:
    directory = task()
    name = "round-1/test_price.py::test_price[{}]"
    played = Played([failing(name.format(1)), passing(name.format(2))])
    attempt, _ = with_cases(stored(write_attempt(tmp_path / "attempt", played)))
    record = attempt.record.model_copy(update={"task_hash": content_hash(directory)})
    data = attempt_data(replace(attempt, record=record), id="a", sources=CaseSources(directory))
    assert faults(data, "AttemptData") == []
    assert [case["test"] for case in data["rounds"][0]["cases"]] == [
        f"steps/round-1/tests/test_price.py:4\n{PRICE}",
        "",
    ]

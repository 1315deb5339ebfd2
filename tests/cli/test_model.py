"""``evocode results --view model``, and the assurance of ``evocode plan``."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_evocode.metrics.round_model import posterior
from pytest_evocode.report.views import FORMATS
from tests.cli.conftest import Evocode
from tests.metrics.round_draws import suggested
from tests.result_trees import write_attempt

VIEW = ("results", "--view", "model")


@pytest.fixture(autouse=True)
def _results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A strong and a weak agent, and a control; draws are synthetic."""
    for task in range(6):
        for number in (1, 2):
            for agent, outcomes in (("a_b&c", "ppp"), ("weak", "fpf" if task % 2 else "fff"), ("oracle", "ppp")):
                write_attempt(tmp_path / "evocode-results", f"t{task}", agent, outcomes, number=number)

    monkeypatch.setattr(posterior, "sampled", suggested)


@pytest.mark.stats
def test_the_model_has_agents_differences_tasks_effects_variance_and_diagnostics(evocode: Evocode) -> None:
    found = evocode(*VIEW, "--json").json
    assert [*found] == ["chain"]
    chain = found["chain"]
    assert [*chain] == ["agents", "differences", "tasks", "effects", "variance", "groups", "diagnostics"]
    assert [row["agent"] for row in chain["agents"]] == ["a_b&c", "weak"]
    assert chain["groups"] == [["a_b&c"], ["weak"]]
    (difference,) = chain["differences"]
    assert (difference["agent"], difference["than"]) == ("a_b&c", "weak")
    assert difference["low"] < difference["difference"] < difference["high"]
    assert difference["better"] > 0.99
    assert len(chain["tasks"]) == 6
    assert [row["effect"] for row in chain["effects"]] == ["each further round", "the round before was not passed"]
    assert sum(row["share"] for row in chain["variance"]) == pytest.approx(100)
    assert chain["diagnostics"]["r_hat"] <= posterior.WORST_R_HAT


@pytest.mark.stats
def test_the_model_has_every_format(evocode: Evocode) -> None:
    ran = {form: evocode(*VIEW, "--format", form) for form in FORMATS}
    assert {form: each.status for form, each in ran.items()} == dict.fromkeys(FORMATS, 0)
    assert "discrimination" in ran["text"].out
    assert "R-hat at most" in ran["markdown"].out
    (others,) = re.findall(r"--table=NAME prints another: (.+)", ran["csv"].err)
    more = (evocode(*VIEW, "--format=csv", f"--table={name}").out for name in others.split(", "))
    tables = [list(csv.reader(io.StringIO(text))) for text in (ran["csv"].out, *more)]
    assert [len(table) for table in tables] == [3, 2, 7, 3, 7]
    assert "a\\_b\\&c" in ran["latex"].out


@pytest.mark.stats
def test_assurance_is_told_where_it_is_asked_for(evocode: Evocode) -> None:
    plain, asked = (evocode("plan", "a_b&c", "weak", "--json", *more).json for more in ((), ("--assurance",)))
    assured = asked[0].pop("assurance")
    assert asked == plain
    assert [*assured[0]] == ["tasks", "attempts", "assurance"]
    assert all(0 <= each["assurance"] <= 1 for each in assured)
    assert "assurance: probability in per cent" in evocode("plan", "a_b&c", "weak", "--assurance").out
    alone = evocode("plan", "weak", "--assurance")
    assert (alone.status, "name B, too" in alone.err) == (2, True)


@pytest.mark.stats
def test_too_few_attempts_are_refused_with_the_reason(evocode: Evocode, tmp_path: Path) -> None:
    for agent in ("one", "two"):
        for task in range(6):
            write_attempt(tmp_path / "few", f"t{task}", agent, "pf")
    for ran in (evocode(*VIEW, "few"), evocode("plan", "one", "two", "few", "--assurance")):
        assert ran.status == 1
        assert "two attempts at 5 tasks are needed" in ran.err


def test_without_the_extra_a_message_says_how_to_install_it(evocode: Evocode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpyro", None)
    for ran in (evocode(*VIEW), evocode("plan", "a_b&c", "weak", "--assurance")):
        assert ran.status == 1
        assert "pip install 'pytest-evocode[stats]'" in ran.err


def test_what_samples_is_loaded_by_no_other_view() -> None:
    ask = "import sys, pytest_evocode.cli.comparisons, pytest_evocode.cli.tables; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", ask], check=True, capture_output=True, text=True).stdout.split()
    assert {"jax", "numpy", "numpyro"}.isdisjoint(loaded)

"""Times against limits on machines that may be busy, and how busy they are."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import cast

import pytest

from pytest_evocode.checks.catalogue import CheckWarning
from pytest_evocode.checks.cheating import covering
from pytest_evocode.checks.machine_load import Slowdown, judged, slowdown_of
from pytest_evocode.checks.played_attempt import PlayedRound, SharedRun
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.verifier import SuiteRun


def test_what_stays_below_a_third_of_its_limit_is_fine_however_busy_the_machine() -> None:
    assert judged("the suite", 3.0, None, 9.0, "timeout_sec") == []


def test_what_is_slow_on_an_idle_machine_is_a_finding_that_says_what_it_goes_by() -> None:
    (line,) = judged("the suite of round-1", 30.0, 1.5, 30.0, "timeout_sec of [verifier]")
    assert line == (
        "the suite of round-1 took 30.0 s, more than a third of its limit of 30 s, while a fixed piece of work took "
        "1.5 times as long as on an idle machine, and slower machines may exceed it; "
        "make it quicker, or raise timeout_sec of [verifier]"
    )
    assert not isinstance(line, CheckWarning)


@pytest.mark.parametrize(("slowdown", "said"), [(4.0, "check it again when the machine"), (None, "is not known")])
def test_what_may_be_slow_only_because_the_machine_is_busy_is_a_warning(slowdown: float | None, said: str) -> None:
    (line,) = judged("the suite", 30.0, slowdown, 30.0, "timeout_sec")
    assert isinstance(line, CheckWarning)
    assert said in line


def test_a_piece_of_work_is_as_slow_as_its_time_is_longer_than_that_of_its_processor() -> None:
    assert slowdown_of("10.00 10.90\n0m0.280s 0m0.020s\n0m0.0s 0m0.0s\n") == 3.0
    assert slowdown_of("10.00 10.10\n0m0.120s 0m0.000s\n") == 1.0  # Clocks tick in hundredths.


def measured(slowdown: Slowdown, seconds: float) -> float | None:
    with slowdown.measured():
        time.sleep(seconds)
    return slowdown.factor


def test_slowness_is_measured_while_something_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_evocode.checks.machine_load._INTERVAL", 0.001)
    found = measured(Slowdown(lambda script: "1.00 1.40\n0m0.200s 0m0.000s\n"), 0.1)
    assert found == 2.0
    here = measured(Slowdown(), 0.1)
    assert here is not None
    assert here >= 1


def test_where_no_piece_of_work_can_be_done_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_evocode.checks.machine_load._INTERVAL", 0.001)

    def fail(script: str) -> str:
        raise EnvironmentFault("gone")

    assert measured(Slowdown(fail), 0.05) is None
    assert measured(Slowdown(lambda script: "sh: not found"), 0.05) is None


# What has to be tried where.


def played(name: str, *cases: str, script: bool = False) -> PlayedRound:
    """A round that passed these cases with its solution."""
    round_ = SimpleNamespace(name=name, has_script=script)
    return cast("PlayedRound", SimpleNamespace(round=round_, pinned=dict.fromkeys(cases, "")))


def test_the_last_round_covers_all_cases_that_were_not_retired() -> None:
    rounds = [played("round-1", "a", "b"), played("round-2", "b", "c"), played("round-3", "b", "c", "d")]
    assert [(each.round.name, cases) for each, cases in covering(rounds)] == [("round-3", ()), ("round-1", ("a",))]


def test_a_script_runs_all_of_its_cases_and_one_without_cases_is_always_run() -> None:
    rounds = [played("round-1", "a", script=True), played("round-2", script=True), played("round-3", "b", script=True)]
    assert [(each.round.name, cases) for each, cases in covering(rounds)] == [
        ("round-3", ()),
        ("round-2", ()),
        ("round-1", ()),
    ]


def test_a_shared_run_is_made_once_by_the_first_who_asks() -> None:
    runs: list[int] = []

    def run() -> SuiteRun:
        runs.append(1)
        return SuiteRun("", None, "a fault")

    shared = SharedRun(run)
    assert runs == []
    assert shared.result() is shared.result()
    assert runs == [1]


def test_what_kept_a_shared_run_from_a_result_is_told_to_each_who_asks() -> None:
    def run() -> SuiteRun:
        raise EnvironmentFault("gone")

    shared = SharedRun(run)
    for _ in range(2):
        with pytest.raises(EnvironmentFault, match="gone"):
            shared.result()

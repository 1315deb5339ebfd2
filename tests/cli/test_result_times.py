"""``evocode results --time``: where the time of rounds went."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_evocode.results.phases import Phases
from tests.cli.conftest import Evocode
from tests.result_trees import write_attempt


def phases(index: int) -> Phases:
    """The phases of a round, each a multiple of its index."""
    return Phases(setup=0.1, snapshot=0.2 * index, bookkeeping=0.1, waiting=2.0 * index, suite=3.0)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two attempts of one agent at three rounds, and one of an agent whose records are older."""
    results = tmp_path / "evocode-results"
    for number in (1, 2):
        found = {index: phases(index * number) for index in (1, 2)}
        write_attempt(results, "ledger", "gpt", "pf-", number=number, phases=found)
    write_attempt(results, "mesh", "old", "pp")
    return results


@pytest.mark.usefixtures("results")
def test_each_agent_has_medians_over_its_rounds(evocode: Evocode) -> None:
    ran = evocode("results", "-q", "--time")
    assert ran.lines == [
        "agent agent (median s) verifier (median s) queued (median s) overhead (median s) rounds",
        "gpt 1.50 n/a 4.00 0.50 4",
        "old 1.50 n/a n/a n/a 2",
        "not recorded of 2 of 6 rounds, and left out: queued and overhead",
    ]


@pytest.mark.usefixtures("results")
def test_rounds_and_tasks_have_rows_of_their_own(evocode: Evocode) -> None:
    ran = evocode("results", "--by", "round", "--time")
    assert ran.lines[:4] == [
        "gpt:",
        "round agent (median s) verifier (median s) queued (median s) overhead (median s) rounds",
        "1 1.50 n/a 3.00 0.40 2",
        "2 1.50 n/a 6.00 0.70 2",
    ]
    assert ran.lines[4] == "3 n/a n/a n/a n/a 0"
    assert sum("not recorded" in line for line in ran.lines) == 1
    assert "ledger 1.50 n/a 4.00 0.50 4" in evocode("results", "--by", "task", "--time").lines


@pytest.mark.usefixtures("results")
def test_json_has_all_phases_in_full(evocode: Evocode) -> None:
    gpt, old = evocode("results", "--by", "round", "--time", "--json").json["rows"]
    assert (gpt["time"]["rounds"], gpt["time"]["silent"]) == (4, 0)
    assert gpt["time"]["durations"]["waiting"] == {"median": 4.0, "mean": 4.5, "total": 18.0, "known": 4}
    assert gpt["time_groups"]["1"]["durations"]["suite"] == {"median": 3.0, "mean": 3.0, "total": 6.0, "known": 2}
    assert set(gpt["groups"]) == set(gpt["time_groups"])
    assert (old["time"]["silent"], list(old["time"]["durations"])) == (2, ["agent"])
    assert "time" not in evocode("results", "--json").json["rows"][0]


@pytest.mark.usefixtures("results")
def test_export_has_a_column_for_each_phase(evocode: Evocode) -> None:
    rows = evocode("export", "--json").json
    first = next(row for row in rows if row["agent"] == "gpt")
    assert (first["waiting_seconds"], first["suite_seconds"], first["overhead_seconds"]) == (2.0, 3.0, 0.3)
    assert (first["agent_seconds"], first["reading_seconds"]) == (1.5, None)
    assert next(row for row in rows if row["agent"] == "old")["overhead_seconds"] is None


def test_a_timeline_says_what_a_run_waited_for_and_draws_attempts_and_slots(evocode: Evocode, tmp_path: Path) -> None:
    results, began = tmp_path / "evocode-results", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
    first = Phases(agent=20.0, suite=10.0, slot_seconds=10.0, turn_began=began, suite_began=began + 20)
    second = Phases(agent=10.0, suite=30.0, slot_seconds=30.0, turn_began=began + 20, suite_began=began + 30)
    write_attempt(results, "ledger", "gpt", "pp", phases={1: first, 2: second}, ended="2026-01-02T03:05:05+00:00")
    write_attempt(results, "ledger", "gpt", "pp", run="2026-02-02__03-04-05")  # Which tells nothing.
    ran = evocode("timeline", "-q")
    assert ran.lines == [
        "critical path of run 2026-01-02__03-04-05, 60.0 s, by stage",
        "stage seconds share what it is",
        "agent 30.0 50 % the agent's turn",
        "suite 30.0 50 % the suite's own command",
        "",
        "its longest pieces",
        "from seconds stage attempt round",
        "30.0 30.0 suite ledger gpt round-2",
        "0.0 20.0 agent ledger gpt round-1",
        "20.0 10.0 agent ledger gpt round-2",
        "",
        "attempts, as they began",
        "attempt from seconds turns between suites queued chart",
        f"ledger gpt 0.0 60.0 30.0 0.0 40.0 0.0 {'#' * 30}{'=' * 30}",
        "",
        "slots that suites held, as few as the records allow",
        "slot held share chart",
        f"1 40.0 67 % {'=' * 40}",
    ]
    assert evocode("timeline", "--json").json["pieces"][0] == {
        "begin": 30.0, "seconds": 30.0, "stage": "suite", "attempt": "ledger gpt", "round": "round-2",
    }  # fmt: skip
    assert (
        "no record of run 2026-02-02__03-04-05 tells when" in evocode("timeline", "--run", "2026-02-02__03-04-05").err
    )

"""How often requirements break and are repaired, by rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.hazard import Event, EventHistory, Hazard, hazards
from pytest_evocode.metrics.statistics.intervals import bounded_interval
from pytest_evocode.metrics.statistics.survival import LifeTableRow, added, clustered_intervals, kaplan_meier
from pytest_evocode.results.records import Case, CaseStatus, Outcome, RoundRecord, TaskFacts, Verdict
from tests.metrics.conftest import make_record

STATUSES: dict[str, CaseStatus] = {"p": "passed", "f": "failed", "s": "skipped", "e": "error"}


def attempt(*rounds: str | Mapping[str, str], task: str = "t", number: int = 1) -> list[RoundRecord]:
    """The rounds of one attempt, with a letter per case: of x, y and z, or by id; ``!`` is a fault, ``-`` the end."""
    records = []
    for index, cases in enumerate(rounds, 1):
        by_id = dict(cases) if isinstance(cases, Mapping) else dict(zip("xyz", cases, strict=False))
        outcome: Outcome = "passed" if {*by_id.values()} == {"p"} else "failed"
        outcome = "error" if cases == "!" else "not reached" if cases == "-" else outcome
        fault = "infrastructure" if outcome == "error" else None
        records.append(make_record(task, index, outcome, of=len(rounds), attempt=number, cases=by_id, fault=fault))
    return records


def histories(
    *attempts: Iterable[RoundRecord], facts: Mapping[str, TaskFacts] | None = None
) -> dict[Event, EventHistory]:
    found, nameless = hazards(Grid.of(record for each in attempts for record in each), facts=facts)
    assert nameless == []
    return found


def numbers(found: EventHistory) -> dict[int, tuple[int, int, int]]:
    """How many were at risk, to how many it happened, and how many were censored."""
    return {rounds: counts(each) for rounds, each in found.by_rounds.items()}


def counts(found: Hazard) -> tuple[int, int, int]:
    return found.at_risk, found.events, found.censored


def test_the_clock_of_breaking_starts_where_a_requirement_passes_that_of_repair_where_it_broke() -> None:
    found = histories(attempt("p", "p", "f", "f", "p", "f"))
    assert numbers(found["break"]) == {1: (2, 1, 0), 2: (1, 1, 0)}
    assert numbers(found["repair"]) == {1: (1, 0, 1), 2: (1, 1, 0)}
    assert numbers(found["catch-up"]) == {}
    assert found["break"].overall.percent == pytest.approx(200 / 3)


def test_what_fails_when_it_comes_is_to_catch_up_and_can_break_only_then() -> None:
    found = histories(attempt("f", "f", "p", "p"))
    assert numbers(found["catch-up"]) == {1: (1, 0, 0), 2: (1, 1, 0)}
    assert numbers(found["break"]) == {1: (1, 0, 0), 2: (0, 0, 1)}
    assert numbers(found["repair"]) == {}


@pytest.mark.parametrize("gap", ["!", "s"])
def test_a_fault_and_a_skipped_case_are_no_events_and_hide_what_follows_until_it_changes(gap: str) -> None:
    found = histories(attempt("p", gap, "f", "f", "p", "f"))
    assert numbers(found["break"]) == {1: (1, 1, 1)}
    assert numbers(found["repair"]) == {1: (0, 0, 1)}


def test_the_end_of_an_attempt_is_no_event() -> None:
    found = histories(attempt("p", "p", "-", "-"))
    assert numbers(found["break"]) == {1: (1, 0, 0), 2: (0, 0, 1)}


def test_a_retired_requirement_is_no_event() -> None:
    first, second = attempt("pp", "pp", {"y": "f"}), attempt("pp", {"x": "p"}, {"y": "p"}, number=2)
    found = histories(first, second)
    # In the second attempt's round 2, y was required and not run; x is retired in round 3 of both.
    assert numbers(found["break"]) == {1: (4, 1, 1), 2: (1, 1, 2)}
    assert numbers(found["repair"]) == {1: (1, 1, 1)}


def test_a_suite_that_broke_off_has_broken_all_that_it_should_have_run() -> None:
    found = histories(attempt("pp", ""), attempt("pp", "pp", number=2))
    assert numbers(found["break"])[1] == (4, 2, 0)


def test_what_no_attempt_tells_is_not_judged() -> None:
    assert numbers(histories(attempt("pp", "", "pp"))["break"]) == {1: (0, 0, 2)}


def test_the_cases_of_one_name_are_one_requirement_and_those_of_a_later_round_another() -> None:
    def record(index: int, **statuses: str) -> RoundRecord:
        cases = tuple(Case(id=id_, status=STATUSES[each], requirement="R") for id_, each in statuses.items())
        return make_record("t", index, "failed", of=3).model_copy(
            update={"verdict": Verdict(reward=0, rewards={}, cases=cases)}
        )

    found = histories([record(1, a="p", b="p"), record(2, a="p", b="f", c="f"), record(3, a="p", b="p", c="p")])
    assert numbers(found["break"]) == {1: (1, 1, 2)}
    assert numbers(found["repair"]) == {1: (1, 1, 0)}
    assert numbers(found["catch-up"]) == {1: (1, 1, 0)}


def test_a_tasks_reference_tells_what_its_rounds_require() -> None:
    reference = Grid.of(attempt("pp", "pp", "pp"))
    (found, _) = hazards(Grid.of(attempt("pp", "", {"x": "p", "y": "p", "z": "f"})), reference)
    assert numbers(found["break"]) == {1: (2, 2, 2)}
    assert numbers(found["repair"]) == {1: (2, 2, 0)}
    assert numbers(found["catch-up"]) == {}


def test_a_round_with_several_change_types_is_under_each() -> None:
    facts = TaskFacts(rounds=("a", "b", "c"), change_types=((), ("conflict",), ("conflict", "extension")))
    found = histories(attempt("ppp", "fpp", "fpf"), facts={"t": facts})
    by_change = {change: counts(each) for change, each in found["break"].by_change.items()}
    assert by_change == {"conflict": (5, 2, 0), "extension": (2, 1, 0)}
    assert histories(attempt("p", "f"))["break"].by_change == {}


def test_a_task_whose_records_do_not_tell_cases_apart_is_named() -> None:
    totals = make_record("u", 1, "failed").model_copy(update={"verdict": Verdict(reward=0, rewards={}, counts=(1, 2))})
    found, nameless = hazards(Grid.of([*attempt("p", "f"), totals]))
    assert nameless == ["u"]
    assert found["break"].overall.events == 1


def test_intervals_are_over_tasks_from_five_on_and_else_over_attempts() -> None:
    tasks = [attempt("ppf", "pff", task=f"t{number}") for number in range(5)]
    attempts = [attempt("ppf", "pff", number=number) for number in range(5)]
    for found, clusters in ((histories(*tasks), "tasks"), (histories(*attempts), "attempts")):
        assert found["break"].clusters == clusters
        interval = found["break"].by_rounds[1].interval
        assert interval is not None
        expected = bounded_interval([1] * 5, 0, 1, sizes=[2] * 5)
        assert (interval.low, interval.high) == pytest.approx([100 * end for end in expected])
    few = histories(*(attempt("p", "f", number=number) for number in range(1, 5)))["break"]
    assert (few.clusters, few.overall.interval, few.without[1].interval) == (None, None, None)


def test_where_few_tasks_are_left_at_risk_there_is_no_interval() -> None:
    found = histories(*(attempt("p", "f" if number else "p", "p", task=f"t{number}") for number in range(6)))["break"]
    assert found.by_rounds[1].interval is not None
    assert found.by_rounds[2].interval is None
    assert found.without[2].interval is None


def test_an_interval_of_curves_begins_with_that_of_the_share_and_counts_tasks_not_requirements() -> None:
    whole = [{1: LifeTableRow(20, failed=20 * (number % 3 == 0)), 2: LifeTableRow(20)} for number in range(12)]
    found = clustered_intervals(whole, resamples=20_000)
    low, high = bounded_interval([20 * (number % 3 != 0) for number in range(12)], 0, 1, sizes=[20] * 12)
    assert found[1] == pytest.approx((low, high), abs=0.01)
    greenwood = kaplan_meier(added(whole))[1]
    assert greenwood.low is not None
    assert greenwood.high is not None
    assert high - low > 2 * (greenwood.high - greenwood.low)
    assert clustered_intervals(whole) == clustered_intervals(whole)


def test_where_nothing_breaks_the_curve_has_an_interval_all_the_same() -> None:
    low, high = clustered_intervals([{1: LifeTableRow(9)}] * 8)[1]
    assert 0.6 < low < 0.9
    assert high == 1


@given(st.lists(st.text("pfs!-", min_size=1, max_size=6), min_size=1, max_size=4))
def test_who_is_followed_on_is_who_came_as_far_without_the_event(attempts: list[str]) -> None:
    longest = max(map(len, attempts))
    records = (attempt(*each.ljust(longest, "-"), number=number) for number, each in enumerate(attempts, 1))
    for history in hazards(Grid.of(record for each in records for record in each))[0].values():
        left = None
        for rounds, each in sorted(history.by_rounds.items()):
            assert left is None or each.at_risk + each.censored == left
            left = each.at_risk - each.events
            if rounds in history.without:
                assert 0 <= history.without[rounds].percent <= 100
        assert not left  # All are followed until something becomes of them.

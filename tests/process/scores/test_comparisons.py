"""Agents side by side: means, rank orders under other weights, and process against outcome."""

from __future__ import annotations

from random import Random

import pytest

from pytest_evocode.process.scores.rigor_score import PARTS, AttemptProcess, Pillar, RoundProcess
from pytest_evocode.process.scores.summary import (
    as_json,
    by_task,
    sensitivity,
    summarise_agent,
    summarise_task,
    within_agent,
    within_tasks,
)
from pytest_evocode.report.process import outcome_lines, process_lines


def attempt(
    agent: str, task: str = "t", number: int = 1, *, edited: bool = True, outcome: float | None = None, **values: float
) -> AttemptProcess:
    """Return an attempt of one round with some pillars."""
    pillars = {name: Pillar(value=values.get(name), parts={}) for name in PARTS}
    round_ = RoundProcess(round="round-1", index=1, edited=edited, pillars=pillars, outcome=outcome)
    return AttemptProcess(task=task, agent=agent, attempt=number, rounds=(round_,))


def test_attempts_are_averaged_in_their_task_and_tasks_in_their_agent() -> None:
    # Task a: (1 + 0) / 2 = 0.5, task b: 1; the agent: 0.75, and not the mean of the three attempts.
    attempts = [attempt("x", "a", 1, pf=1), attempt("x", "a", 2, pf=0), attempt("x", "b", 1, pf=1)]
    tasks = by_task(attempts)["x"]
    assert summarise_task(tasks["a"]).values["pf"] == 0.5
    whole = summarise_agent(tasks)
    assert (whole.values["pf"], whole.attempts) == (0.75, 3)


def test_a_row_has_all_pillars_and_null_where_nothing_was_measured() -> None:
    (row,) = as_json({"x": summarise_agent(by_task([attempt("x", pf=0.5, re=1)])["x"])})
    beside = ["judged", "executed", "claimed", "interval", "rounds_without_a_run", "edited_rounds"]
    assert list(row)[1:8] == ["pf", "vc", "re", "aq", "ati", "tad", "ee"]
    assert list(row)[8:] == ["rigor_score", "coverage", *beside, "attempts"]
    assert row["vc"] is None
    # (0.15 * 0.5 + 0.20 * 1) / 0.35 over 35 % of the weight
    assert row["rigor_score"] == pytest.approx(0.275 / 0.35)
    assert row["coverage"] == pytest.approx(0.35)


def test_the_score_has_an_interval_over_tasks_in_the_report_and_in_json() -> None:
    values = {"a": 0.2, "b": 0.4, "c": 0.5, "d": 0.6, "e": 0.8}
    attempts = [attempt("x", task, pf=value, re=value) for task, value in values.items()]
    # The mean is 0.5 and the standard error sqrt(0.05 / 5) = 0.1; with t = 2.776 that makes 0.5 -+ 0.278.
    line = "x: RigorScore 95 % 0.22 to 0.78 over tasks; nothing was run after an edit in 0 of 5 rounds with an edit"
    assert line in process_lines(attempts)
    (row,) = as_json({"x": summarise_agent(by_task(attempts)["x"])})
    assert row["interval"] == pytest.approx([0.2224, 0.7776], abs=1e-4)
    few = list(process_lines(attempts[:4]))
    assert any(line.startswith("x: RigorScore too few tasks for an interval; ") for line in few)
    assert as_json({"x": summarise_agent(by_task(attempts[:4])["x"])})[0]["interval"] is None


def test_the_interval_is_that_of_the_score_where_pillars_were_measured_in_some_tasks_only() -> None:
    """And not that of the mean of the tasks' scores, which is another number."""
    found = [attempt("x", task, pf=0.9) for task in "abcdefgh"] + [attempt("x", task, pf=0.9, tad=0.0) for task in "ij"]
    whole = summarise_agent(by_task(found)["x"])
    assert whole.score is not None
    # (0.15 * 0.9 + 0.20 * 0) / 0.35 = 0.386; the tasks' scores have a mean of 0.797.
    assert whole.score.value == pytest.approx(0.3857, abs=1e-4)
    assert whole.interval is not None
    assert whole.interval.low <= whole.score.value <= whole.interval.high
    other = summarise_agent(by_task([*found, attempt("x", "k", tad=1.0)])["x"])
    assert other.score is not None
    assert other.interval is not None
    assert 0 <= other.interval.low < other.score.value < other.interval.high <= 1


def test_an_interval_stays_between_nought_and_one() -> None:
    attempts = [attempt("x", task, pf=value) for task, value in zip("abcde", (0.0, 0.0, 0.0, 0.0, 1.0), strict=True)]
    (row,) = as_json({"x": summarise_agent(by_task(attempts)["x"])})
    assert row["interval"][0] == 0
    assert row["interval"][1] < 1


def test_an_attempt_without_an_edit_has_no_score_and_its_abstention_counts() -> None:
    alone = attempt("x", "a", edited=False, aq=1)
    assert alone.score() is None
    assert as_json({"x": summarise_agent(by_task([alone])["x"])})[0]["rigor_score"] is None
    both = summarise_agent(by_task([alone, attempt("x", "b", pf=0)])["x"])
    assert both.score is not None
    assert both.score.value == pytest.approx(0.10 / 0.25)


def test_other_weights_may_turn_the_order_round() -> None:
    agents = {"planner": {"pf": 1.0, "re": 0.5}, "tester": {"pf": 0.4, "re": 0.9}}
    # planner (0.15 + 0.10) / 0.35 = 0.714, tester (0.06 + 0.18) / 0.35 = 0.686; with pf halved 0.636 against 0.764.
    changed = {(each.pillar, each.factor): each for each in sensitivity(agents)}
    assert not changed["pf", 0.5].kept
    assert changed["pf", 0.5].order == ("tester", "planner")
    assert changed["pf", 1.5].kept
    assert changed["tad", 0.5].kept
    assert len(changed) == 14


def test_a_correlation_has_its_number_of_tasks_and_an_interval() -> None:
    found = within_agent({"a": (0.1, 0.3), "b": (0.4, 0.5), "c": (0.5, 0.4), "d": (0.9, 1.0), "e": (0.1, 0.3)})
    # Deviations (-0.3, -0.2), (0, 0), (0.1, -0.1), (0.5, 0.5), (-0.3, -0.2): 0.36 / sqrt(0.44 * 0.34) = 0.9308
    assert found.r == pytest.approx(0.9308, abs=1e-4)
    assert found.tasks == 5
    assert found.r is not None
    assert found.interval is not None
    assert found.interval.low < found.r < found.interval.high < 1


def test_below_five_tasks_there_is_no_correlation() -> None:
    points = {task: (number / 10, number / 7) for number, task in enumerate("abcd")}
    for found in (within_agent(points), within_tasks({"x": points, "y": points | {"e": (0.0, 0.0)}})):
        assert (found.r, found.tasks, found.interval) == (None, 4, None)
        assert found.reason == "no correlation below 5 tasks"


def test_a_side_that_does_not_vary_has_no_correlation() -> None:
    points = {task: (0.1 * number, 0.5) for number, task in enumerate("abcdef")}
    assert within_agent(points).reason == "one side does not vary"
    once = within_agent(points | {"a": (0.0, 0.9)})
    assert once.r is not None
    assert (once.interval, once.reason) == (None, "without one of the tasks one side does not vary")


def test_how_hard_a_task_is_and_how_good_an_agent_is_is_taken_out() -> None:
    wave = [0.02, -0.03, 0.05, -0.01, 0.04, -0.07]
    hard = [0.1, 0.9, 0.4, 0.6, 0.2, 0.8]
    # Better agents are better on both sides and hard tasks worse on one; beyond that the two go apart.
    pairs = {
        agent: {
            str(task): (level + hard[task] + side * wave[task], level - hard[task] - side * wave[task])
            for task in range(6)
        }
        for agent, level, side in (("x", 0.0, 1), ("y", 1.0, -1))
    }
    assert within_tasks(pairs).r == pytest.approx(-1)
    # With points that are missing the means of agents and tasks depend on each other, and are still taken out whole.
    del pairs["x"]["3"], pairs["y"]["5"]
    third = {task: (3 + hard[int(task)], 5 - hard[int(task)]) for task in "012345"}
    assert within_tasks({**pairs, "z": third}).r == pytest.approx(-1)
    assert within_tasks({"x": pairs["x"]}).tasks == 0


def test_agents_that_differ_on_average_only_do_not_correlate() -> None:
    random = Random(0)
    alarms = 0
    for _ in range(200):
        tasks = [(random.gauss(0, 1), random.gauss(0, 1)) for _ in range(7)]
        pairs = {
            agent: {str(n): (level + x + random.gauss(0, 1), level + y + random.gauss(0, 1))
                    for n, (x, y) in enumerate(tasks)}
            for agent, level in (("x", 0), ("y", 1), ("z", 2))
        }  # fmt: skip
        interval = within_tasks(pairs).interval
        assert interval is not None
        alarms += not interval.low <= 0 <= interval.high
    # 5 % is nominal; centred by task only, and with the points drawn, it was more than half.
    assert 2 <= alarms <= 18


def test_the_report_says_on_how_much_a_correlation_stands() -> None:
    attempts = [
        attempt("x", "a", pf=0.2, outcome=0.9),
        attempt("x", "b", pf=0.7, outcome=0.2),
        attempt("y", "a", pf=0.3, outcome=1.0),
        attempt("y", "b", pf=0.8, outcome=0.3),
    ]
    assert list(outcome_lines(attempts))[2:] == [
        "task            x            y",
        "a     0.20 / 0.90  0.30 / 1.00",
        "b     0.70 / 0.20  0.80 / 0.30",
        "x, over tasks: n/a (2 tasks; no correlation below 5 tasks)",
        "y, over tasks: n/a (2 tasks; no correlation below 5 tasks)",
        "all agents, within tasks: n/a (2 tasks; no correlation below 5 tasks)",
    ]
    scores = [(0.1, 0.3), (0.4, 0.5), (0.5, 0.4), (0.9, 1.0), (0.1, 0.3)]
    one = [attempt("x", task, pf=pf, outcome=outcome) for task, (pf, outcome) in zip("abcde", scores, strict=True)]
    assert list(outcome_lines(one))[-1] == "x, over tasks: r = 0.93 (5 tasks, 95 % -0.96 to 1.00)"


def test_the_report_has_a_row_for_each_agent_task_and_round() -> None:
    lines = list(process_lines([attempt("x", "a", pf=0.5, re=1), attempt("y", "a", edited=False)]))
    assert lines[2:9] == [
        "agent, task, round    PF   VC    RE   AQ  ATI  TAD   EE      RigorScore  outcome",
        "x                   0.50  n/a  1.00  n/a  n/a  n/a  n/a  0.79 over 35 %      n/a",
        "  a                 0.50  n/a  1.00  n/a  n/a  n/a  n/a  0.79 over 35 %      n/a",
        "    round-1         0.50  n/a  1.00  n/a  n/a  n/a  n/a  0.79 over 35 %      n/a",
        "y                    n/a  n/a   n/a  n/a  n/a  n/a  n/a             n/a      n/a",
        "  a                  n/a  n/a   n/a  n/a  n/a  n/a  n/a             n/a      n/a",
        "    round-1          n/a  n/a   n/a  n/a  n/a  n/a  n/a             n/a      n/a",
    ]

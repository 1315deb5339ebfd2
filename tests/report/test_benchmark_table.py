"""The summary of a session, word for word."""

from __future__ import annotations

import pytest

from pytest_evocode.metrics.flaky import FlakyRound, flaky_rounds
from pytest_evocode.metrics.grid import by_agent
from pytest_evocode.metrics.scores import RunMode
from pytest_evocode.report.benchmark import benchmark_lines, lowest_score
from pytest_evocode.report.score_lines import flaky_lines
from pytest_evocode.results.records import Case, Outcome, RoundRecord, Usage, Verdict

LEGEND = ". passed   F failed   E error   - not reached"
LETTERS: dict[str, Outcome] = {".": "passed", "F": "failed", "E": "error", "-": "not reached"}


def rounds(
    task: str,
    marks: str,
    *,
    of: int | None = None,
    agent: str = "oracle",
    attempt: int = 1,
    tool_calls: int | None = None,
    seconds: float | None = None,
) -> list[RoundRecord]:
    """One record per mark; a passed round has two passed cases, a failed one a passed and a failed case."""
    records = []
    for index, letter in enumerate(marks, 1):
        outcome = LETTERS[letter]
        verdict = None
        if outcome in ("passed", "failed"):
            reward = float(outcome == "passed")
            cases = (Case(id="a", status="passed"), Case(id="b", status=outcome))
            verdict = Verdict.model_validate({"reward": reward, "rewards": {"reward": reward}, "cases": cases})
        records.append(
            RoundRecord(
                task=task,
                agent=agent,
                attempt=attempt,
                round=f"round-{index}",
                index=index,
                declared_rounds=of or len(marks),
                outcome=outcome,
                verdict=verdict,
                tool_calls=tool_calls,
                agent_seconds=seconds,
            )
        )
    return records


def test_one_agent_gets_a_row_and_a_grid_of_tasks() -> None:
    records = rounds("ledger", "..F.", tool_calls=7, seconds=1.0) + rounds("stockroom", "..", seconds=0.25)
    assert list(benchmark_lines(records, grid=True)) == [
        "agent   Dataset Score  Case Score  Avg Rounds  Perfect Tasks   time",
        "oracle           87.5        93.8         7.0            1/2  4.5 s",
        "",
        "round      1  2  3  4",
        "ledger     .  .  F  .",
        "stockroom  .  .",
        LEGEND,
    ]


def test_every_outcome_has_its_mark() -> None:
    lines = list(benchmark_lines(rounds("t", ".FE-", seconds=0.0), grid=True))
    # Of the two rounds that have a verdict one passed, and three of four cases.
    assert [" ".join(line.split()) for line in lines[:4]] == [
        "agent Dataset Score Dataset Score w/o faults Case Score Case Score w/o faults Avg Rounds Perfect Tasks time "
        "faults",
        "oracle 25.0 50.0 37.5 75.0 n/a 0/1 0.0 s 2",
        "w/o faults: without rounds that an infrastructure error ended, or kept from being reached; elsewhere these "
        "count as not passed",
        "oracle: 1 error and 1 round not reached",
    ]
    assert lines[6] == "t      .  F  E  -"


def test_several_agents_get_a_row_each_in_the_order_they_came() -> None:
    records = [
        *rounds("ledger", "..", agent="oracle", seconds=60.0),
        *rounds("ledger", "F-", agent="claude-opus-4-8", tool_calls=12),
        *rounds("ledger", "F.", agent="oracle", attempt=2),
    ]
    assert list(benchmark_lines(records, grid=True)) == [
        "agent            Dataset Score  Case Score  Avg Rounds  Perfect Tasks     time",
        "oracle                    75.0        87.5         n/a            1/1  120.0 s",
        "claude-opus-4-8            0.0        25.0        12.0            0/1      n/a",
        "",
        "round                   1  2",
        "ledger oracle           .  .",
        "ledger oracle.2         F  .",
        "ledger claude-opus-4-8  F  -",
        LEGEND,
    ]


def test_further_attempts_of_one_agent_are_named_like_their_node_ids() -> None:
    records = rounds("ledger", ".F") + rounds("ledger", "..", attempt=2)
    assert list(benchmark_lines(records, grid=True))[3:6] == [
        "round            1  2",
        "ledger           .  F",
        "ledger oracle.2  .  .",
    ]


def test_without_the_grid_only_the_table_is_left() -> None:
    assert list(benchmark_lines(rounds("t", "."), grid=False)) == [
        "agent   Dataset Score  Case Score  Avg Rounds  Perfect Tasks  time",
        "oracle          100.0       100.0         n/a            1/1   n/a",
    ]


def test_refusals_are_told_of_rounds_that_count() -> None:
    counts = [record.model_copy(update={"refused": True}) for record in rounds("ledger", "FF")]
    apart = [record.model_copy(update={"refused": True, "unscored": "unfinished"}) for record in rounds("mesh", ".F")]
    told = "refused: 2 rounds of oracle (100.0 %): ledger oracle round-1, ledger oracle round-2"
    assert [line for line in benchmark_lines([*counts, *apart], grid=False) if line.startswith("refused")] == [told]
    assert not [line for line in benchmark_lines(apart, grid=False) if line.startswith("refused")]


def test_columns_stay_aligned_with_ten_rounds_and_more() -> None:
    lines = list(benchmark_lines(rounds("t", "." * 11), grid=True))
    assert lines[3:5] == [
        "round  1  2  3  4  5  6  7  8  9  10  11",
        "t      .  .  .  .  .  .  .  .  .   .   .",
    ]


def test_rounds_that_were_not_selected_are_blank_and_noted() -> None:
    records = rounds("stockroom", "..", of=3) + rounds("ledger", ".", of=2) + rounds("whole", "..")
    assert list(benchmark_lines(records, grid=True))[3:] == [
        "round      1  2  3",
        "stockroom  .  .",
        "ledger     .",
        "whole      .  .",
        LEGEND,
        "",
        "† Not all rounds were selected, only these count: ledger round-1, stockroom round-1 round-2",
    ]


def test_rows_with_attempts_that_lack_rounds_are_marked_and_have_no_perfect_tasks() -> None:
    lines = list(benchmark_lines(rounds("t", "..", of=3), grid=False))
    assert lines[1].split() == ["oracle", "†", "100.0", "100.0", "n/a", "n/a", "n/a"]
    first, last = rounds("t", "..")
    waiting = last.model_copy(update={"outcome": "not reached", "verdict": None, "waiting": "budget: turns 3 of 3"})
    lines = list(benchmark_lines([first, waiting], grid=False))
    assert lines[1].split() == ["oracle", "‡", "100.0", "100.0", "n/a", "n/a", "n/a"]
    assert lines[2] == "‡ with attempts that wait for a later session: only their rounds so far count"
    assert "†" not in "".join(lines)


def test_a_partial_attempt_is_noted_beside_a_whole_one() -> None:
    records = rounds("t", "..") + rounds("t", ".", of=2, attempt=2)
    assert "Not all rounds" in list(benchmark_lines(records, grid=False))[-1]
    records = rounds("t", "..") + rounds("t", ".", of=2, agent="nop")
    assert "Not all rounds" in list(benchmark_lines(records, grid=False))[-1]


def test_rounds_that_were_not_reached_are_no_partial_selection() -> None:
    assert not any("Not all rounds" in line for line in benchmark_lines(rounds("t", "E--"), grid=True))


@pytest.mark.parametrize(
    ("least", "line"),
    [
        (50, "--evocode-fail-under=50: reached with a Dataset Score of 50.0"),
        (50.5, "--evocode-fail-under=50.5: not reached with a Dataset Score of 50.0"),
        (0, "--evocode-fail-under=0: reached with a Dataset Score of 50.0"),
        (50.01, "--evocode-fail-under=50.01: not reached with a Dataset Score of 50.0"),
    ],
)
def test_the_wanted_score_is_held_against_the_lowest(least: float, line: str) -> None:
    records = rounds("t", "..", agent="oracle") + rounds("t", ".F", agent="nop")
    assert lowest_score(records) == 50.0
    assert list(benchmark_lines(records, grid=False, fail_under=least))[-2:] == ["", line]


def test_a_score_just_below_the_wanted_one_has_the_digits_that_show_it() -> None:
    records = rounds("t", "..F")
    for least, shown in ((66.7, "66.67"), (66.67, "66.667"), (67, "66.7")):
        line = f"--evocode-fail-under={least:g}: not reached with a Dataset Score of {shown}"
        assert list(benchmark_lines(records, grid=False, fail_under=least))[-1] == line


def test_a_shard_with_controls_alone_has_nothing_to_reach() -> None:
    lines = list(benchmark_lines(rounds("t", "F", agent="nop"), grid=False, fail_under=50, controls={"nop"}))
    assert lines[-1] == "--evocode-fail-under=50: nothing to reach; controls do not count (nop)"


def test_records_are_sorted_out_by_agent() -> None:
    records = rounds("t", ".", agent="b") + rounds("t", ".", agent="a") + rounds("u", ".", agent="b")
    assert {agent: [record.task for record in found] for agent, found in by_agent(records).items()} == {
        "b": ["t", "u"],
        "a": ["t"],
    }
    assert list(by_agent(records)) == ["b", "a"]


@pytest.mark.nightly
def test_a_thousand_tasks_of_ten_rounds_are_summed_up() -> None:
    records = [record for number in range(1_000) for record in rounds(f"task-{number}", "." * 10, of=11)]
    lines = list(benchmark_lines(records, grid=True))
    assert lines[1] == "oracle          100.0       100.0         n/a      1000/1000   n/a"
    assert len(lines) == 1_007


def test_verdicts_that_trust_the_agents_system_mark_their_scores_and_are_named() -> None:
    records = rounds("ledger", "..", agent="cheat", seconds=1.0) + rounds("ledger", "..", seconds=1.0)
    for place, (rests_on, trusts) in enumerate([("in-place", "/"), ("clean", "/usr/lib/plugin.so")]):
        verdict = records[place].verdict
        assert verdict is not None
        trusting = verdict.model_copy(update={"rests_on": rests_on, "trusts": (trusts,)})
        records[place] = records[place].model_copy(update={"verdict": trusting})
    assert list(benchmark_lines(records, grid=False)) == [
        "agent   Dataset Score  Case Score  Avg Rounds  Perfect Tasks   time",
        "cheat          100.0*      100.0*         n/a           1/1*  2.0 s",
        "oracle          100.0       100.0         n/a            1/1  2.0 s",
        "* the verdicts of 2 rounds trust the agent's system beyond what the task declares; round.json lists them, and "
        "--evocode-strict brings none over",
        "  ledger cheat round-1 (in place), ledger cheat round-2",
    ]


def test_single_rounds_have_a_second_sr_where_an_infrastructure_error_happened() -> None:
    lines = list(benchmark_lines(rounds("t", ".E-F"), RunMode("single-round"), grid=False))
    assert [" ".join(line.split()) for line in lines[:2]] == [
        "agent SR SR w/o faults SR macro k Avg Rounds time faults",
        "oracle (single-round) 25.0 33.3 25.0 1 n/a n/a 1",
    ]
    assert lines[-1] == "  oracle (single-round): 1 error"


def test_flaky_rounds_are_named_below_the_grid() -> None:
    records = [*rounds("t", "."), *rounds("t", "F", attempt=2)]
    lines = list(benchmark_lines(records, grid=False, flaky=flaky_rounds(records, {"oracle"})))
    assert lines[-2:] == [
        "1 flaky round, whose verdict differs although nothing else does; pytest --evocode-check looks for the reason:",
        "  t oracle round-1: 1 of 2 attempts passed (differing: b)",
    ]
    assert not any("flaky" in line for line in benchmark_lines(records, grid=False))


def test_of_many_flaky_rounds_a_screenful_is_shown() -> None:
    found = FlakyRound("ledger", "gpt", "round-3", 3, 2, 1, 3, tuple("abcde"))
    lines = list(flaky_lines([found] * 23))
    assert lines[1] == "  ledger gpt.2 round-3: 1 of 3 runs of its suite passed (differing: a, b, c and more)"
    assert (len(lines), lines[-1]) == (22, "  and 3 more")


def test_amounts_that_are_lower_bounds_are_marked_and_their_rounds_named() -> None:
    first, second = rounds("ledger", "..")
    usage = Usage(prompt_tokens=10, completion_tokens=5, cost_usd=0.5)
    killed = usage.model_copy(update={"at_least": True})
    records = [first.model_copy(update={"usage": usage}), second.model_copy(update={"usage": killed})]
    lines = list(benchmark_lines(records, grid=False))
    assert lines[1].split()[-3:] == ["20+", "10+", "$1.0000+"]
    assert lines[2:] == [
        "at least: oracle used more than is known, because it was killed in mid-turn or a reply of its model broke "
        "off, in ledger oracle round-2"
    ]

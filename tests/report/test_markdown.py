"""A session in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_evocode.metrics.faults import faults
from pytest_evocode.metrics.flaky import FlakyRound
from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.scores import scores
from pytest_evocode.metrics.spending import spending
from pytest_evocode.report.failures import describe_failure
from pytest_evocode.report.markdown import session_summary
from pytest_evocode.results.records import RoundRecord


def record(index: int, outcome: str, cause: str = "", task: str = "ledger", attempt: int = 1) -> RoundRecord:
    return RoundRecord.model_validate(
        {
            "task": task,
            "agent": "gpt",
            "attempt": attempt,
            "round": f"round-{index}",
            "index": index,
            "declared_rounds": 3,
            "outcome": outcome,
            "cause": cause,
        }
    )


def lines_of(*records: RoundRecord, flaky: Sequence[FlakyRound] = ()) -> list[str]:
    found = {"gpt": scores(records)}
    broken = {"gpt": faults(Grid.of(records), Grid(()))}
    spent = {"gpt": spending(records)}
    about = ["Run 1", "a <b>"]

    def describe(each: RoundRecord) -> str:
        return describe_failure(each, Path("out.txt"))

    text = session_summary(records, found, spent, {}, broken, about=about, flaky=flaky, describe=describe)
    return text.splitlines()


def test_every_attempt_has_a_row_of_marks() -> None:
    lines = lines_of(record(1, "passed"), record(1, "passed", attempt=2), record(2, "error", "no engine", attempt=2))
    assert "| round | 1 | 2 | 3 |" in lines
    assert "| ledger | ✅ |   |   |" in lines
    assert "| ledger gpt.2 | ✅ | ⚠️ |   |" in lines


def test_scores_without_infrastructure_errors_stand_beside_the_others() -> None:
    lines = lines_of(record(1, "passed"), record(2, "error"))
    place = next(place for place, line in enumerate(lines) if line.startswith("| agent "))
    cells = dict(zip(*(lines[each].split(" | ") for each in (place, place + 2)), strict=True))
    assert (cells["Dataset Score"], cells["Dataset Score w/o faults"], cells["faults |"]) == ("33.3", "100.0", "2 |")
    assert "gpt: 1 error and 1 round not reached" in lines
    assert not any("w/o faults" in line for line in lines_of(record(1, "passed")))


def test_flaky_rounds_are_named() -> None:
    found = FlakyRound("ledger", "gpt", "round-2", 2, 3, 1, 2, ("a|b",))
    lines = lines_of(record(1, "passed"), flaky=[found])
    assert "ledger gpt.3 round-2: 1 of 2 runs of its suite passed (differing: a\\|b)" in lines


def test_what_markdown_would_read_as_its_own_is_escaped() -> None:
    lines = lines_of(record(1, "passed", task="a_b*c"))
    assert "a &lt;b&gt;" in lines
    assert "| a\\_b\\*c | ✅ |   |   |" in lines


def test_no_text_ends_the_block_that_shows_it() -> None:
    lines = lines_of(record(1, "error", "see:\n````\n</details> <script>"))
    opened = lines.index("`````text")
    assert lines[opened + 1 : opened + 5] == ["see:", "````", "</details> <script>", "`````"]


def test_a_summary_stays_below_what_github_shows() -> None:
    records = [record(index, "error", "x" * 50_000, attempt=attempt) for attempt in range(1, 20) for index in (1, 2, 3)]
    lines = lines_of(*records)
    assert len("\n".join(lines)) < 2**20
    assert lines[-1] == "And 50 more that did not pass, left out because of the size that GitHub allows."

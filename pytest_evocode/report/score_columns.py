"""The columns of scores: what each is called, means and looks like, and which tables have it, in which order.

A new score is a field and a function of :mod:`~pytest_evocode.metrics.scores`, and here a column and its place in
tables; a mean over tasks is one of :data:`~pytest_evocode.metrics.task_values.MEANS`, too, which gives it an interval.
``docs/metrics.md``, ``docs/json_keys.toml``, the viewer's ``data.d.ts`` and the reference of the tests have it as well,
and tests say so where one is missing. All tables of agents are made of these: a session's, those of ``evocode``, of
Markdown, of CSV and of reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal

from pytest_evocode.metrics.faults import Faults
from pytest_evocode.metrics.intervals import Interval
from pytest_evocode.metrics.scores import Scores
from pytest_evocode.metrics.task_values import Metric
from pytest_evocode.report.tables import NOT_MEASURED, format_number, format_thousands, values_of
from pytest_evocode.report.views import Column, ends
from pytest_evocode.results.records import Mode

MARK = "*"
"""Behind scores with verdicts that trust the agent's system."""
SUFFIX = " w/o faults"
"""Behind the title of a score with infrastructure errors left out."""
_WITHOUT_FAULTS = "_without_faults"


def _number(values: Mapping[str, Any], field: str) -> str:
    return format_number(values[field])


def _whole(values: Mapping[str, Any], field: str) -> str:
    return str(values[field])


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """A score as all tables show it."""

    title: str
    _: KW_ONLY
    unit: str = "%"
    text: Callable[[Mapping[str, Any], str], str] = _number
    """Returns the cell, of the values of a row and the name of one of them."""
    marked: bool = False
    """Whether a suite's word decides it, so that it has :data:`MARK` where a verdict trusts the agent's system."""
    depends_on_k: bool = False
    """Whether its expectation changes with the number of attempts; others are means over attempts."""
    if_measured: bool = False
    """Whether tables leave it out where no agent has a number in it."""
    interval: str = ""
    """The title of the column of its 95 % interval; empty where tables show none."""
    without_faults: bool = False
    """Whether there is a second column with infrastructure errors left out."""
    help: str = ""
    """What it means, in one sentence."""
    fields: tuple[str, ...] = ()
    """The names of its values; empty where that is its own."""


COLUMNS = {
    "k": ScoreColumn(
        "k", unit="attempts", text=lambda values, _: format_range(values["k_min"], values["k_max"]),
        fields=("k_min", "k_max"), help="How many attempts there are at each task.",
    ),
    "dataset_score": ScoreColumn(
        "Dataset Score", marked=True, interval="95 %", without_faults=True,
        help="The share of a task's rounds that passed, the mean over tasks and attempts.",
    ),
    "case_score": ScoreColumn(
        "Case Score", marked=True, interval="Case Score 95 %", without_faults=True,
        help="The share of cases that passed, the mean over rounds, attempts and tasks.",
    ),
    "pinned_case_score": ScoreColumn(
        "Pinned Case Score", marked=True, if_measured=True,
        help="The Case Score, with each round's cases counted as the reference solution has them.",
    ),
    "avg_rounds": ScoreColumn("Avg Rounds", unit="calls", help="Tool calls per round, the mean over tasks."),
    "perfect_tasks": ScoreColumn(
        "Perfect Tasks", unit="tasks", marked=True, depends_on_k=True, interval="Perfect Tasks 95 %",
        text=lambda values, name: format_part(values[name], values["whole_tasks"]),
        help="Tasks of which one attempt passed all rounds; it grows with k.",
    ),
    "mt_at_k": ScoreColumn(
        "MT@k", marked=True, depends_on_k=True, interval="MT@k 95 %",
        help="The share of rounds passed up to the first failure, by the attempt that gets farthest; it grows with k.",
    ),
    "sr": ScoreColumn(
        "SR", marked=True, if_measured=True, interval="SR 95 %", without_faults=True,
        help="The share of single rounds passed, each from the state that the reference solutions lead to.",
    ),
    "sr_macro": ScoreColumn(
        "SR macro", marked=True, if_measured=True,
        help="The share of a task's single rounds passed, the mean over tasks.",
    ),
    "gap": ScoreColumn(
        "Gap", unit="points", depends_on_k=True, if_measured=True, interval="Gap 95 %",
        help="SR less MT@k: what is lost because failures of earlier rounds stay in the workspace.",
    ),
    "final_round_completion": ScoreColumn(
        "Comp", marked=True, depends_on_k=True,
        help="The share of tasks whose last round an attempt passed; it grows with k.",
    ),
    "hard_tasks": ScoreColumn(
        "Hard Tasks", depends_on_k=True, help="The share of tasks of which at most half of the rounds passed.",
    ),
    "mean_reward": ScoreColumn(
        "Mean Reward", marked=True,
        help="The reward that decides, by each task's own strategy, the mean over attempts and tasks.",
    ),
    "reliability": ScoreColumn(
        "Reliability", depends_on_k=True,
        help="Of the rounds with several attempts that any of them passed, the share that all passed.",
    ),
    "avg_turns": ScoreColumn(
        "Avg Turns", unit="requests", if_measured=True,
        help="Requests to the model in one attempt, the mean over tasks.",
    ),
    "output_tokens": ScoreColumn(
        "Output Tok.", unit="tokens", if_measured=True, text=lambda values, name: format_thousands(values[name]),
        help="Tokens that the model generated in one attempt, the mean over tasks.",
    ),
    "seconds": ScoreColumn(
        "time", unit="s", text=lambda values, name: format_number(values[name], " s"),
        help="Seconds of agents' turns and suites, all rounds.",
    ),
    "tasks": ScoreColumn("Tasks", unit="tasks", text=_whole, help="How many tasks count."),
    "rounds": ScoreColumn("Rounds", unit="rounds", text=_whole, help="How many rounds of these tasks count."),
}  # fmt: skip
"""By fields of :class:`~pytest_evocode.metrics.scores.Scores`, and k."""

_OF_CHAINS = ("case_score", "pinned_case_score", "avg_rounds", "perfect_tasks", "seconds")
SESSION: dict[Mode, tuple[str, ...]] = {
    "chain": ("dataset_score", *_OF_CHAINS),
    "fail-stop": ("dataset_score", "mt_at_k", "k", *_OF_CHAINS),
    "single-round": ("sr", "sr_macro", "k", "avg_rounds", "seconds"),
}
"""The table at the end of a session."""
RESULTS = (
    "dataset_score", "case_score", "pinned_case_score", "avg_rounds", "perfect_tasks", "mt_at_k",
    "final_round_completion", "sr", "sr_macro", "gap", "k", "seconds",
)  # fmt: skip
"""``evocode results``, and a session's summary in Markdown."""
GROUPS = ("dataset_score", "case_score", "avg_rounds", "perfect_tasks", "mt_at_k")
SINGLE_ROUND_GROUPS = ("sr", "sr_macro", "avg_rounds")
"""``evocode results --by`` of chains, and of single rounds."""
LEADERBOARD = (
    "k", "dataset_score", "case_score", "avg_rounds", "perfect_tasks", "final_round_completion", "hard_tasks",
    "mean_reward", "mt_at_k", "sr", "gap", "avg_turns", "output_tokens", "tasks", "rounds",
)  # fmt: skip
"""``evocode leaderboard`` in every format."""
OLDER_LEADERBOARD = ("k", "mt_at_k", "sr", "gap", "final_round_completion", "avg_turns", "output_tokens")
"""``evocode analyses``, of EvoCode-Bench's older leaderboard."""
COMPARED: tuple[Metric | Literal["without_faults"], ...] = (
    "dataset_score", "without_faults", "case_score", "pinned_case_score", "mt_at_k", "final_round_completion",
    "perfect_tasks", "avg_rounds",
)  # fmt: skip
"""The lines of ``evocode compare``; what is without faults is the Dataset Score."""
REPORT_MAIN = ("dataset_score", "case_score", "mt_at_k", "sr", "gap", "perfect_tasks")
REPORT_MORE = ("final_round_completion", "mean_reward", "reliability", "avg_rounds")
REPORT = (*REPORT_MAIN, *REPORT_MORE, "tasks", "rounds")
"""What the HTML report knows of rows; its leaderboard has the main columns, and more where somebody asks for them."""
REPORT_TASKS = ("dataset_score", "case_score", "avg_rounds", "mt_at_k", "sr", "gap", "rounds")
"""``csv/tasks.csv`` of the HTML report."""
WITH_INTERVAL = tuple(field for field, column in COLUMNS.items() if column.interval)
WITHOUT_FAULTS = tuple(field for field, column in COLUMNS.items() if column.without_faults)


def depending_on_k(table: Iterable[str]) -> list[str]:
    """Return the fields of a table that cannot be compared between agents with different numbers of attempts."""
    return [field for field in table if COLUMNS[field].depends_on_k]


def listed(fields: Iterable[str]) -> str:
    """Return the titles of several columns in a sentence.

    >>> listed(["sr", "gap", "mt_at_k"])
    'SR, Gap and MT@k'
    """
    *titles, last = (COLUMNS[field].title for field in fields)
    return f"{', '.join(titles)} and {last}"


def score_values(
    table: Iterable[str],
    scores: Scores,
    intervals: Mapping[str, Interval | str | None] | None = None,
    faults: Faults | None = None,
    *,
    with_faults: bool = False,
) -> dict[str, Any]:
    """Return the scores of a row in full precision, each with the ends of its interval and itself without faults.

    Args:
        table: The fields.
        scores: The scores.
        intervals: The intervals by field; None for no ends.
        faults: What infrastructure errors did to the row.
        with_faults: Whether any row of the table has one.
    """
    values: dict[str, Any] = {}
    for field in table:
        if field == "k":
            values |= {"k_min": scores.fewest_attempts, "k_max": scores.attempts}
            continue
        values[field] = getattr(scores, field)
        if intervals is not None and field in WITH_INTERVAL:
            found = intervals.get(field)
            values |= ends(found if isinstance(found, Interval) else None, field)
        if with_faults and field in WITHOUT_FAULTS:
            values[field + _WITHOUT_FAULTS] = values[field] if faults is None else getattr(faults, field)
    if with_faults:
        values["faults"] = 0 if faults is None else faults.rounds
    return {**values, **values_of(scores, "decided_tasks", "whole_tasks", "trusting")}


def score_columns(table: Iterable[str], *, intervals: bool = False, with_faults: bool = False) -> Iterator[Column]:
    """Yield the columns of such values, each with that of its interval and that without faults behind it."""
    for field in table:
        column = COLUMNS[field]
        yield Column(
            column.title,
            partial(_cell, column, field),
            help=column.help,
            fields=column.fields or (field,),
            nothing=NOT_MEASURED if column.if_measured else "",
        )
        if intervals and column.interval:
            about = f"The 95 % interval of {column.title}, over tasks."
            yield Column.interval(column.interval, f"{field}_low", f"{field}_high", about)
        if with_faults and column.without_faults:
            name = field + _WITHOUT_FAULTS
            yield Column(column.title + SUFFIX, partial(_cell, column, name), fields=(name,), nothing=NOT_MEASURED)


def _cell(column: ScoreColumn, field: str, values: Mapping[str, Any]) -> str:
    cell = column.text(values, field)
    return cell + MARK if column.marked and values["trusting"] and cell != NOT_MEASURED else cell


def format_part(part: int | None, tasks: int) -> str:
    """Return a number of tasks, such as ``9/26``."""
    return NOT_MEASURED if part is None else f"{part}/{tasks}"


def format_range(low: int, high: int) -> str:
    """Return a number that need not be the same everywhere.

    >>> format_range(4, 4), format_range(1, 4)
    ('4', '1-4')
    """
    return str(high) if low == high else f"{low}-{high}"

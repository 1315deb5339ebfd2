"""Failures in words: the report of a failed round, and the tables of ``evocode failures``."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_evocode.metrics.analyses import FirstFailure, Share, first_failures, pass_rates
from pytest_evocode.metrics.failures import RequirementFailures, failure_kinds, worst_requirements
from pytest_evocode.metrics.score_table import ScoreRow
from pytest_evocode.report.notes import identity_json
from pytest_evocode.report.tables import counted, join_first, values_of
from pytest_evocode.report.views import Column, Row, Table, View
from pytest_evocode.results.cases import GAP, without_middle
from pytest_evocode.results.records import Case, FailureKind, RoundRecord

KINDS: dict[FailureKind, str] = {
    "new miss": "first required in this round",
    "regression": "passed in an earlier round of this attempt",
    "carried": "required before, never passed",
    "stale": "what these replace is still there",
}
"""The kinds of failing cases, and what each is, in the words of every output and of the glossary."""
_SEVERAL: dict[FailureKind | None, str] = {"new miss": "new misses", "regression": "regressions", None: "failed"}
_SHOWN_CASES = 20
_SHOWN_PATHS = 5
_SHORT = (24, 300)
"""Lines and characters of each text in which a case describes itself."""
_SCREENFUL = (24, 2000)
"""Lines and characters of why a case failed."""
_LONGEST_OUTPUT = 2**20  # characters
_HOW_TO_SEE_ALL = "use '-vv' to show"
_FAILURES = re.compile(r"^=+ (?:ERRORS|FAILURES) =+$", re.MULTILINE)
"""Matches where pytest begins to print failures."""


def describe_failure(record: RoundRecord, output: Path | None, *, whole: bool = False) -> str:
    """Return the report of a failed round, whose first line sums up the rest.

    ``output`` is its suite's output, None where it is in no file. Of many cases and long texts a part is shown, unless
    the ``whole`` is asked for; what the record itself has in part comes from the output then.
    """
    verdict = record.verdict
    assert verdict is not None
    failing = [case for case in verdict.cases if case.failing]
    by_kind = {kind: [case for case in failing if case.failure == kind] for kind in (*KINDS, None)}
    lines = [_summary(record, by_kind)]
    lines += record.cause.splitlines()
    for kind, cases in by_kind.items():
        title = f"{_SEVERAL.get(kind, kind)}: {KINDS[kind] if kind else 'of no known kind'}"
        lines += _group(title, cases, whole=whole)
    lines += [f"note: {note}" for note in record.notes]
    if verdict.trusts_agent:
        lines.append(f"note: the verdict trusts the agent's system: {join_first(verdict.trusts, _SHOWN_PATHS)}")
    if output is not None:
        lines.append(f"suite output: {output}")
        texts = (text for case in failing for text in case.model_dump().values() if isinstance(text, str))
        if whole and any(GAP in text for text in texts):
            lines.append(_failures_in(output))
        elif not failing:
            lines += _end_of(output)
    return "\n".join(lines)


def _summary(record: RoundRecord, by_kind: Mapping[FailureKind | None, Sequence[Case]]) -> str:
    verdict = record.verdict
    assert verdict is not None
    if not (failing := sum(map(len, by_kind.values()))):
        why = "timeout" if record.timed_out else f"reward {verdict.shown_reward}"
        return f"{record.round} failed: {why}, no failed case reported"
    timeout = f"{record.timed_out} timeout, " if record.timed_out else ""
    new, *others = (len(by_kind[kind]) for kind in ("new miss", "regression", "carried", "stale"))
    kinds = [f"{new} new {'miss' if new == 1 else 'misses'}", counted(others[0], "regression")]
    kinds += [f"{number} {kind}" for number, kind in zip(others[1:], ("carried", "stale"), strict=True) if number]
    return f"{record.round} failed: {timeout}{failing} of {len(verdict.cases)} cases failed ({', '.join(kinds)})"


def _end_of(output: Path) -> list[str]:
    """Return the last lines of what a suite printed; none where it cannot be read."""
    with contextlib.suppress(OSError), output.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _SCREENFUL[1]))
        last = file.read().decode("utf-8", "replace").strip().splitlines()[-_SCREENFUL[0] :]
        return [f"    {line}".rstrip() for line in last]
    return []


def _failures_in(output: Path) -> str:
    """Return what a suite printed of its failures, or all that it printed."""
    try:
        text = output.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    begin = _FAILURES.search(text)
    return without_middle(text[begin.start() if begin else 0 :].rstrip(), _LONGEST_OUTPUT)


def _group(title: str, cases: list[Case], *, whole: bool) -> Iterator[str]:
    if not cases:
        return
    yield f"{title} ({len(cases)})"
    shown = len(cases) if whole else _SHOWN_CASES
    for case in cases[:shown]:
        required = " ".join(part for part in (case.origin, case.requirement, case.kind) if part)
        origin = f" [{required}]" if required else ""
        yield f"  {case.id}{origin}"
        for label, text, limits in (
            ("", case.intent or case.scenario, _SHORT),
            ("scenario: ", case.scenario if case.intent else "", _SHORT),
            ("input: ", case.input, _SHORT),
            ("expected: ", case.expected, _SHORT),
            ("actual: ", case.actual, _SHORT),
            ("", case.reason, _SCREENFUL),
        ):
            if text:
                yield from _indented(label, text.strip(), None if whole else limits)
    if len(cases) > shown:
        yield f"  ... and {len(cases) - shown} more, {_HOW_TO_SEE_ALL}"


def _indented(label: str, text: str, limits: tuple[int, int] | None) -> Iterator[str]:
    """Yield the lines of a text below a label, up to ``limits``, which are a number of lines and one of characters."""
    lines = text.splitlines() or [""]
    text = "\n".join(lines)
    whole_lines = text if limits is None else "\n".join(lines[: limits[0]])
    shown = whole_lines if limits is None else whole_lines[: limits[1]]
    for number, line in enumerate(shown.splitlines() or [""]):
        yield f"      {' ' * len(label) if number else label}{line}"
    if len(shown) < len(text):
        unit, count = "character", len(text) - len(shown)
        if shown == whole_lines:
            unit, count = "line", len(lines) - len(shown.splitlines())
        least = "at least " if GAP in text else ""
        yield f"      ... {least}{count:,} more {unit}{'' if count == 1 else 's'}, {_HOW_TO_SEE_ALL}"


def failures_view(rows: Sequence[ScoreRow], *, top: int) -> View:
    """Return the kinds of failures of some rows, where attempts fail first, and what is failed most often.

    Args:
        rows: Agents in one mode each.
        top: How many entries of a list people see.
    """
    kinds = {row.name: failure_kinds(row.grid) for row in rows}
    # Single rounds are independent of each other, so that none of them fails first.
    chains = [row for row in rows if row.mode != "single-round"]
    first = {row.name: first_failures(row.grid) for row in chains}
    shares = {row.name: pass_rates(row.grid) for row in chains}
    worst = worst_requirements(*(row.records for row in rows_for_requirements(rows)))
    tables = [
        _counts(
            "failed-rounds",
            "how many rounds failed, by what kept them from passing",
            _ROUNDS,
            {name: {**found.rounds, "not reached": found.not_reached} for name, found in kinds.items()},
        ),
        _counts(
            "failing-cases",
            "failing cases, by how they stand to the rounds before",
            KINDS,
            {name: found.cases for name, found in kinds.items()},
        ),
    ]
    if chains:
        tables += [_pass_rates_table(shares, first), _first_failures_table(first, top)]
    tables.append(_requirements_table(worst, top))

    def values() -> dict[str, Any]:
        return {
            "agents": {row.name: identity_json(row) for row in rows},
            "kinds": {name: asdict(found) for name, found in kinds.items()},
            "pass_rates": {
                name: {index: share.percent for index, share in found.items()} for name, found in shares.items()
            },
            "first_failures": {
                name: [{**asdict(each), "position": each.position} for each in found] for name, found in first.items()
            },
            "requirements": [{**asdict(each), "share": each.share} for each in worst],
        }

    return View(tables, json=values)


def rows_for_requirements(rows: Sequence[ScoreRow]) -> Sequence[ScoreRow]:
    """Return the rows that tell how hard requirements are: of all agents but controls, where there are others."""
    # Requirements of older contents may be others of the same name.
    newest = [row for row in rows if row.version == 0] or rows
    return [row for row in newest if not row.is_control] or newest


_ROUNDS: dict[str, str] = {
    "cases": "rounds in which cases of the suite failed, however many",
    "reward": "rounds whose reward is too low, and no case failed",
    "build": "rounds in which no case ran",
    "timeout": "rounds whose time limit passed",
    "agent error": "rounds in which the agent's program failed",
    "infrastructure": "rounds that what is not the agent's kept from a verdict",
    "other": "rounds with none of these",
    "not reached": "rounds that an earlier one kept from beginning, as it ended the attempt",
}


def _counts(name: str, title: str, help: Mapping[Any, str], counts: Mapping[str, Mapping[Any, int]]) -> Table:
    """Return how often each agent had each kind of failure; people do not see kinds that no agent had."""
    kinds = [*next(iter(counts.values()))]
    rows = [{"agent": agent, **found} for agent, found in counts.items()]
    columns = [
        Column.text("agent", "agent"),
        *(Column.count(kind, kind, _sentence(help.get(kind, "")), nothing="0") for kind in kinds),
    ]
    found = any(each[kind] for each in counts.values() for kind in kinds)
    return Table(name, title, columns, rows, titled=True, most=None if found else 0, rest="" if found else "none")


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def _pass_rates_table(shares: Mapping[str, Mapping[int, Share]], first: Mapping[str, Sequence[FirstFailure]]) -> Table:
    """Return, for each agent and round, the share of tasks that pass it and how many attempts fail there first."""
    title = "by round: share of the tasks that pass it, and how many attempts fail there first"
    rows: list[Row] = []
    for agent, of_row in shares.items():
        failing = Counter(failure.index for failure in first[agent])
        for index in sorted(of_row):
            share = of_row[index]
            about = {"agent": agent, "round": index, "first_failures": failing[index]}
            rows.append({**about, **values_of(share, "percent", "passed", "of")})
    columns = (
        Column.text("agent", "agent"),
        Column.count("round", "round"),
        Column.form(
            "passed",
            "{percent:.1f} ({first_failures})",
            "the share of tasks that pass it (and how many attempts fail there first)",
            unknown="",
            fields=("percent", "passed", "of", "first_failures"),
        ),
    )
    return Table("first-failures-by-round", title, columns, rows, titled=True, across=1)


def _first_failures_table(first: Mapping[str, Sequence[FirstFailure]], top: int) -> Table:
    """Return the first failures of attempts, the earliest first."""
    failures = sorted(
        (
            {**asdict(failure), "agent": name, "position": failure.position}
            for name, of_row in first.items()
            for failure in of_row
        ),
        key=lambda row: (row["position"], row["task"], row["agent"], row["attempt"]),
    )
    columns = (
        Column.text("task", "task"),
        Column.text("agent", "agent"),
        Column.form("attempt", "attempt {attempt}", left=True),
        Column.form(
            "round",
            "round {index} of {declared}",
            "The first one that the attempt did not pass.",
            fields=("index", "declared", "position"),
            left=True,
        ),
    )
    title, rest = f"first failures ({len(failures)})", _more(len(failures) - top)
    return Table("first-failures", title, columns, failures, titled=True, headless=True, most=top, rest=rest)


def _requirements_table(worst: Sequence[RequirementFailures], top: int) -> Table:
    """Return the requirements that were failed, the worst first."""
    title = f"requirements that were failed ({len(worst)}), by the share of the rounds that checked them"
    rows = [
        {**asdict(each), "share": each.share, "kinds": [f"{number} {kind}" for kind, number in each.kinds.items()]}
        for each in worst
    ]
    columns = (
        Column.text("task", "task"),
        Column.text("requirement", "requirement"),
        Column.count("failed", "failed", "Rounds with a failing case of the requirement."),
        Column.count("of", "of", "Rounds that checked it."),
        Column.number("%", "share", "The share of them that failed."),
        Column(
            "cases",
            lambda row: ", ".join(row["kinds"]),
            help="Its failing cases, by how they stand to the rounds before.",
            fields=("kinds",),
            left=True,
        ),
    )
    rest = _more(len(worst) - top)
    return Table("requirements", title, columns, rows, titled=True, most=top if worst else 0, rest=rest)


def _more(number: int) -> str:
    return f"... and {number} more; --top shows them" if number > 0 else ""

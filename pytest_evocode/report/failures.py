"""Failures in words: the report of a failed round, and the tables of ``evocode failures``."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_evocode.metrics.analyses import FirstFailure, Share
from pytest_evocode.metrics.failures import FailureKinds, RequirementFailures
from pytest_evocode.report.tables import aligned, counted, format_number, join_first
from pytest_evocode.results.cases import GAP, without_middle
from pytest_evocode.results.records import Case, FailureKind, RoundRecord

_TITLES: dict[FailureKind | None, str] = {
    "new miss": "new misses: first required in this round",
    "regression": "regressions: passed in an earlier round of this attempt",
    "carried": "carried: required before, never passed",
    "stale": "stale: what these replace is still there",
    None: "failed: of no known kind",
}
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
    by_kind = {kind: [case for case in failing if case.failure == kind] for kind in _TITLES}
    lines = [_summary(record, by_kind)]
    lines += record.cause.splitlines()
    for kind, cases in by_kind.items():
        lines += _group(_TITLES[kind], cases, whole=whole)
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


def kind_lines(kinds: Mapping[str, FailureKinds]) -> Iterator[str]:
    """Yield how often each agent had each kind of failure; kinds that no agent had are left out."""
    yield "failed rounds, by what kept them from passing"
    yield from _counts({name: _rounds(found) for name, found in kinds.items()})
    yield ""
    yield "failing cases, by how they stand to the rounds before"
    yield from _counts({name: _cases(found) for name, found in kinds.items()})


def _rounds(found: FailureKinds) -> dict[str, int]:
    return {**{str(kind): count for kind, count in found.rounds.items()}, "not reached": found.not_reached}


def _cases(found: FailureKinds) -> dict[str, int]:
    return {str(kind): count for kind, count in found.cases.items()}


def _counts(counts: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    titles = [kind for kind in next(iter(counts.values())) if any(of_row[kind] for of_row in counts.values())]
    if not titles:
        yield "  none"
        return
    rows = [("  agent", *titles)]
    rows += [(f"  {name}", *(str(of_row[kind]) for kind in titles)) for name, of_row in counts.items()]
    yield from aligned(rows)


def pass_rate_lines(
    shares: Mapping[str, Mapping[int, Share]], first: Mapping[str, Sequence[FirstFailure]]
) -> Iterator[str]:
    """Yield, for each agent and round, the share of tasks that pass it and how many attempts fail there first."""
    yield "by round: share of the tasks that pass it, and how many attempts fail there first"
    longest = max((index for of_row in shares.values() for index in of_row), default=0)
    rows = [("  agent", *map(str, range(1, longest + 1)))]
    for name, of_row in shares.items():
        failing = Counter(failure.index for failure in first[name])
        cells = []
        for index in range(1, longest + 1):
            share = of_row[index].percent if index in of_row else None
            cells.append("" if share is None else f"{format_number(share)} ({failing[index]})")
        rows.append((f"  {name}", *cells))
    yield from aligned(rows)


def first_failure_lines(first: Mapping[str, Sequence[FirstFailure]], shown: int) -> Iterator[str]:
    """Yield the first failures of attempts, the earliest first, no more than ``shown`` of them."""
    failures = sorted(
        ((failure, name) for name, of_row in first.items() for failure in of_row),
        key=lambda pair: (pair[0].position, pair[0].task, pair[1], pair[0].attempt),
    )
    yield f"first failures ({len(failures)})"
    rows = [
        (f"  {failure.task}", name, f"attempt {failure.attempt}", f"round {failure.index} of {failure.declared}")
        for failure, name in failures[:shown]
    ]
    if rows:
        yield from aligned(rows, left=(0, 1, 2, 3))
    yield from _more(len(failures) - shown)


def requirement_lines(worst: Sequence[RequirementFailures], shown: int) -> Iterator[str]:
    """Yield the requirements that were failed, the worst first, no more than ``shown`` of them."""
    yield f"requirements that were failed ({len(worst)}), by the share of the rounds that checked them"
    if worst:
        rows = [("  task", "requirement", "failed", "of", "%", "cases")]
        for each in worst[:shown]:
            kinds = ", ".join(f"{number} {kind}" for kind, number in each.kinds.items())
            rows.append(
                (f"  {each.task}", each.requirement, str(each.failed), str(each.of), f"{each.share:.1f}", kinds)
            )
        yield from aligned(rows, left=(0, 1, 5))
    yield from _more(len(worst) - shown)


def _more(number: int) -> Iterator[str]:
    if number > 0:
        yield f"  ... and {number} more; --top shows them"

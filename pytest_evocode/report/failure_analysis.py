"""What ``evocode failures`` prints: kinds of failures, where attempts fail first, the requirements failed most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pytest_evocode.metrics.analyses import FirstFailure, Share
from pytest_evocode.metrics.failures import FailureKinds, RequirementFailures
from pytest_evocode.report.tables import aligned, format_number


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


def survival_lines(
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

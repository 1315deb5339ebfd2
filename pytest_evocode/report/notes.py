"""Who the rows of a table are, and what is to be said of them: what differs, is missing, or does not count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable, differing_contents
from pytest_evocode.names import attempt_name
from pytest_evocode.report.tables import counted, fitting, fitting_groups, join_first
from pytest_evocode.results.identity import (
    NOT_SAID,
    SHORT_HASH,
    are_different,
    condition_columns,
    conditions_hash,
    given_prices,
    short_contents,
)
from pytest_evocode.results.loading import StoredAttempt


def identity_json(row: ScoreRow) -> dict[str, Any]:
    """Return who a row is and under which conditions, as JSON values; None is not said."""
    conditions = row.subject.conditions
    settings = None if conditions.settings is None else dict(conditions.settings)
    return {
        "agent": row.agent,
        "label": row.label or row.agent,
        "identity": row.subject.agent.hash,
        "conditions": {
            **conditions._asdict(),
            "environment": conditions.environment or None,
            "settings": settings,
            "hash": conditions_hash(conditions),
        },
        "contents": {task: digest or None for task, digest in row.contents.items()},
    }


def identity_notes(table: ScoreTable) -> Iterator[str]:
    """Yield what is not scored together, and what cannot be compared although it is in one table."""
    yield from _several_of_one_name(table.rows)
    for row in table.rows:
        yield from _pooled(row)
    yield from _changed_tasks(table)
    yield from _single_rounds_apart(table)
    if not table.any_version:
        yield from _contents_between(table.rows)
    yield from _conditions_between(table.rows)


def _several_of_one_name(rows: Sequence[ScoreRow]) -> Iterator[str]:
    labels: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        labels[row.subject.agent.name].setdefault(row.label)
    for name, found in labels.items():
        if len(found) > 1:
            yield fitting(
                f"{name}: attempts by different agents of this name, or under different conditions, are not scored "
                "together: ",
                list(found),
            )


def _pooled(row: ScoreRow) -> Iterator[str]:
    """Yield what differs between attempts that are scored together all the same."""
    versions: dict[str, int] = defaultdict(int)
    images: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for attempt in row.attempts:
        conditions = attempt.record.conditions or {}
        if version := conditions.get("version"):
            versions[version] += 1
        if image := conditions.get("image"):
            images[attempt.record.task, attempt.record.task_hash].setdefault(image)
    if len(versions) > 1:
        told = ", ".join(f"{version} ({counted(number, 'attempt')})" for version, number in sorted(versions.items()))
        yield f"{row.name}: attempts by different versions of pytest-evocode are scored together: {told}"
    if differing := sorted({task for (task, _), found in images.items() if len(found) > 1}):
        yield f"{row.name}: attempts in different images of one task are scored together: {join_first(differing)}"


def price_tables(row: ScoreRow) -> dict[tuple[str, str], int]:
    """Return how many attempts of known cost there are by the file of prices that they were given: name and SHA-256.

    Without such a file both are empty: prices are those that come with the product, or the agent tells its cost.
    """
    found: dict[tuple[str, str], int] = defaultdict(int)
    for attempt in row.attempts:
        if attempt.usage is not None and attempt.usage.cost_usd is not None:
            found[given_prices(attempt.record.made_by)] += 1
    return dict(sorted(found.items()))


def price_lines(rows: Sequence[ScoreRow]) -> Iterator[str]:
    """Yield of which rows the cost is a sum by several tables of prices, which keep attempts not apart."""
    for row in rows:
        if len(tables := price_tables(row)) > 1:
            told = ", ".join(
                f"{f'{name} {digest[:SHORT_HASH]}'.strip() if name else 'no file of prices'} "
                f"({counted(number, 'attempt')})"
                for (name, digest), number in tables.items()
            )
            yield f"cost of {row.name}: by {len(tables)} price tables, do not compare it: {told}"


def _changed_tasks(table: ScoreTable) -> Iterator[str]:
    told = set()
    for row in table.rows:
        who = row.label, row.mode, row.from_round
        if who in told or not row.changed:
            continue
        told.add(who)
        where = f" ({row.mode})" if row.mode != "chain" else ""
        yield f"{row.label}{where}: {changed_tasks(row, any_version=table.any_version)}"


def changed_tasks(row: ScoreRow, *, any_version: bool) -> str:
    """Return which tasks of a row have changed between its attempts, and how these count."""
    tasks = [f"{task} ({_counts(hashes)})" for task, hashes in row.changed.items()]
    if any_version:
        rule = "attempts before and after are counted together, as --any-version asks for"
    else:
        rule = "attempts before and after are not scored together (--any-version mixes them)"
    return f"tasks changed, {rule}: {join_first(tasks)}"


def _counts(hashes: Mapping[str, int]) -> str:
    return ", ".join(
        f"{counted(number, 'attempt')} at {short_contents(digest)}" + ("" if digest else ", which may be any of them")
        for digest, number in hashes.items()
    )


def _single_rounds_apart(table: ScoreTable) -> Iterator[str]:
    """Yield for which chains single rounds of the same agent give no SR and Gap, because tasks changed between."""
    for row in table.rows:
        if row.mode == "single-round" or row.from_round is not None or table.single_rounds(row) is not None:
            continue
        for single in table.rows:
            if single.mode == "single-round" and single.subject == row.subject and single.version == row.version:
                tasks = join_first(differing_contents(row, single))
                yield f"{row.name}: no SR and Gap, because its single rounds are at other contents of {tasks}"


def _contents_between(rows: Sequence[ScoreRow]) -> Iterator[str]:
    """Yield the tasks that rows of the newest contents were run at different ones of."""
    found: dict[str, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        for task, digest in row.contents.items() if row.version == 0 else ():
            found[task][digest].setdefault(row.label)
    differing, unknown = [], []
    for task, by_hash in sorted(found.items()):
        hashes = list(by_hash)
        told = "; ".join(
            f"{short_contents(digest)}: {join_first(list(by_hash[digest]), 2)}" for digest in sorted(hashes)
        )
        if any(are_different(one, other) for one in hashes for other in hashes):
            differing.append(f"{task} ({told})")
        elif len(hashes) > 1:
            unknown.append(f"{task} ({told})")
    if differing:
        yield fitting("these tasks had other contents for other agents, whose scores cannot be compared: ", differing)
    if unknown:
        yield f"it is not known whether these tasks had the same contents for all agents: {join_first(unknown)}"


def _conditions_between(rows: Sequence[ScoreRow]) -> Iterator[str]:
    """Yield the conditions that are said to differ between agents of different names."""
    for texts in condition_columns([row.subject.conditions for row in rows]):
        found: dict[str, dict[str, None]] = defaultdict(dict)
        names = set()
        for text, row in zip(texts, rows, strict=True):
            if not text.endswith(NOT_SAID):
                found[text].setdefault(row.label)
                names.add(row.subject.agent.name)
        if len(found) > 1 and len(names) > 1:
            groups = {text: list(labels) for text, labels in sorted(found.items())}
            yield fitting_groups("conditions differ, which scores depend on: ", groups)


def table_notes(table: ScoreTable) -> Iterator[str]:
    """Yield all that is to be known of a table, each with what can be done about it."""
    yield from identity_notes(table)
    yield from superseded_notes(table)
    for row in table.rows:
        yield from (f"{row.name}: {note}" for note in row_notes(row))
    if unknown := _tasks_without_facts(table):
        yield (
            "of these tasks only the rounds that were run are known, name their directory with --tasks: "
            f"{join_first(unknown)}"
        )


def row_notes(row: ScoreRow) -> Iterator[str]:
    """Yield which attempts of a row are not finished, partial or missing, and how they count."""
    if unfinished := [attempt for attempt in row.attempts if not (attempt.finished or attempt.waiting)]:
        places = [f"{attempt.record.task} ({attempt.run})" for attempt in unfinished]
        yield f"not finished, missing rounds count as not passed: {join_first(places)}"
    if partial := [_part(attempt) for attempt in row.partial]:
        yield f"partial, only these rounds were selected and count: {join_first(partial)}"
    if waiting := [_part(attempt) for attempt in row.waiting]:
        yield f"waiting for a later session, only these rounds count: {join_first(waiting)}"
    if beside := [_part(attempt) for attempt in row.beside]:
        yield f"partial, and not counted beside an attempt with all its rounds: {join_first(beside)}"
    yield from missing_notes(row)
    if row.uncounted:
        yield (
            "no record tells how many rounds these tasks have, so each of them counts as one; name their directory "
            f"with --tasks: {join_first(row.uncounted)}"
        )


def superseded_notes(table: ScoreTable) -> Iterator[str]:
    """Yield what does not count: attempts that newer ones replace, and runs that are excluded."""
    if table.excluded:
        yield (
            f"excluded, so no score counts them: {join_first(table.excluded)}; "
            "evocode runs --include RUN counts one again"
        )
    if table.superseded:
        yield f"older attempts that newer ones replace do not count ({table.superseded}); --all-runs counts them"


def missing_notes(row: ScoreRow) -> Iterator[str]:
    """Yield which attempts of a row left no record."""
    if row.missing:
        places = [f"{task} attempt {number}" for task, number in row.missing]
        yield f"no readable record, counted as not passed: {join_first(places)}"


def _part(attempt: StoredAttempt) -> str:
    which = attempt_name(attempt.record.task, attempt.record.attempt)
    return f"{which} {' '.join(attempt.round_names)} ({attempt.run})"


def _tasks_without_facts(table: ScoreTable) -> list[str]:
    return sorted(
        {
            attempt.record.task
            for row in table.rows
            for attempt in row.attempts
            if attempt.layout != "evocode" and attempt.record.facts is None
        }
    )

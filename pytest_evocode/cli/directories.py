"""Commands that write results directories: ``evocode merge``, for shards and CI matrices, and ``evocode regrade``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from pytest_evocode.cli.printing import echo, print_json
from pytest_evocode.cli.shared_options import (
    DIRECTORY,
    directories_argument,
    given_images,
    image_option,
    json_option,
    named_runs,
    no_results,
    read_results,
    tasks_option,
)
from pytest_evocode.errors import UsageError
from pytest_evocode.metrics.grid import by_agent
from pytest_evocode.metrics.grouping import Grouping, when
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable, score_table
from pytest_evocode.metrics.scores import dataset_score
from pytest_evocode.names import TASK_FILE, attempt_name
from pytest_evocode.report.notes import identity_json, identity_notes
from pytest_evocode.report.tables import aligned, counted, format_number, join_first, values_of
from pytest_evocode.results.loading import Results, load_results
from pytest_evocode.results.merging import merge, missing_shards, require_new
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.tasks import find_tasks
from pytest_evocode.trial.recorded import Regraded, Regrader


@click.command("merge")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=DIRECTORY)
@click.option(
    "-o", "--output", "out", metavar="DIR", required=True, type=click.Path(path_type=Path), help="New directory."
)
@json_option
def merge_command(directories: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Merge several results directories into a new one, and say what is missing.

    Nothing is merged if two of them have different records of the same attempt. An attempt is missing if a session, or
    any of its shards, was to run it and there is no record of it. The exit status is 1 if a shard is missing, or has an
    attempt that is unfinished, which no score counts.
    """
    _require_new(out)
    sources = [load_results([directory]) for directory in directories]
    for problem in (problem for source in sources for problem in source.problems):
        echo(f"warning: {problem}", err=True)
    if all(source.are_empty for source in sources):
        raise click.ClickException(no_results(directories, any(source.problems for source in sources)))
    grouping = Grouping(
        sorted((attempt for source in sources for attempt in source.attempts), key=when),
        [run for source in sources for run in source.runs],
    )
    left_out = merge(sources, out, grouping.place)
    merged = load_results([out])
    table = score_table(merged)
    shards = missing_shards(merged.runs)
    missing = [(row.name, *attempt) for row in table.rows for attempt in row.missing]
    unfinished = [attempt for row in table.rows for attempt in row.attempts if not attempt.finished]
    unfinished += [each.stored for each in table.apart if each.stored is not None and not each.stored.finished]
    for note in identity_notes(table):
        echo(f"note: {note}", err=True)
    if as_json:
        print_json(
            {
                "output": str(out),
                "attempts": len(merged.attempts),
                "runs": len(merged.runs),
                "agents": [{"name": row.name, **identity_json(row)} for row in table.rows],
                "missing_shards": [f"{number}/{of}" for number, of in shards],
                "missing": [{"agent": agent, "task": task, "attempt": number} for agent, task, number in missing],
                "unfinished": [str(attempt.path.relative_to(out.resolve())) for attempt in unfinished],
                "left_out": [str(path) for path in left_out],
            }
        )
        return _end_by(shards, _apart_in_shards(merged, table))
    echo(
        f"merged {len(directories)} directories into {out}: {counted(len(merged.attempts), 'attempt')} of "
        f"{counted(len(merged.runs), 'run')}"
    )
    for path in left_out:
        echo(f"left out, because another directory has it whole or finished: {path}")
    for number, of in shards:
        echo(f"missing: shard {number} of {of}")
    if missing:
        echo(f"missing, counted as not passed: {counted(len(missing), 'attempt')}")
        for agent, task, number in missing:
            echo(f"  {task} {agent} attempt {number}")
    if unfinished:
        echo(f"not finished: {join_first([attempt.path for attempt in unfinished])}")
    if not (shards or missing or unfinished):
        is_known = any(run.record.selected for run in merged.runs)
        unknown = "what is missing is not known: no run records what was to be run"
        echo("nothing is missing" if is_known else unknown)
    _end_by(shards, _apart_in_shards(merged, table))


def _apart_in_shards(merged: Results, table: ScoreTable) -> list[str]:
    """Return the attempts of shards that no score counts."""
    of_shards = {run.record.run for run in merged.runs if run.record.shard is not None}
    return [f"{each.task} {each.agent} attempt {each.attempt}" for each in table.apart if each.run in of_shards]


def _require_new(out: Path) -> None:
    """Raise click.UsageError, whose status is not that of a missing shard, where a directory is not empty."""
    try:
        require_new(out)
    except UsageError as error:
        raise click.UsageError(str(error)) from None


def _end_by(shards: Sequence[tuple[int, int]], unfinished: Sequence[str]) -> None:
    """Exit with the status 1 where shards are missing, or attempts of them are unfinished, for CI to see."""
    if unfinished:
        what = f"{counted(len(unfinished), 'attempt')} of shards not scored, {join_first(unfinished)}"
        echo(f"error: {what}; go on with them, and merge again", err=True)
    if shards:
        names = join_first([f"{number}/{of}" for number, of in shards])
        echo(
            f"error: {counted(len(shards), 'shard')} missing, {names}; merge again when the results are there", err=True
        )
    if shards or unfinished:
        sys.exit(1)


@click.command("regrade")
@directories_argument
@click.option("--run", metavar="RUN", help="Verify only the attempts of this run or tag (tag:NAME).")
@tasks_option("Where the tasks are now, if they have moved.")
@image_option
@json_option
def regrade_command(directories: tuple[Path, ...], run: str | None, task_directory: Path | None, as_json: bool) -> None:
    """Verify finished rounds again with today's tests, on the files that the agent left.

    No agent is run. The attempts must come from a session with --evocode-snapshots on this machine. Earlier verdicts
    are kept in each attempt's directory, in earlier/1, earlier/2 and so on. The exit status is 1 if a round could not
    be verified.
    """
    results = read_results(directories)
    attempts = [each for each in results.attempts if each.layout == "evocode"]
    only = None if run is None else named_runs(results, run)
    attempts = [each for each in attempts if only is None or each.run in only]
    if not attempts:
        raise click.ClickException("there are no attempts of pytest-evocode" + (f" of the run {run}" if run else ""))
    tasks = find_tasks(task_directory) if task_directory is not None else {}
    if task_directory is not None and not tasks:
        raise click.ClickException(f"{task_directory} is not a task and has none in it: there is no {TASK_FILE}")
    with Regrader(tasks, images=given_images()) as regrader:
        found = [regrader.regrade(attempt) for attempt in attempts]
    _print(found, score_table(results, all_runs=True).rows, as_json)
    sys.exit(1 if any(each.problems for each in found) else 0)


def _print(found: Sequence[Regraded], rows: Sequence[ScoreRow], as_json: bool) -> None:
    by_path = {each.attempt.path: list(zip(each.before, each.after, strict=True)) for each in found}
    pairs = [pair for of_attempt in by_path.values() for pair in of_attempt]
    scored = scored_together(rows, by_path)
    of_same_task = (pair for each in found if each.same_task for pair in by_path[each.attempt.path])
    same = [pair for pair in of_same_task if {each.outcome for each in pair} <= {"passed", "failed"}]
    verified = sum(each.verified for each in found)
    problems = [(each.attempt.path, problem) for each in found for problem in each.problems]
    if as_json:
        values = {
            "attempts": sum(bool(each.verified) for each in found),
            "rounds": verified,
            "changes": changes(pairs),
            "flaky": changes(same),
            "dataset_scores": score_changes(scored),
            "problems": [{"attempt": str(path), "problem": problem} for path, problem in problems],
        }
        print_json(values)
        return
    echo(f"verified {verified} rounds again")
    if verified:
        echo("\n".join(change_lines(pairs, scored)))
    if line := flaky_line(same):
        echo(line)
    for path, problem in problems:
        echo(f"kept as it was: {path}: {problem}", err=True)


Pair = tuple[RoundRecord, RoundRecord]
"""The records of a round before and after it was verified again."""


def changes(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Return the rounds whose outcome, reward or number of passed cases has changed, ready for JSON."""
    return [
        {
            **values_of(after, "task", "agent", "attempt", "round"),
            "before": _verdict(before),
            "after": _verdict(after),
        }
        for before, after in pairs
        if _verdict(before) != _verdict(after)
    ]


def _verdict(record: RoundRecord) -> dict[str, Any]:
    passed, cases = record.case_counts
    reward = record.verdict.reward if record.verdict is not None else None
    return {"outcome": record.outcome, "reward": reward, "passed_cases": passed, "cases": cases}


def flaky_line(pairs: Sequence[Pair]) -> str:
    """Return which rounds of tasks that have not changed have another verdict now, in one line; empty without any."""
    found = [
        f"{each['task']} {attempt_name(each['agent'], each['attempt'])} {each['round']}" for each in changes(pairs)
    ]
    if not found:
        return ""
    return f"flaky, because their tasks have not changed since: {join_first(found)}"


def scored_together(rows: Iterable[ScoreRow], regraded: Mapping[Path, Sequence[Pair]]) -> list[Pair]:
    """Return the rounds of attempts that count, as those of the rows that the attempts are in.

    Args:
        rows: The rows of all runs' attempts, as they were before.
        regraded: The rounds of each attempt by its directory.
    """
    found = []
    for row in rows:
        for attempt in row.attempts:
            of_row = {"agent": row.name, "attempt": attempt.record.attempt}
            for before, after in regraded.get(attempt.path, ()):
                found.append((before.model_copy(update=of_row), after.model_copy(update=of_row)))
    return found


def score_changes(pairs: Sequence[Pair]) -> dict[str, dict[str, float | None]]:
    """Return each row's Dataset Score, 0 to 100, before and after, over what :func:`scored_together` returned."""
    before, after = by_agent(pair[0] for pair in pairs), by_agent(pair[1] for pair in pairs)
    return {agent: {"before": dataset_score(before[agent]), "after": dataset_score(after[agent])} for agent in after}


def change_lines(pairs: Sequence[Pair], scored: Sequence[Pair]) -> Iterator[str]:
    """Yield the table of changed rounds, and the Dataset Score before and after of each row that is ``scored``."""
    found = changes(pairs)
    if not found:
        yield "no verdict has changed"
    else:
        rows = [
            (each["task"], attempt_name(each["agent"], each["attempt"]), each["round"], _in_words(each["before"]), "->",
             _in_words(each["after"]))
            for each in found
        ]  # fmt: skip
        yield from aligned([("task", "attempt", "round", "before", "", "after"), *rows], left=range(6))
    yield ""
    for agent, score in score_changes(scored).items():
        yield f"{agent}: Dataset Score {format_number(score['before'])} -> {format_number(score['after'])}"


def _in_words(verdict: dict[str, Any]) -> str:
    cases = f" {verdict['passed_cases']}/{verdict['cases']}" if verdict["cases"] else ""
    return f"{verdict['outcome']}{cases}"

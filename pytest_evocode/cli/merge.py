"""``evocode merge``: put the results of shards or of a CI matrix into one directory."""

from __future__ import annotations

from collections.abc import Sized
from pathlib import Path

import click

from pytest_evocode.cli.printing import echo, print_json
from pytest_evocode.cli.shared_options import DIRECTORY, json_option, no_results
from pytest_evocode.metrics.grouping import Grouping, when
from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.report.notes import identity_json, identity_notes
from pytest_evocode.report.tables import join_first
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.merging import merge, missing_shards


@click.command("merge")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=DIRECTORY)
@click.option(
    "-o", "--output", "out", metavar="DIR", required=True, type=click.Path(path_type=Path), help="New directory."
)
@json_option
def merge_command(directories: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Merge several results directories into a new one, and say what is missing.

    Nothing is merged if two of them have the same attempt. An attempt is missing if a session, or any of its shards,
    was to run it and there is no record of it.
    """
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
    rows = table.rows
    shards = missing_shards(merged.runs)
    missing = [(row.name, *attempt) for row in rows for attempt in row.missing]
    unfinished = [attempt for row in rows for attempt in row.attempts if not attempt.finished]
    for note in identity_notes(table):
        echo(f"note: {note}", err=True)
    if as_json:
        print_json(
            {
                "output": str(out),
                "attempts": len(merged.attempts),
                "runs": len(merged.runs),
                "agents": [{"name": row.name, **identity_json(row)} for row in rows],
                "missing_shards": [f"{number}/{of}" for number, of in shards],
                "missing": [{"agent": agent, "task": task, "attempt": number} for agent, task, number in missing],
                "unfinished": [str(attempt.path.relative_to(out.resolve())) for attempt in unfinished],
                "left_out": [str(path) for path in left_out],
            }
        )
        return
    echo(
        f"merged {len(directories)} directories into {out}: {_count(merged.attempts, 'attempt')} of "
        f"{_count(merged.runs, 'run')}"
    )
    for path in left_out:
        echo(f"left out, because another directory has it whole or finished: {path}")
    for number, of in shards:
        echo(f"missing: shard {number} of {of}")
    if missing:
        echo(f"missing, counted as not passed: {_count(missing, 'attempt')}")
        for agent, task, number in missing:
            echo(f"  {task} {agent} attempt {number}")
    if unfinished:
        echo(f"not finished: {join_first([attempt.path for attempt in unfinished])}")
    if not (shards or missing or unfinished):
        is_known = any(run.record.selected for run in merged.runs)
        unknown = "what is missing is not known: no run records what was to be run"
        echo("nothing is missing" if is_known else unknown)


def _count(things: Sized, name: str) -> str:
    number = len(things)
    return f"{number} {name}{'' if number == 1 else 's'}"

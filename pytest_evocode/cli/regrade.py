"""``evocode regrade``: verify finished rounds again after their tests have changed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from pytest_evocode.cli.printing import echo, print_json
from pytest_evocode.cli.shared_options import directories_argument, json_option, read_results, tasks_option
from pytest_evocode.metrics.score_table import ScoreRow, score_table
from pytest_evocode.names import TASK_FILE
from pytest_evocode.report.regraded import change_lines, changes, flaky_line, score_changes, scored_together
from pytest_evocode.tasks import find_tasks
from pytest_evocode.trial.recorded import Regraded, Regrader


@click.command("regrade")
@directories_argument
@click.option("--run", metavar="RUN", help="Verify only the attempts of this run.")
@tasks_option("Where the tasks are now, if they have moved.")
@json_option
def regrade_command(directories: tuple[Path, ...], run: str | None, task_directory: Path | None, as_json: bool) -> None:
    """Verify finished rounds again with today's tests, on the files that the agent left.

    No agent is run. The attempts must come from a session with --evocode-snapshots on this machine. Earlier verdicts
    are kept in each attempt's directory, in earlier/1, earlier/2 and so on. The exit status is 1 if a round could not
    be verified.
    """
    results = read_results(directories)
    attempts = [each for each in results.attempts if each.layout == "evocode"]
    attempts = [each for each in attempts if run in (None, each.run)]
    if not attempts:
        raise click.ClickException("there are no attempts of pytest-evocode" + (f" of the run {run}" if run else ""))
    tasks = find_tasks(task_directory) if task_directory is not None else {}
    if task_directory is not None and not tasks:
        raise click.ClickException(f"{task_directory} is not a task and has none in it: there is no {TASK_FILE}")
    with Regrader(tasks) as regrader:
        found = [regrader.regrade(attempt) for attempt in attempts]
    _print(found, score_table(results, all_runs=True).rows, as_json)
    sys.exit(1 if any(each.problems for each in found) else 0)


def _print(found: Sequence[Regraded], rows: Sequence[ScoreRow], as_json: bool) -> None:
    by_path = {each.attempt.path: list(zip(each.before, each.after, strict=True)) for each in found}
    pairs = [pair for of_attempt in by_path.values() for pair in of_attempt]
    scored = scored_together(rows, by_path)
    same = [
        (before, after)
        for each in found
        if each.same_task
        for before, after in zip(each.before, each.after, strict=True)
        if {before.outcome, after.outcome} <= {"passed", "failed"}
    ]
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

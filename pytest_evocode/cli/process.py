"""``evocode process``: score the engineering discipline of recorded attempts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import click

from pytest_evocode.cli.printing import echo, prints_view, tell_note
from pytest_evocode.cli.shared_options import DEFAULT_RESULTS, any_version_option, given_images, image_option
from pytest_evocode.errors import RecordFault
from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.process.attempts import FoundAttempt, TaskFinder, find_attempts, score_attempt
from pytest_evocode.process.execution import Execution, choose_engine
from pytest_evocode.process.judge import make_judge
from pytest_evocode.process.protocols import Judge
from pytest_evocode.process.scores.released_scorer import read_released, summarise_released
from pytest_evocode.process.scores.rigor_score import AttemptProcess, read_weights
from pytest_evocode.process.scores.summary import ProcessSummary
from pytest_evocode.report.notes import identity_notes
from pytest_evocode.report.process import agents_view, missing_task_notes, process_view
from pytest_evocode.report.views import View
from pytest_evocode.results.loading import Results, load_results


@click.command("process")
@click.argument("directory", metavar="[DIR]", default=DEFAULT_RESULTS, type=click.Path(path_type=Path))
@click.option(
    "--tasks", multiple=True, metavar="PATH", type=click.Path(path_type=Path),
    help="Tasks, or directories of tasks. By default, those below the current directory.",
)  # fmt: skip
@click.option("--explain", metavar="TASK", help="Print the evidence behind every value of the attempts at TASK.")
@click.option("--weight", "weights", multiple=True, metavar="PILLAR=X", help="Change a weight, such as pf=0.3.")
@click.option("--execute", is_flag=True, help="Build and test, in containers, what agents left between their edits.")
@click.option(
    "--budget", type=click.FloatRange(min=0), default=300.0, show_default=True, metavar="SECONDS",
    help="With --execute: seconds per attempt. Where they do not suffice, states are sampled.",
)  # fmt: skip
@click.option("--env", "environment", default="auto", metavar="ENV", help="With --execute: docker, sandbox or auto.")
@image_option
@click.option(
    "--judge", "judge_spec", metavar="PROVIDER/MODEL", help="Have a model judge DQ, RT, AQ, SC and CBS as well."
)
@click.option(
    "--votes", type=click.IntRange(min=1), default=3, show_default=True, help="With --judge: votes per question."
)
@any_version_option
@click.option("--profile", type=click.Choice(["released"]), help="Score RigorBench's own result files as it does.")
@prints_view()
def process_command(
    directory: Path,
    tasks: tuple[Path, ...],
    explain: str | None,
    weights: tuple[str, ...],
    execute: bool,
    budget: float,
    environment: str,
    judge_spec: str | None,
    votes: int,
    profile: str | None,
    any_version: bool,
) -> View:
    """Score the engineering discipline of recorded attempts.

    DIR is a results directory; the default is evocode-results. The scores are RigorBench's seven pillars, computed from
    the trajectories and from what tasks declare about themselves.
    """
    changed = read_weights(weights)
    if profile == "released":
        return agents_view(_released(directory))
    judge = make_judge(judge_spec, votes=votes) if judge_spec is not None else None
    attempts = _scored(directory, tasks, environment if execute else None, budget, judge, any_version)
    if explain is not None:
        return process_view(_attempts_at(explain, attempts), changed, explained=True)
    return process_view(attempts, changed)


def _attempts_at(task: str, attempts: list[AttemptProcess]) -> list[AttemptProcess]:
    chosen = [attempt for attempt in attempts if attempt.task == task]
    if not chosen:
        names = ", ".join(sorted({attempt.task for attempt in attempts}))
        raise click.UsageError(f"no attempt at {task}; there are attempts at {names}")
    return chosen


def _released(directory: Path) -> dict[str, ProcessSummary]:
    results, left_out = read_released(directory)
    for reason in left_out:
        echo(f"left out: {reason}", err=True)
    for note in missing_task_notes(results):
        tell_note(note)
    return summarise_released(results)


def _scored(
    directory: Path,
    tasks: tuple[Path, ...],
    environment: str | None,
    budget: float,
    judge: Judge | None,
    any_version: bool,
) -> list[AttemptProcess]:
    """Return the attempts' process records.

    Results of earlier executions are used even when ``environment`` is None and nothing is executed now.
    """
    finder = TaskFinder(tasks or (Path(), *sorted(path for path in Path().iterdir() if path.is_dir())))
    attempts, problems = find_attempts(directory)
    for problem in problems:
        echo(f"warning: {problem}", err=True)
    results = load_results([directory])
    table = score_table(results, all_runs=True, any_version=any_version)
    for note in identity_notes(table):
        tell_note(note)
    if replaced := score_table(results, any_version=any_version).superseded:
        also = "evocode results leaves out"
        tell_note(f"attempts of all runs are scored, {replaced} older ones with them that {also}")
    names = {attempt.path: row.group for row in table.rows for attempt in (*row.attempts, *row.beside)}
    engine = choose_engine(environment, images=given_images())[0] if environment is not None else None
    try:
        scored = []
        for found in _without_copies(attempts, results):
            task = finder.find(found.task)
            with (
                Execution(task, engine, budget=budget, tell=partial(echo, err=True))
                if task is not None
                else nullcontext() as executor
            ):
                try:
                    process = score_attempt(found.directory, task, executor=executor, judge=judge)
                except RecordFault as error:
                    echo(f"warning: {error}", err=True)
                    continue
            scored.append(process.model_copy(update={"agent": names.get(found.directory.resolve(), process.agent)}))
    finally:
        if engine is not None:
            engine.close()
    if not scored:
        raise click.ClickException(f"there is no attempt in {directory} that can be scored; the warnings say why")
    return scored


def _without_copies(attempts: list[FoundAttempt], results: Results) -> Iterator[FoundAttempt]:
    """Yield the attempts, each once, and tell of copies that are left out."""
    once = {attempt.path for attempt in results.attempts}
    for found in attempts:
        if not found.records or found.directory.resolve() in once:
            yield found
        else:
            echo(f"warning: {found.directory}: another record of this attempt counts; skipped", err=True)

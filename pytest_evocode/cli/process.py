"""``evocode process``: the engineering discipline of recorded attempts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pytest_evocode.process.protocols import Judge
    from pytest_evocode.process.scores.process_record import AttemptProcess
    from pytest_evocode.process.scores.summary import Summary


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--tasks", multiple=True, metavar="PATH", type=click.Path(path_type=Path),
    help="Tasks, or directories of tasks; by default what is below the present directory.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print a list with a row for each agent, and nothing else.")
@click.option("--explain", metavar="TASK", help="Print the evidence for every value of the attempts at TASK.")
@click.option("--weight", "weights", multiple=True, metavar="PILLAR=X", help="Another weight, such as pf=0.3.")
@click.option("--execute", is_flag=True, help="Build and test what agents left between their edits, in containers.")
@click.option(
    "--budget", type=click.FloatRange(min=0), default=300.0, show_default=True, metavar="SECONDS",
    help="For --execute: seconds for each attempt; what they do not suffice for is sampled.",
)  # fmt: skip
@click.option("--env", "environment", default="auto", metavar="ENV", help="For --execute: docker, sandbox or auto.")
@click.option("--judge", "judge_spec", metavar="PROVIDER/MODEL", help="Have a model judge DQ, RT, SC and CBS, too.")
@click.option(
    "--votes", type=click.IntRange(min=1), default=3, show_default=True, help="For --judge: of each question."
)
@click.option("--profile", type=click.Choice(["released"]), help="Score RigorBench's own result files as it does.")
def process(
    directory: Path,
    tasks: tuple[Path, ...],
    as_json: bool,
    explain: str | None,
    weights: tuple[str, ...],
    execute: bool,
    budget: float,
    environment: str,
    judge_spec: str | None,
    votes: int,
    profile: str | None,
) -> None:
    """Score the engineering discipline of recorded attempts in DIR, a results directory.

    The seven pillars of RigorBench, from the trajectories and from what tasks declare about themselves.
    """
    from pytest_evocode.errors import EvocodeError
    from pytest_evocode.process.scores.rigor_score import read_weights

    try:
        changed = read_weights(weights)
        if profile == "released":
            lines = _released_lines(directory, as_json)
        else:
            judge = _judge(judge_spec, votes) if judge_spec is not None else None
            attempts = _scored(directory, tasks, environment if execute else None, budget, judge)
            lines = _lines(attempts, changed, explain, as_json)
        click.echo("\n".join(lines))
    except EvocodeError as error:
        raise click.ClickException(str(error)) from None


def _lines(
    attempts: list[AttemptProcess], weights: Mapping[str, float], explain: str | None, as_json: bool
) -> Iterable[str]:
    from pytest_evocode.process.scores.summary import by_task, summarise_agent
    from pytest_evocode.report.process import explain_lines, process_lines

    if explain is not None:
        chosen = [attempt for attempt in attempts if attempt.task == explain]
        if not chosen:
            names = ", ".join(sorted({attempt.task for attempt in attempts}))
            raise click.UsageError(f"no attempt at {explain}; there are attempts at {names}")
        return explain_lines(chosen, weights)
    if as_json:
        return [_json({agent: summarise_agent(each, weights) for agent, each in by_task(attempts).items()})]
    return process_lines(attempts, weights)


def _released_lines(directory: Path, as_json: bool) -> Iterable[str]:
    from pytest_evocode.report.process import agent_lines

    agents = _released(directory)
    return [_json(agents)] if as_json else agent_lines(agents)


def _json(agents: Mapping[str, Summary]) -> str:
    from pytest_evocode.process.scores.summary import as_json

    return json.dumps(as_json(agents), indent=1)


def _released(directory: Path) -> dict[str, Summary]:
    from pytest_evocode.process.scores.released_scorer import read_released, summarise_released

    results, left_out = read_released(directory)
    for reason in left_out:
        click.echo(f"left out: {reason}", err=True)
    return summarise_released(results)


def _judge(spec: str, votes: int) -> Judge:
    from pytest_evocode.process.judge import make_judge

    return make_judge(spec, votes=votes)


def _scored(
    directory: Path, tasks: tuple[Path, ...], environment: str | None, budget: float, judge: Judge | None
) -> list[AttemptProcess]:
    """The attempts' records; what was executed before is known without an environment, too."""
    from pytest_evocode.process.attempts import TaskFinder, find_attempts, score_found
    from pytest_evocode.process.execution import Execution, choose_engine

    finder = TaskFinder(tasks or (Path(), *sorted(path for path in Path().iterdir() if path.is_dir())))
    engine = choose_engine(environment)[0] if environment is not None else None
    try:
        scored = []
        for found in find_attempts(directory):
            task = finder.find(found.task)
            with Execution(task, engine, budget=budget) if task is not None else nullcontext() as executor:
                scored.append(score_found(found, task, executor=executor, judge=judge))
        return scored
    finally:
        if engine is not None:
            engine.close()

"""``evocode runs``: what runs there are, and which of them count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from pytest_evocode.cli.printing import echo, print_json
from pytest_evocode.cli.shared_options import DEFAULT_RESULTS, read_results
from pytest_evocode.environments.cache import lock_run
from pytest_evocode.report.tables import aligned, format_number
from pytest_evocode.results.directory import change_run, remove_run, removed_runs, restore_run
from pytest_evocode.results.identity import conditions_hash, conditions_of
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import RunRecord


def _option(name: str, help: str, metavar: str = "RUN") -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(f"--{name}", metavar=metavar, multiple=True, help=f"{help}; repeatable.")


@click.command("runs")
@click.argument("directory", metavar="[DIR]", default=DEFAULT_RESULTS, type=click.Path(file_okay=False, path_type=Path))
@_option("remove", "Move a run to the trash of the directory")
@_option("restore", "Bring a removed run back")
@_option("exclude", "Have no score count a run")
@_option("include", "Have scores count an excluded run again")
@_option("tag", "Tag a run", "RUN=TAG")
@_option("untag", "Take a tag away from a run", "RUN=TAG")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def runs_command(directory: Path, form: str, **changes: tuple[str, ...]) -> None:
    """List the runs of a results directory, the newest last, or change them.

    DIR is a results directory; the default is evocode-results. The score of an agent is its Dataset Score, or SR in
    single-round mode. Nothing is deleted: what is removed lies in DIR/.trash.
    """
    if not any(changes.values()):
        if removed := removed_runs(directory):
            echo(f"note: removed: {', '.join(removed)}; --restore RUN brings one back", err=True)
        found = list(_rows(directory))
        if form == "json":
            print_json(found)
        else:
            echo("\n".join(aligned(list(_lines(found)), left=range(len(_HEAD)))))
        return
    for change, names in changes.items():
        for name in names:
            run, _, tag = name.partition("=")
            _change(directory, change, run, tag)


def _change(directory: Path, change: str, run: str, tag: str) -> None:
    if (lock := lock_run(directory.resolve(), run)) is None:
        raise click.ClickException(f"the run {run} is still under way")
    try:
        if change == "remove":
            trash = remove_run(directory, run)
            echo(f"moved to {trash}; bring it back with: evocode runs {directory} --restore {run}")
        elif change == "restore":
            restore_run(directory, run)
            echo(f"{run} is back")
        elif change in ("exclude", "include"):
            change_run(directory, run, excluded=change == "exclude")
            echo(f"no score counts {run}" if change == "exclude" else f"scores count {run} again")
        elif not tag:
            raise click.UsageError(f"--{change} {run}: write it as RUN=TAG")
        else:
            known: list[str] = next((row["tags"] for row in _rows(directory) if row["run"] == run), [])
            others = [each for each in known if each != tag]
            change_run(directory, run, tags=(*others, tag) if change == "tag" else tuple(others))
            echo(f"{run}: {'tagged' if change == 'tag' else 'no longer'} {tag}")
    finally:
        lock.release()


_HEAD = ("run", "agents", "tasks", "attempts", "state", "scores", "conditions", "tags")


def _lines(rows: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    yield _HEAD
    for row in rows:
        scores = ", ".join(
            f"{agent} {format_number(score)}{_so_far(row, agent)}" for agent, score in row["scores"].items()
        )
        state = ", ".join([row["state"], *(f"{count} {what}" for what, count in row["unscored"].items())])
        state += ", excluded" if row["excluded"] else ""
        cells = (", ".join(row["agents"]), str(row["tasks"]), str(row["attempts"]), state)
        yield row["run"], *cells, scores or "n/a", row["hash"] or "n/a", " ".join(row["tags"])


def _so_far(row: dict[str, Any], agent: str) -> str:
    """Return that a score is not over all that the run is to make; empty where it is."""
    found = row["scored_tasks"].get(agent, {"scored": 0, "of": 0})
    over = f"over {found['scored']} of {found['of']} tasks" if found["scored"] < found["of"] else ""
    told = [each for each in (over, "so far" if row["state"] == "waiting" else "") if each]
    return f" ({', '.join(told)})" if told else ""


def _rows(directory: Path) -> Iterator[dict[str, Any]]:
    """Yield what there is to be known of each run, those included that Harbor made and that have no record."""
    results = read_results([directory])
    attempts: dict[str, list[StoredAttempt]] = defaultdict(list)
    for attempt in results.attempts:
        attempts[attempt.run].append(attempt)
    records = {stored.record.run: stored.record for stored in results.runs}
    for name in results.run_names:
        record, made = records.get(name), attempts[name]
        selected = record.selected if record is not None else {}
        agents = {each.record.agent for each in made} | {agent for by_agent in selected.values() for agent in by_agent}
        unscored: dict[str, int] = {}
        for each in made:
            if each.unscored is not None:
                unscored[each.unscored] = unscored.get(each.unscored, 0) + 1
        yield {
            "run": name,
            "started": (record.started if record is not None else "") or None,
            "agents": sorted(agents),
            "tasks": len({each.record.task for each in made} | set(selected)),
            "attempts": len(made),
            "state": _state(directory, record),
            "unscored": unscored,
            "scores": _scores(record),
            "scored_tasks": {agent: _scored_tasks(agent, selected, made) for agent in sorted(agents)},
            "hash": conditions_hash(conditions_of(record)) if record is not None else None,
            "conditions": record.conditions if record is not None else None,
            "tags": list(record.tags) if record is not None else [],
            "excluded": record is not None and record.excluded,
        }


def _scored_tasks(
    agent: str, selected: Mapping[str, Mapping[str, object]], made: Sequence[StoredAttempt]
) -> dict[str, int]:
    """Return at how many of an agent's tasks there is an attempt that scores count."""
    own = [each for each in made if each.record.agent == agent]
    every = {each.record.task for each in own} | {task for task, agents in selected.items() if agent in agents}
    return {"scored": len({each.record.task for each in own if each.unscored is None}), "of": len(every)}


def _scores(record: RunRecord | None) -> dict[str, float | None]:
    if record is None:
        return {}
    field = "sr" if record.mode == "single-round" else "dataset_score"
    return {agent: scores.get(field) for agent, scores in record.scores.items()}


def _state(directory: Path, record: RunRecord | None) -> str:
    if record is None:
        return "no record"
    if record.waiting:
        return "waiting"
    if record.finished is not None:
        return "interrupted" if record.interrupted else "ended"
    if (lock := lock_run(directory.resolve(), record.run)) is None:
        return "under way"
    lock.release()
    return "killed"

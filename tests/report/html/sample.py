"""A made-up report in every detail of ``data.d.ts``, for tests of the viewer and for looking at it.

Run ``python -m tests.report.html.sample DIR`` for a folder that a browser opens.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random
from typing import Any

from pytest_evocode.report.html import bundle
from pytest_evocode.report.html.folder import packed
from tests.report.html import hostile as attacks
from tests.report.html import sample_attempts, sample_index, sample_trajectories, sample_world


def sample_report(
    rows: int = 3,
    tasks: int = 4,
    rounds: int = 8,
    attempts: int = 1,
    *,
    hostile: bool = False,
    long_line: bool = False,
    trajectory_steps: int = 40,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the values of a report by file name without ``data/`` and ``.js``.

    The last row of three or more stops at the first failure and has no recordings: it is a ranking of its own. The last
    attempt of the second row is under way. The last task of three or more is gone.

    Args:
        rows: How many agents.
        tasks: How many tasks; every fourth has two rounds fewer.
        rounds: Of each task.
        attempts: Of each agent at each task.
        hostile: Exchange every text for one of ``hostile.CORPUS``.
        long_line: With lines of five million characters.
        trajectory_steps: Of each recorded round; 0 for no recordings.
        seed: The same values for the same seed.
    """
    random = Random(seed)
    world = sample_world.tasks(tasks, rounds)
    played = [
        _played(row, rows, task, number, random, unfinished=(row, task, number) == (1, world[-1], attempts))
        for row in range(rows)
        for task in world
        for number in range(1, attempts + 1)
    ]
    values: dict[str, Any] = {
        "index": sample_index.index(world, played, random),
        "comparisons": sample_index.comparisons(world, played, random),
    }
    for task in world:
        mine = [each for each in played if each.task is task]
        values[f"tasks/{task.id}"] = sample_attempts.task_data(task, mine, gone=len(world) > 2 and task is world[-1])
    for each in played:
        recorded = trajectory_steps if each.mode == "chain" else 0
        value = values[f"attempts/{each.id}"] = sample_attempts.attempt_data(each, recorded, random)
        for each_round in value["rounds"]:
            if each_round["trajectory"]:
                parts = sample_trajectories.parts(recorded, copied=2 if each_round["index"] > 1 else 0)
                for number, part in enumerate(parts, start=1):
                    values[f"trajectories/{each.id}-{each_round['index']}-{number}"] = part
    if hostile:
        values = attacks.hostile(values)
    return attacks.add_long_line(values) if long_line else values


def _played(
    row: int, rows: int, task: sample_world.Task, number: int, random: Random, *, unfinished: bool
) -> sample_world.Attempt:
    agents = sample_world.AGENTS
    agent = agents[row % len(agents)] + (f"-{row // len(agents)}" if row >= len(agents) else "")
    mode = "fail-stop" if rows > 2 and row == rows - 1 else "chain"
    attempt = sample_world.Attempt(f"{task.id}-{row}-{number}", f"row-{row}", agent, task, number, f"run-{row}", mode)
    return sample_world.play(attempt, 0.9 - 0.6 * row / max(rows, 2), random, unfinished=unfinished)


def write_sample(folder: Path, values: dict[str, Any]) -> Path:
    """Write values and the viewer to a folder, and return the path of the page."""
    for name, value in values.items():
        path = folder / "data" / f"{name}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(packed(name, value))
    (folder / "report.js").write_text(bundle.script(), encoding="utf-8")
    (folder / "report.css").write_text(bundle.style(), encoding="utf-8")
    page = folder / "index.html"
    page.write_text(bundle.page(), encoding="utf-8")
    return page


def main() -> None:
    """Write a sample to the folder that the command line names."""
    parser = argparse.ArgumentParser(description="Write a made-up report.")
    parser.add_argument("folder", type=Path)
    for option, default in (
        ("rows", 3),
        ("tasks", 4),
        ("rounds", 8),
        ("attempts", 1),
        ("trajectory-steps", 40),
        ("seed", 0),
    ):
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--long-line", action="store_true")
    settings = vars(parser.parse_args())
    print(write_sample(settings.pop("folder"), sample_report(**settings)))


if __name__ == "__main__":
    main()

"""``evocode harden``: find out which rounds of tasks are passed without work."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from pytest_evocode.checks.attacks import ATTACKS
from pytest_evocode.checks.cheating import passed_rounds
from pytest_evocode.cli.printing import echo, print_json
from pytest_evocode.cli.shared_options import ending_orderly, environment_option, given_images, json_option, named_task
from pytest_evocode.environments import choose_engine
from pytest_evocode.errors import EvocodeError
from pytest_evocode.report.tables import aligned
from pytest_evocode.tasks import Task, load_task


@click.command("harden")
@click.argument("directories", metavar="TASK...", nargs=-1, required=True, type=click.Path(path_type=Path))
@environment_option
@json_option
def harden_command(directories: tuple[Path, ...], environment: str, as_json: bool) -> None:
    """Play attacks on each TASK that do no work, and print which rounds they pass.

    They are those of the checks cheat[...], and others that leave start-up files, programs and configuration outside of
    the workspace. Each is played in each round, from the state that the reference solutions of the rounds before lead
    to, as far as there are any.

    The exit status is 1 if a round is passed, or a task cannot be played.
    """
    tasks = [load_task(named_task(directory)) for directory in directories]
    hidden = [Path.cwd(), *(task.directory.resolve() for task in tasks)]
    engine, _ = choose_engine(environment, hidden=hidden, images=given_images())
    found: list[dict[str, object]] = []
    problems, is_passed = [], False
    with contextlib.closing(engine), ending_orderly():
        for task in tasks:
            try:
                passed = passed_rounds(task, engine, os.environ)
            except EvocodeError as error:
                problems.append({"task": str(task.directory), "problem": str(error)})
                echo(f"{task.directory}: {error}", err=True)
                continue
            is_passed = is_passed or any(passed.values())
            attacks = [
                {"name": each.name, "tries": each.tries, "passes": passed[each.name]} for each in ATTACKS.values()
            ]
            places = sorted({round_.verify_in for round_ in task.rounds})
            found.append({"task": str(task.directory), "verify_in": places, "attacks": attacks})
            if not as_json:
                _print(task, passed, f"verified in {', '.join(places)} ({engine.name})")
    if as_json:
        print_json({"environment": engine.name, "tasks": found, "problems": problems})
    sys.exit(1 if problems or is_passed else 0)


def _print(task: Task, passed: Mapping[str, Sequence[str]], where: str) -> None:
    echo(f"{task.directory}: {len(task.rounds)} rounds, {where}")
    rows = [(each.name, ", ".join(passed[each.name]) or "-", each.tries) for each in ATTACKS.values()]
    echo("\n".join([*aligned([("attack", "passes", "tries to"), *rows], left=(0, 1, 2)), ""]))

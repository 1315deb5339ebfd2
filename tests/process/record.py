"""Play the scripts of example tasks and write down what comes of them: ``python -m tests.process.record [TASK...]``.

What an attempt leaves goes to ``example_tasks/process/TASK/recorded/NAME``, beside its script ``NAME.toml``, so that
both ``--evocode-agent=replay:`` and ``evocode process`` take it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pytest_evocode.environments import Engine, choose_engine
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.tasks import load_task
from pytest_evocode.trial.trial import Trial
from tests.process.scripted import ScriptedAgent, example_scripts

#: What of an attempt is kept.
KEPT = ("result.json", "steps/*/agent/trajectory.json", "steps/*/verifier/reward.txt", "steps/*/verifier/cases.json")


def play(script: Path, engine: Engine, directory: Path) -> tuple[list[RoundRecord], Path]:
    """Play a script on its task; returns the records of its rounds, and the attempt's directory below ``directory``."""
    task = load_task(script.parents[1])
    attempt = AttemptDirectory.of(directory, task.name, script.stem, "recorded", 1)
    return list(Trial(task, ScriptedAgent(script), engine, directory=attempt).run()), attempt.path


def keep(attempt: Path, target: Path) -> None:
    """Put what is kept of an attempt in place of what is there."""
    shutil.rmtree(target, ignore_errors=True)
    for path in sorted(path for pattern in KEPT for path in attempt.glob(pattern)):
        place = target / path.relative_to(attempt)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)


def main(tasks: Sequence[str]) -> None:
    """Record the scripts of some tasks, or of all."""
    engine, _ = choose_engine("sandbox")
    try:
        for script in example_scripts():
            if tasks and script.parents[1].name not in tasks:
                continue
            with tempfile.TemporaryDirectory() as directory:
                records, attempt = play(script, engine, Path(directory))
                keep(attempt, script.with_suffix(""))
            outcomes = ", ".join(f"{record.round} {record.outcome}" for record in records)
            print(f"{script.parents[1].name} {script.stem}: {outcomes}")
    finally:
        engine.close()


if __name__ == "__main__":
    main(sys.argv[1:])

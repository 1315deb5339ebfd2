"""``evocode metrics``: the metrics of other benchmarks, computed from our records.

SlopCodeBench's are of the texts of a workspace, by its program ``scb-check``, as that benchmark does. Nothing of the
workspace is run. The program is no dependency: it and what it brings take 70 MB and Python 3.12.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from pytest_evocode.cli.printing import prints_view, tell_note
from pytest_evocode.cli.shared_options import (
    AttemptSelection,
    agents_option,
    given_images,
    image_option,
    selection_options,
)
from pytest_evocode.environments.host_variables import host_variables
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import StateNotRebuilt, UsageError
from pytest_evocode.metrics.neighbours.published import CodeDecay, CodeQuality, code_decay, quality_of
from pytest_evocode.metrics.neighbours.summary import AgentMetrics
from pytest_evocode.metrics.score_table import ScoreRow
from pytest_evocode.report.neighbours import (
    FROM_RECORDS,
    METRICS,
    metrics_view,
    neighbour_metrics,
    note_lines,
)
from pytest_evocode.report.tables import join_first
from pytest_evocode.report.views import View
from pytest_evocode.tasks import load_task

if TYPE_CHECKING:
    from pytest_evocode.environments import Engine
    from pytest_evocode.process.attempts import TaskFinder
    from pytest_evocode.trial.recorded import MakeEngine


@click.command("metrics")
@click.option(
    "--metric", "names", type=click.Choice(METRICS), multiple=True, help="Print only this one; may be given repeatedly."
)
@click.option("--by", type=click.Choice(["round"]), help="Print a row for each round index instead.")
@click.option(
    "--gamma", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True,
    help="EvoScore: the weight of a round over the one before it.",
)  # fmt: skip
@image_option
@agents_option
@selection_options
@prints_view()
def metrics_command(selection: AttemptSelection, names: tuple[str, ...], by: str | None, gamma: float) -> View:
    """Print what other benchmarks would say of the same attempts, an agent in each row.

    swe-ci: EvoScore and zero-regression rate. evoclaw: recall, precision and F1 of milestones. swe-evo: Fix Rate.
    regressions: cases that passed before and were lost. cost: score per US dollar. slopcodebench, only where it is
    named: verbosity and erosion of the code that rounds were left with, which takes the program scb-check, and
    snapshots or recorded changes. docs/metrics.md has the formulas, their sources, and what a round stands for there.

    DIR is a results directory; the default is evocode-results. Where it has results of oracle, they tell what a round
    requires, and those of nop what passes before an agent begins.
    """
    chosen = [name for name in METRICS if name in names] or [*FROM_RECORDS]
    if by == "round" and chosen == ["cost"]:
        raise click.UsageError("the score per USD is one of whole attempts; leave out --by, or add another --metric")
    table = replace(selection, agents=()).read(cases=True)  # The oracle and nop tell what rounds require.
    rows = selection.shown(table).rows
    found = {row.name: neighbour_metrics(table, row, gamma) for row in rows}
    if "slopcodebench" in chosen:
        found = _with_code(found, rows, selection.task_directory)
    for note in note_lines(found, chosen):
        tell_note(note)
    return metrics_view(found, chosen, by_round=by == "round")


def _with_code(found: dict[str, AgentMetrics], rows: Sequence[ScoreRow], tasks: Path | None) -> dict[str, AgentMetrics]:
    """Return the metrics with what became of the code, and tell on standard error where that cannot be had."""
    # Engines take longer to load than all else that this command does.
    from pytest_evocode.environments import choose_engine
    from pytest_evocode.process.attempts import TaskFinder

    checker = ScbCheck()
    tell_note(f"scb-check {checker.version}; SlopCodeBench has {RELEASE}")
    places = (tasks,) if tasks else (Path(), *(path for path in Path().iterdir() if path.is_dir()))
    finder = TaskFinder(places)
    engines: dict[str, Engine] = {}
    with contextlib.ExitStack() as life:

        def engine_of(name: str) -> Engine:
            if name not in engines:
                engines[name] = choose_engine(name or "auto", hidden=[Path.cwd()], images=given_images())[0]
                life.callback(engines[name].close)
            return engines[name]

        return {row.name: found[row.name].with_code(_decay(row, finder, checker, engine_of)) for row in rows}


def _decay(row: ScoreRow, finder: TaskFinder, checker: ScbCheck, engine_of: MakeEngine) -> CodeDecay | None:
    from pytest_evocode.trial.recorded import round_texts, task_directory

    measured: dict[str, list[dict[int, CodeQuality]]] = {}
    for attempt in row.attempts:
        name, place = attempt.record.task, task_directory(attempt)
        task = finder.find(name) or (load_task(place) if place is not None else None)
        where = f"{row.name} attempt {attempt.record.attempt} at {name}"
        if task is None:
            tell_note(f"{where}: n/a, the task is not below this directory")
            continue
        files = round_texts(attempt, task, engine_of)
        found: dict[int, CodeQuality] = {}
        for index, texts in files.texts.items():
            try:
                quality = quality_of(checker.report(texts))
            except StateNotRebuilt as error:
                files.missing[index] = str(error)
                continue
            if quality is None:
                files.missing[index] = "there is no code that scb-check reads"
            else:
                found[index] = quality
        for reason, indices in _by_reason(files.missing).items():
            tell_note(f"{where}: n/a in round {join_first(indices)}: {reason}")
        measured.setdefault(name, []).append(found)
    return code_decay(measured)


def _by_reason(missing: Mapping[int, str]) -> dict[str, list[int]]:
    reasons: dict[str, list[int]] = {}
    for index, reason in sorted(missing.items()):
        reasons.setdefault(reason, []).append(index)
    return reasons


#: The release that SlopCodeBench pins.
RELEASE = "0.1.3"
_TIMEOUT = 300.0  # seconds for the files of one round
_CONFIG = "scb-check.toml"


class ScbCheck:
    """The installed program; texts that were checked before are not checked again."""

    def __init__(self, path: str | None = None) -> None:
        """Find the program on ``path``, by default the ``PATH``, or beside this Python.

        Raises:
            UsageError: It is not installed; the message says how to do that.
        """
        path = os.environ.get("PATH", "") if path is None else path
        search = os.pathsep.join((path, str(Path(sys.executable).parent)))
        found = shutil.which("scb-check", path=search)
        if found is None:
            raise UsageError(
                "SlopCodeBench's program scb-check is not installed: install it by itself, "
                f"uv tool install scb-check=={RELEASE}, or into Python 3.12 or later, "
                "pip install 'pytest-evocode[slopcodebench]'"
            )
        self._program = Path(found)
        # It looks for ast-grep under the name sg, which is another program on most machines, and does without it.
        beside = str(self._program.resolve().parent)
        self._environ = host_variables() | {"PATH": os.pathsep.join((beside, os.environ.get("PATH", "")))}
        self._known: dict[str, Mapping[str, Any]] = {}

    @property
    def version(self) -> str:
        """The release that is installed."""
        return self._run(Path.cwd(), "--version").stdout.strip()

    def report(self, texts: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the program's report on files, by their relative paths.

        Raises:
            StateNotRebuilt: It has none; the message says why.
        """
        key = hashlib.sha256(json.dumps(sorted(texts.items())).encode()).hexdigest()
        if key not in self._known:
            self._known[key] = self._check(texts)
        return self._known[key]

    def _check(self, texts: Mapping[str, str]) -> Mapping[str, Any]:
        with scratch_directory("scb") as top:
            files = Path(top, "files")
            files.mkdir()
            # Where it is run: settings that the agent wrote would leave files out.
            Path(top, _CONFIG).write_text("exclude = []\n", encoding="utf-8")
            Path(top, ".git").mkdir()
            _write(files, texts)
            ran = self._run(Path(top), "check", "--report", "--include-all", str(files))
        lines = ran.stdout.strip().splitlines()
        if ran.returncode not in (0, 1) or not lines:
            what = (ran.stdout + ran.stderr).strip().splitlines()
            raise StateNotRebuilt(
                f"scb-check: {what[-1] if what else f'exit code {ran.returncode}'}".replace(str(top), "")
            )
        if "ast-grep" in ran.stderr:
            raise StateNotRebuilt("scb-check could not run ast-grep, without which verbosity is too low")
        report: dict[str, Any] = json.loads(lines[-1])
        return report

    def _run(self, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [str(self._program), *arguments]
        try:
            return subprocess.run(
                argv, cwd=directory, env=self._environ, capture_output=True, encoding="utf-8", errors="replace",
                timeout=_TIMEOUT, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise StateNotRebuilt(f"scb-check did not end in {_TIMEOUT:.0f} s") from None


def _write(top: Path, texts: Mapping[str, str]) -> None:
    for path, text in texts.items():
        pure = PurePosixPath(path)
        # Neither what leads elsewhere, nor what says which files count.
        if pure.is_absolute() or ".." in pure.parts or pure.name in (".gitignore", _CONFIG):
            continue
        place = top / pure
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode("utf-8", "surrogateescape"))

"""Import of foreign tasks: written whole or not at all, with a report of what could not be carried over."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_evocode.errors import TaskError, UsageError
from pytest_evocode.tasks.foreign import exercism, swe_bench, terminal_bench
from pytest_evocode.tasks.foreign.draft import Draft, Note
from pytest_evocode.tasks.foreign.harbor import import_tasks
from pytest_evocode.tasks.foreign.rigorbench import import_task
from pytest_evocode.tasks.foreign.slopcodebench import import_problem
from pytest_evocode.tasks.foreign.source import Source
from pytest_evocode.tasks.loading import load_task

REPORT = "IMPORT.md"
"""The report's place in the task."""


@dataclass(frozen=True)
class Format:
    """A foreign format: what it is called, and what a task is made from."""

    title: str
    wanted: str
    takes: Callable[[Sequence[Path]], bool]
    """Whether paths are of the kind, and as many, as a task is made from."""
    write: Callable[[Sequence[Path], Draft], None]


def _yaml_of(path: Path) -> Path:
    return path / "task.yaml" if path.is_dir() else path


FORMATS = {
    "slopcodebench": Format(
        "SlopCodeBench",
        "one problem's directory, which has a config.yaml",
        lambda paths: len(paths) == 1 and (paths[0] / "config.yaml").is_file(),
        lambda paths, draft: import_problem(paths[0], draft),
    ),
    "harbor": Format(
        "Harbor",
        "two or more directories with a task.toml, in the order of their rounds; a single one runs as it is",
        lambda paths: len(paths) > 1 and all((path / "task.toml").is_file() for path in paths),
        import_tasks,
    ),
    "rigorbench": Format(
        "RigorBench",
        "one task.yaml, or the directory that it is in",
        lambda paths: (
            len(paths) == 1 and _yaml_of(paths[0]).suffix in (".yaml", ".yml") and _yaml_of(paths[0]).is_file()
        ),
        lambda paths, draft: import_task(_yaml_of(paths[0]), draft),
    ),
    "terminal-bench": Format(
        "Terminal-Bench 1",
        "one task's directory, which has a task.yaml",
        lambda paths: len(paths) == 1 and (paths[0] / terminal_bench.CONFIG).is_file(),
        lambda paths, draft: terminal_bench.import_task(Source(paths[0]), draft),
    ),
    "exercism": Format(
        "Exercism",
        "one exercise's directory, which has a .meta/config.json; those of Aider's polyglot benchmark are such",
        lambda paths: len(paths) == 1 and (paths[0] / exercism.CONFIG).is_file(),
        lambda paths, draft: exercism.import_exercise(Source(paths[0]), draft),
    ),
    "swe-bench": Format(
        "SWE-bench",
        "one file of JSON lines, .jsonl or .json, with one instance",
        lambda paths: len(paths) == 1 and paths[0].suffix in (".jsonl", ".json") and paths[0].is_file(),
        lambda paths, draft: swe_bench.import_instance(paths[0], draft),
    ),
}


def import_foreign(format_: str, sources: Sequence[Path], target: Path) -> tuple[Note, ...]:
    """Write the task that foreign files make, and return what could not be carried over.

    Args:
        format_: A key of ``FORMATS``.
        sources: What is to be imported.
        target: The new task's directory, which must not exist; missing parents are made.

    Raises:
        UsageError: The sources are not of the format.
        TaskError: There is a mistake in them.
        OSError: The task cannot be written.
    """
    format_of_it = FORMATS[format_]
    if not format_of_it.takes(sources):
        others = [name for name, each in FORMATS.items() if each.takes(sources)]
        # RigorBench's tasks have a task.yaml, too, and no script of their own.
        ours = len(sources) == 1 and (sources[0] / terminal_bench.SUITE).is_file()
        likely = next((name for name in others if name == "terminal-bench" and ours), next(iter(others), ""))
        hint = f"; this looks like {likely}" if likely else ""
        raise UsageError(f"{', '.join(map(str, sources))}: {format_} takes {format_of_it.wanted}{hint}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".evocode-import-", dir=target.parent) as parent:
        draft = Draft(Path(parent, target.name), target.name)
        format_of_it.write(sources, draft)
        draft.write(REPORT, _report(format_of_it.title, draft, sources))
        try:
            load_task(draft.directory, unknown_keys="ignore")
        except TaskError as error:
            # What is wrong came with the sources; there is no such file yet.
            message = str(error).replace(f"{draft.directory}{os.sep}", "")
            raise TaskError(f"the imported task would not be sound: {message}", sources[0]) from None
        os.rename(draft.directory, target)
    return tuple(draft.notes)


def _report(title: str, draft: Draft, sources: Sequence[Path]) -> str:
    lines = [
        f"# Imported from {title}",
        "",
        "Written by `evocode new --from`; this file is no part of the task and may be removed.",
        "",
        "| round | made from |",
        "|---|---|",
        *(f"| {name} | {_cell(source)} |" for name, source in draft.rounds),
        "",
        "## Not carried over as it was",
        "",
        "| where | what | to do |",
        "|---|---|---|",
        *(f"| {_cell(_place(note, sources))} | {_cell(note.what)} | {_cell(note.do or '-')} |" for note in draft.notes),
    ]
    return "\n".join(lines) + "\n"


def _place(note: Note, sources: Sequence[Path]) -> str:
    """Return what a note is about, relative to the directory above the source: paths of the host concern nobody."""
    around = next((each.parent for each in sources if note.path.is_relative_to(each.parent)), note.path.parent)
    place = note.path.relative_to(around).as_posix()
    return f"{place}:{note.line}" if note.line else place


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")

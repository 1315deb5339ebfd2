"""What describes tasks as a data set: their rows, metadata in the format Croissant, and a datasheet.

Only what tasks say of themselves is in them; what nothing says is said to be unknown.

- Croissant 1.0: https://docs.mlcommons.org/croissant/docs/croissant-spec.html
- The questions of the datasheet: *Datasheets for Datasets*, arXiv 1803.09010.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_evocode.report.tables import counted, join_first, markdown_table, plain
from pytest_evocode.report.views import Column, Table, csv_text
from pytest_evocode.results.records import task_facts
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.lockfile import content_hash, read_pins

UNKNOWN = "unknown"
_CONTEXT = Path(__file__).with_name("croissant_context.json")
"""The one that every file of Croissant 1.0 has."""
_NUMBERS = ("rounds", "index", "cases")


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """What tasks do not say of the data set that they are; empty is not known."""

    name: str
    license: str = ""
    url: str = ""


def _info(task: Task, field: str) -> Any:
    return getattr(task.config.task, field, None)


_OF_TASKS: Mapping[str, tuple[str, Callable[[Task], Any]]] = {
    "task": ("The directory's name.", lambda task: task.name),
    "name": ("The name in task.toml.", lambda task: _info(task, "name")),
    "version": ("The version in task.toml.", lambda task: _info(task, "version")),
    "description": ("The description in task.toml.", lambda task: _info(task, "description")),
    "keywords": ("The keywords in task.toml.", lambda task: [*(_info(task, "keywords") or ())]),
    "difficulty": ("The difficulty that task.toml states.", lambda task: task_facts(task).difficulty or None),
    "category": ("The category that task.toml states.", lambda task: task_facts(task).category or None),
    "activity": ("The activity that task.toml states.", lambda task: task_facts(task).activity or None),
    "interaction": (
        "How the user works with the agent, as task.toml states.", lambda task: task_facts(task).interaction or None,
    ),
    "rounds": ("How many requests there are.", lambda task: len(task.rounds)),
    "sha256": ("A hash over the task's files.", lambda task: content_hash(task.directory)),
}  # fmt: skip
"""The columns of tasks: what each means, and how it is read."""
_OF_ROUNDS: Mapping[str, str] = {
    "task": "The directory's name.",
    "round": "The round's name.",
    "index": "The place of the round, from 1.",
    "change_types": "What the request does to earlier requirements.",
    "cases": "How many cases the reference solution passes.",
    "instruction": "The user's request, word for word.",
}


def dataset_tables(tasks: Sequence[Task]) -> tuple[Table, Table]:
    """Return the tasks, and their rounds with what is asked for in each."""
    rows = [{name: read(task) for name, (_, read) in _OF_TASKS.items()} for task in tasks]
    rounds: list[dict[str, Any]] = []
    for task in tasks:
        pins = read_pins(task.directory)
        for each in task.rounds:
            cases = pins.of(each.name)
            rounds.append(
                {
                    "task": task.name,
                    "round": each.name,
                    "index": each.index,
                    "change_types": [*each.change_types],
                    "cases": None if cases is None else len(cases),
                    "instruction": each.instruction.read_text(encoding="utf-8", errors="replace"),
                }
            )
    of_tasks = [Column.text(name, name, help) for name, (help, _) in _OF_TASKS.items()]
    of_rounds = [Column.text(name, name, help) for name, help in _OF_ROUNDS.items()]
    return Table("tasks", "Tasks", of_tasks, rows), Table("rounds", "Rounds", of_rounds, rounds)


def dataset_files(tasks: Sequence[Task]) -> dict[str, str]:
    """Return the contents of the files that the metadata is about, by name; texts are as they are, for programs."""
    return {f"{table.name}.csv": csv_text(table, exact=True) for table in dataset_tables(tasks)}


def croissant(tasks: Sequence[Task], facts: DatasetFacts, files: Mapping[str, str], version: str) -> dict[str, Any]:
    """Return the metadata of tasks in the format Croissant 1.0, without what is not known.

    Args:
        tasks: The tasks.
        facts: What they do not say.
        files: The contents of the data's files by path.
        version: Of pytest-evocode.
    """
    sources = dict(zip(("tasks", "rounds"), files, strict=True))
    tables = dataset_tables(tasks)
    return {
        "@context": json.loads(_CONTEXT.read_text(encoding="utf-8")),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": facts.name,
        "description": _description(tasks, version),
        **({"license": facts.license} if facts.license else {}),
        **({"url": facts.url} if facts.url else {}),
        **({"creator": [{"@type": "Person", "name": name} for name in authors(tasks)]} if authors(tasks) else {}),
        **({"keywords": keywords} if (keywords := _keywords(tasks)) else {}),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": f"{name}.csv",
                "name": f"{name}.csv",
                "contentUrl": path,
                "encodingFormat": "text/csv",
                "sha256": hashlib.sha256(files[path].encode("utf-8")).hexdigest(),
            }
            for name, path in sources.items()
        ],
        "recordSet": [_record_set(table) for table in tables],
    }


def _record_set(table: Table) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{table.name}/{name}",
                "name": f"{table.name}/{name}",
                "description": column.help,
                "dataType": "sc:Integer" if name in _NUMBERS else "sc:Text",
                "source": {"fileObject": {"@id": f"{table.name}.csv"}, "extract": {"column": name}},
            }
            for column in table.columns
            for name in column.fields
        ],
    }


def _description(tasks: Sequence[Task], version: str) -> str:
    rounds = sum(len(task.rounds) for task in tasks)
    return (
        f"{counted(len(tasks), 'coding task')} of {counted(rounds, 'round')} in all, for pytest-evocode {version}: an "
        "agent gets the requests of a task one after another in one workspace, and after each a suite decides whether "
        "all requirements that are still active hold."
    )


def authors(tasks: Sequence[Task]) -> list[str]:
    """Return the names of those who wrote the tasks, as far as these say."""
    return sorted({each.name for task in tasks if task.config.task for each in task.config.task.authors})


def _keywords(tasks: Sequence[Task]) -> list[str]:
    return sorted({each for task in tasks if task.config.task for each in task.config.task.keywords})


def datasheet_lines(tasks: Sequence[Task], facts: DatasetFacts, version: str) -> Iterator[str]:
    """Yield the datasheet of tasks in Markdown, block by block."""
    of_tasks, of_rounds = (table.rows for table in dataset_tables(tasks))
    yield f"# Datasheet of {plain(facts.name)}"
    yield _description(tasks, version)
    yield (
        "The answers come from the tasks' own files. What these do not say is *unknown* here, for the authors to say "
        "([Datasheets for Datasets](https://arxiv.org/abs/1803.09010) has the questions in full)."
    )
    yield "## Motivation"
    yield _answer("Who created the dataset?", join_first(authors(tasks)))
    yield _answer("For what purpose was it created, and who funded it?", "")
    yield "## Composition"
    hashes = [str(row["sha256"])[:12] for row in of_tasks]
    cases = {row["task"]: [each["cases"] for each in of_rounds if each["task"] == row["task"]] for row in of_tasks}
    head = ("task", "version", "rounds", "cases", "difficulty", "category", "activity", "interaction", "contents")
    rows = [
        (
            str(row["task"]),
            row["version"] or UNKNOWN,
            str(row["rounds"]),
            UNKNOWN if None in cases[row["task"]] else str(sum(cases[row["task"]])),
            *(row[name] or UNKNOWN for name in head[4:8]),
            digest,
        )
        for row, digest in zip(of_tasks, hashes, strict=True)
    ]
    yield markdown_table([head, *rows])
    yield "cases: those that the reference solution passes, over all rounds, as pinned in evocode.lock"
    changes = Counter(change for row in of_rounds for change in row["change_types"])
    without = sum(not row["change_types"] for row in of_rounds)
    found = [f"{change} {number}" for change, number in sorted(changes.items())]
    found += [f"{UNKNOWN} {without}"] if without else []
    yield _answer("What do rounds do to earlier requirements, in how many rounds?", ", ".join(found))
    yield _answer("Are there recommended splits? Is anything missing?", "")
    yield _answer("Is the dataset self-contained, or does it rely on resources?", join_first(_images(tasks), 5))
    yield _answer("Does it have anything confidential, offensive, or about people?", "")
    for title, questions in _QUESTIONS.items():
        yield f"## {title}"
        yield from (_answer(question, "") for question in questions)
    yield "## Distribution"
    yield _answer("Under which license is it distributed?", facts.license)
    yield _answer("Where is it to be had?", facts.url)
    yield "## Maintenance"
    yield _answer("Which versions are these?", ", ".join(map(str, dict.fromkeys(row[1] for row in rows))))
    yield _answer("Who maintains it, and how are errors corrected?", "")


def _images(tasks: Sequence[Task]) -> list[str]:
    """Return what the environments of tasks are made of, and how they reach a network."""
    found: dict[str, None] = {}
    for task in tasks:
        image = task.config.environment.docker_image or ("its Dockerfile" if task.dockerfile else "no image")
        found.setdefault(f"{task.name} is built from {image}")
    return [*found]


_QUESTIONS = {
    "Collection process": ("How were the tasks acquired, by whom, and when?", "Was anybody's consent needed?"),
    "Preprocessing": ("Was anything cleaned or labelled, and is the raw data kept?",),
    "Uses": ("What has it been used for, and what should it not be used for?",),
}


def _answer(question: str, answer: str) -> str:
    return f"**{question}** {plain(answer) if answer else f'*{UNKNOWN}*'}"

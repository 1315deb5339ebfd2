"""Lint rules about what is no suite: scripts, the order of rounds, leftovers, cheats, and paths in instructions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from pytest_evocode.checks.catalogue import CHEATS
from pytest_evocode.checks.lint.sources import SourceFile, TaskSources, parse_python
from pytest_evocode.checks.patterns import PATTERNS
from pytest_evocode.errors import TaskError
from pytest_evocode.results.records import METADATA_TEXTS
from pytest_evocode.tasks.config_text import Keys, find_line
from pytest_evocode.tasks.model import FreeSection
from pytest_evocode.tasks.text_files import CRLF, decoded


def find_unknown_keys(sources: TaskSources) -> Iterator[TaskError]:
    """Yield keys of task.toml that the format does not know, and wrong values of those that nothing reads."""
    yield from sources.task.unread


_ALIKE = 0.85
"""How alike a key is to the one that is meant: "activty" and "activity", not "subcategory" and "category"."""


def find_metadata_typos(sources: TaskSources) -> Iterator[TaskError]:
    """Yield keys below ``[metadata]``, where any is allowed, that can hardly be anything but known ones misspelt."""
    metadata = sources.task.config.metadata
    chain: Keys = ("metadata", "requirement_chain")
    tables: list[tuple[Keys, FreeSection | None, Sequence[str]]] = [
        (("metadata",), metadata, METADATA_TEXTS),
        (chain, metadata.requirement_chain, ()),
    ]
    steps = metadata.requirement_chain.steps if metadata.requirement_chain else ()
    tables += [((*chain, "steps", index), step, ()) for index, step in enumerate(steps)]
    for keys, table, texts in tables:
        for key, known in _typos(table, texts) if table is not None else ():
            message = f'nothing reads the key "{key}"; if "{known}" is meant, write it so'
            yield _in_configuration(sources, (*keys, key), message)


def _typos(table: FreeSection, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the misspelt keys of a table, and what each must mean; ``texts`` are read besides its fields."""
    free = table.model_extra or {}
    absent = {*type(table).model_fields, *texts} - {*table.model_fields_set, *free}
    for key, value in free.items():
        near = get_close_matches(key.lower(), sorted(absent), n=1, cutoff=_ALIKE) if key not in texts else []
        if near and (near[0] not in texts or isinstance(value, str)):
            yield key, near[0]


_LONGEST = 1 << 24


def find_script_mistakes(sources: TaskSources) -> Iterator[TaskError]:
    """Yield scripts that are not executable, name no interpreter, end their lines in CRLF or are not UTF-8."""
    entries = set(_entry_points(sources))
    for file in (*sources.given, *sources.hidden):
        # A project for agents may have modules with a #! that are not run by name.
        is_module = file in sources.environment and file.path.suffix not in ("", ".sh")
        if file.is_script and not file.is_executable and not is_module:
            yield TaskError("begins with #! but is not executable; chmod +x it", file.path, 1)
        if file in entries and file.read(2) != b"#!":
            advice = "write #!/bin/bash into its first line" + ("" if file.is_executable else " and chmod +x it")
            yield TaskError(f"does not name its interpreter; {advice}", file.path, 1)
    own = (*sources.hidden, *sources.cheats)
    for file in (*sources.given, *own):
        if file.path.suffix == ".sh" and b"\r\n" in (content := file.content):
            line = content.count(b"\n", 0, content.index(b"\r\n")) + 1
            yield TaskError(CRLF, file.path, line)
        if file.path.suffix == ".sh" and file in own:  # An agent's may be what it has to correct.
            yield from _encoding(file)


def _encoding(file: SourceFile) -> Iterator[TaskError]:
    try:
        decoded(file.read(_LONGEST), file.path)
    except TaskError as error:
        yield error


def _entry_points(sources: TaskSources) -> Iterator[SourceFile]:
    """Yield the scripts that the benchmark itself runs."""
    yield from (file for file in sources.tests if file.place == "test.sh")
    for each in sources.rounds:
        yield from (file for file in each.solution if file.place == "solve.sh")
        yield from (file for file in each.workdir if file.place == "setup.sh")


def find_round_mistakes(sources: TaskSources) -> Iterator[TaskError]:
    """Yield rounds out of order, a name that is not the directory's, missing solutions, and requests made twice."""
    yield from _disorder(sources)
    yield from _foreign_name(sources)
    yield from _missing_solutions(sources)
    yield from _repeated_requests(sources)


def _disorder(sources: TaskSources) -> Iterator[TaskError]:
    """Yield steps whose number is below that of an earlier step, as happens to names that were sorted as texts."""
    highest: dict[str, tuple[int, str]] = {}
    for index, step in enumerate(sources.task.config.steps):
        parts = re.fullmatch(r"(.*?)(\d+)", step.name)
        if parts is None:
            continue
        kind, number = parts[1], int(parts[2])
        before, name = highest.setdefault(kind, (number, step.name))
        if number < before:
            message = f"{step.name} comes after {name}; list the steps in the order in which they are played"
            yield _in_configuration(sources, ("steps", index, "name"), message)
        else:
            highest[kind] = number, step.name


def _foreign_name(sources: TaskSources) -> Iterator[TaskError]:
    info = sources.task.config.task
    if info is not None and info.name.rpartition("/")[2] != sources.task.name:
        message = f'the task is called "{info.name}" and its directory "{sources.task.name}"; rename one of them'
        yield _in_configuration(sources, ("task", "name"), message)


def _missing_solutions(sources: TaskSources) -> Iterator[TaskError]:
    if any(each.round.has_solution for each in sources.rounds):
        for each in sources.rounds:
            if not each.round.has_solution:
                path = each.round.directory / "solution" / "solve.sh"
                yield TaskError(
                    "is missing while other rounds have one, so the agent oracle cannot play the task; write it", path
                )


def _repeated_requests(sources: TaskSources) -> Iterator[TaskError]:
    first: dict[bytes, str] = {}
    for each in sources.rounds:
        earlier = first.setdefault(each.instruction.content.strip(), each.round.name)
        if earlier != each.round.name:
            message = f"is the same request as {earlier}'s; write what {each.round.name} asks for"
            yield TaskError(message, each.instruction.path, 1)


def _in_configuration(sources: TaskSources, keys: Keys, message: str) -> TaskError:
    file = sources.configuration
    return TaskError(message, file.path, find_line(file.text, keys))


_BACKUPS = ("*~", "*.orig", ".#*", "*.swp")


def find_leftovers(sources: TaskSources) -> Iterator[TaskError]:
    """Yield unfinished merges in the author's files, backups anywhere, and compiled Python in the build context."""
    # Of the build context only the Dockerfile: the rest may be a program that is broken on purpose.
    dockerfile = (file for file in sources.environment if file.place == "Dockerfile")
    for file in (*sources.hidden, *sources.beside, *dockerfile):
        if line := _conflict(file):
            yield TaskError("holds the markers of an unfinished merge; resolve it", file.path, line)
    for file in (*sources.given, *sources.hidden, *sources.beside):
        if any(fnmatchcase(file.path.name, pattern) for pattern in _BACKUPS):
            yield TaskError("looks like an editor's or a merge's backup; remove it", file.path)
    yield from _compiled(sources)


def _conflict(file: SourceFile) -> int:
    """Return the line of the first conflict, or 0 where there is none or the markers may be meant."""
    if file.path.suffix not in (".py", ".sh", ".md") and file.path.name != "Dockerfile":
        return 0
    text = without_fences(file.text) if file.path.suffix == ".md" else file.text
    found = PATTERNS["conflict"].search(text) if "<<<<<<< " in text else None
    if found is None:
        return 0
    # The test of a merge tool may have markers in a string or a here-document.
    is_python = file.path.suffix == ".py"
    if parse_python(text) if is_python else PATTERNS.find(text[: found.start()], "here_document_begins"):
        return 0
    return text.count("\n", 0, found.start()) + 1


def _compiled(sources: TaskSources) -> Iterator[TaskError]:
    directories = dict.fromkeys(file.path.parent for file in sources.environment if "__pycache__/" in file.place)
    ignored = any(file.place == ".dockerignore" and "__pycache__" in file.text for file in sources.environment)
    if not ignored:
        for directory in directories:
            message = "compiled Python in the build context becomes part of the image; remove it"
            yield TaskError(message, directory)


def find_lost_cheats(sources: TaskSources) -> Iterator[TaskError]:
    """Yield the directories of cheats that are named like no round of the task."""
    task = sources.task
    rounds = [round_.name for round_ in task.rounds]
    for directory in sorted(task.directory.glob(f"{CHEATS}/*/")):
        if directory.name not in rounds and any(directory.glob("*.sh")):
            known = ", ".join(rounds)
            why = f"no round is called so, and its cheats are not played; name it like one of {known}, or move them up"
            yield TaskError(why, directory)


def find_unmade_paths(sources: TaskSources) -> Iterator[TaskError]:
    """Yield the first mention of each path that neither exists by then nor is named by anything that does.

    What exists is the build context, and the workdirs, solutions and tests of the rounds up to the one that mentions
    it.
    """
    if not _image_is_known(sources):
        return
    roots = sources.workspace_roots
    known = _Known()
    known.add_files(sources.environment)
    known.texts.extend(sources.shared_tests)
    done: set[str] = set()
    for each in sources.rounds:
        known.add_files((*each.workdir, *each.solution))
        known.texts.extend(each.tests)
        # Without a solution it is not known which files the author expects.
        for path, line in _paths(each.instruction.text, roots) if each.round.has_solution else ():
            if path not in done and not known.has(path):
                message = (
                    f"mentions `{path}`, but no file up to {each.round.name} has that name, and nothing in its "
                    "solutions, tests and Dockerfile mentions it; correct the path or add the file"
                )
                yield TaskError(message, each.instruction.path, line)
            done.add(path)


def without_fences(text: str) -> str:
    r"""Return Markdown with its fenced blocks emptied; every line keeps its number.

    >>> without_fences("see\n```\n`a.py`\n```\n`b.py`")
    'see\n\n\n\n`b.py`'
    """
    return PATTERNS["fence"].sub(lambda fence: "\n" * fence[0].count("\n"), text)


class _Known:
    """The names of a task's files so far, and the texts that may name others."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.texts: list[SourceFile] = []

    def add_files(self, files: Iterable[SourceFile]) -> None:
        for file in files:
            self.names.update(file.place.split("/"))
            self.texts.append(file)

    def has(self, path: str) -> bool:
        name = path.rstrip("/").rpartition("/")[2]
        if name in self.names:
            return True
        stem, dot, extension = name.rpartition(".")
        whole = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        # A program may put the name together: with_suffix(".json"), f"{kind}.json".
        parts = [re.compile(rf"(?<![^\W_]){re.escape(stem)}(?![^\W_])"), re.compile(rf"\.{extension}\b")] if dot else []
        return any(
            whole.search(file.text) or (parts and all(part.search(file.text) for part in parts)) for file in self.texts
        )


def _image_is_known(sources: TaskSources) -> bool:
    """Return whether the build context has all files that the author puts into the image."""
    has_archives = any(PATTERNS.find(file.place, "archive") for file in sources.given)
    if has_archives or sources.task.config.environment.docker_image:
        return False
    instructions = "\n".join(line for line in sources.dockerfile.splitlines() if not line.lstrip().startswith("#"))
    if PATTERNS.find(instructions, "brings_files"):
        return False
    return all(map(PATTERNS["plain_image"].fullmatch, PATTERNS["image"].findall(instructions)))


def _paths(text: str, roots: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield the paths in a text's inline code, each with its line."""
    text = without_fences(text)
    for span in PATTERNS["inline_code"].finditer(text):
        if _is_path(span[1], roots) and not PATTERNS["for_example"].search(
            text, max(0, span.start() - 80), span.start()
        ):
            yield span[1], text.count("\n", 0, span.start()) + 1


def _is_path(span: str, roots: tuple[str, ...]) -> bool:
    """Return whether inline code can hardly be anything but the path of one certain file.

    >>> [_is_path(span, ("/app/",)) for span in ("docs/usage.md", "usage.md", "/app/out")]
    [True, True, True]
    >>> [_is_path(span, ("/app/",)) for span in ("obj.field", "1.2", "text/plain", "/items")]
    [False, False, False, False]
    """
    if not PATTERNS["path"].fullmatch(span):
        return False
    directory, _, name = span.rstrip("/").rpartition("/")
    stem, _, extension = name.rpartition(".")
    # A number means that there are others: part-001.csv, 2024/june.json.
    is_one_of_many = any(map(str.isdigit, stem or name)) or any(map(str.isdigit, directory.split("/")))
    if is_one_of_many or PATTERNS["placeholder"].match(stem or name):
        return False
    if span.startswith("/"):
        return span.startswith(roots)
    known = PATTERNS["extension_in_a_directory"] if directory else PATTERNS["extension"]
    host = re.match(r"[\w-]+\.(?:com|org|net|io|dev)/", span)
    return bool(stem and known.fullmatch(extension)) and not (host or PATTERNS["object"].fullmatch(stem))

"""Writing a round for an author to fill in, and adding one to a task, whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import Template

from pytest_evocode.errors import TaskError, UsageError
from pytest_evocode.tasks.atomic_write import replacing
from pytest_evocode.tasks.config_text import append_table
from pytest_evocode.tasks.fields import STEP_NAME
from pytest_evocode.tasks.layout import RoundFiles, find_files
from pytest_evocode.tasks.loading import TaskSettings, read_task_file

TEMPLATES = Path(__file__).with_name("templates")
_SUFFIX = ".template"
_ROUND = "ROUND"
"""In the path of a template: the name of the round as Python writes names."""
_MARKER = """A test names its requirement, @pytest.mark.requirement("id", kind="core"), whose kind is core, boundary,
error or integration.$earlier
"""
_EARLIER = ' A test of an earlier round that this one contradicts gets retired="{}" as well.'
# What may be done a second time, when the files of the round before are put where they are already.
_REPEATABLE = re.compile(r"(set|cp|cd|install|mkdir -p) [^;&|<>]*|\w+=[^;&|<>]*")
_HEREDOC = re.compile(r"""cat >\s*\S+ <<-?\s*["']?(\w+)["']?|cat <<-?\s*["']?(\w+)["']? >\s*\S+""")


def fill_in(tree: str, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the files of a directory of templates: their paths in it without the suffix, and their texts."""
    root = TEMPLATES / tree
    for path in sorted(root.rglob(f"*{_SUFFIX}")):
        text = Template(path.read_text(encoding="utf-8")).substitute(values)
        yield path.relative_to(root).as_posix().removesuffix(_SUFFIX), text


def write_files(directory: Path, files: Iterator[tuple[str, str]]) -> None:
    """Write texts by their paths below a directory; those of shell scripts are executable."""
    for relative, text in files:
        path = directory / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if path.suffix == ".sh":
            path.chmod(path.stat().st_mode | 0o111)


def write_round(directory: Path, name: str, *, script: bool, requirements: bool = True, is_first: bool = False) -> None:
    """Write the directory of a round that has nothing in it yet: no request, solution or test."""
    earlier = "" if is_first else _EARLIER.format(name)
    marker = Template(_MARKER).substitute(earlier=earlier) if requirements else ""
    values = {"round": name, "marker": marker}
    for tree in ("round", "round-script" if script else "round-native"):
        module = re.sub(r"\W", "_", name)
        write_files(directory, ((path.replace(_ROUND, module), text) for path, text in fill_in(tree, values)))
    (directory / "solution" / "project").mkdir()


def add_round(task: Path, name: str | None) -> Path:
    """Add a round behind the last one of a task and return its directory.

    Its entries in task.toml are written as those before it are. Its solution starts from that of the round before, and
    so does a suite that is a ``test.sh``.

    Raises:
        UsageError: There is, or cannot be, a round of this name.
        TaskError: The task's task.toml is wrong, or written in a way that nothing can be added to.
        OSError: Something cannot be written; the task is as it was.
    """
    file = read_task_file(task)
    if not file.config.steps:
        raise UsageError(
            f"{task} is a single-step task, whose files are at its top; first move instruction.md, solution and tests "
            f'to steps/round-1/, and add [[steps]] with name = "round-1" to {file.path}'
        )
    name = _next_name([step.name for step in file.config.steps]) if name is None else name
    directory = task / "steps" / name
    _check_name(name, directory, file)
    text = _with_entries(file, name)
    rounds, _ = find_files(task, file.config)
    directory.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".evocode-new-", dir=directory.parent) as parent:
        made = Path(parent, name)
        _write_after(made, rounds)
        os.rename(made, directory)
        try:
            _replace(file.path, text)
        except BaseException:
            os.rename(directory, made)
            raise
    return directory


def _next_name(names: Sequence[str]) -> str:
    """Return the name after the last one: its number and one more, with as many digits.

    >>> _next_name(["round-1", "round-2"]), _next_name(["step-09"]), _next_name(["create", "query"])
    ('round-3', 'step-10', 'round-3')
    """
    match = re.fullmatch(r"(.*?)(\d+)", names[-1])
    if match is None:
        return f"round-{len(names) + 1}"
    return f"{match[1]}{int(match[2]) + 1:0{len(match[2])}d}"


def _check_name(name: str, directory: Path, file: TaskSettings) -> None:
    if not STEP_NAME.fullmatch(name):
        raise UsageError(
            f"no round can be called {name!r}; use letters, digits, '.', '_' and '-', and no dot at the beginning"
        )
    if any(step.name == name for step in file.config.steps):
        raise UsageError(f"{file.path} has a round {name} already; choose another name")
    if os.path.lexists(directory):
        raise UsageError(
            f"{directory} exists already; add it to {file.path} by hand, remove it, or choose another name"
        )
    if os.path.lexists(shared := file.path.parent / "tests" / name):
        raise UsageError(f"{shared} is where the round's tests are put; rename it, or choose another name")


def _with_entries(file: TaskSettings, name: str) -> str:
    """Return the text of task.toml with the round as a step and, where changes are told, as an extension."""
    try:
        text = append_table(file.text, ["steps"], {"name": name})
        chain = file.config.metadata.requirement_chain
        if chain is not None and chain.steps:
            change = {"step": name, "change_types": ["extension"]}
            text = append_table(text, ["metadata", "requirement_chain", "steps"], change)
    except ValueError as error:
        raise TaskError(f'{error}; add the entry of "{name}" by hand, with its directory', file.path) from None
    return text


def _replace(path: Path, text: str) -> None:
    """Put a new text into a file, which keeps its mode, its byte order mark and its place where it is a link."""
    path = path.resolve()
    mark = b"\xef\xbb\xbf" if path.read_bytes().startswith(b"\xef\xbb\xbf") else b""
    with replacing(path, mode=stat.S_IMODE(path.stat().st_mode)) as file:
        file.write(mark + text.encode())


def _write_after(directory: Path, rounds: Sequence[RoundFiles]) -> None:
    """Write the directory of a round that comes after these, which are the task's."""
    before = rounds[-1]
    write_round(directory, directory.name, script=before.has_script, requirements=_uses_requirements(rounds))
    if before.has_script:
        shutil.rmtree(directory / "tests")
        if before.has_tests:
            shutil.copytree(before.directory / "tests", directory / "tests", symlinks=True)
    if before.has_own_solution:
        _continue_solution(before.directory / "solution", directory / "solution", before.name, directory.name)
    elif before.has_solution or not any(each.has_solution for each in rounds):
        shutil.rmtree(directory / "solution")


def _continue_solution(before: Path, solution: Path, name_before: str, name: str) -> None:
    """Take over a solution that lays whole files over the workspace; after one that edits, write one that edits."""
    script = (before / "solve.sh").read_text(encoding="utf-8", errors="replace")
    starts = dict(fill_in("solution", {"round": name, "before": name_before}))
    shutil.rmtree(solution)
    if _is_repeatable(script):
        shutil.copytree(before, solution, symlinks=True)
        text = starts["copies.sh"] + re.sub(r"\A#![^\n]*\n(#[^\n]*\n)*", "", script)
    else:
        solution.mkdir()
        text = starts["swaps.sh" if "python3" in script else "edits.sh"]
    write_files(solution, iter([("solve.sh", text)]))


def _is_repeatable(script: str) -> bool:
    r"""Return whether a solution only puts files in their places, so that doing so once more changes nothing.

    >>> _is_repeatable('#!/bin/bash\nset -e\ncp "$(dirname "$0")/kv.py" .\n'), _is_repeatable("rm old.py\n")
    (True, False)
    """
    end = ""
    for line in script.replace("\\\n", " ").splitlines():
        line = line.strip()
        if end:
            end = "" if line == end else end
        elif heredoc := _HEREDOC.fullmatch(line):
            end = heredoc[1] or heredoc[2]
        elif line and not line.startswith("#") and not _REPEATABLE.fullmatch(line):
            return False
    return True


def _uses_requirements(rounds: Sequence[RoundFiles]) -> bool:
    """Return whether the task's tests name requirements, or there is no test yet that could."""
    places = {each.directory / "tests" for each in rounds} | {each.shared_tests for each in rounds}
    modules = [path.read_bytes() for place in places if place for path in place.rglob("test_*.py")]
    tests = [text for text in modules if b"def test" in text]
    return not tests or any(b"mark.requirement" in text for text in tests)

"""Lint rules about scripts that cannot be executed directly, as Harbor executes some of them."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_evocode.checks.lint.sources import SourceFile, TaskSources
from pytest_evocode.errors import TaskError


def find_script_mistakes(sources: TaskSources) -> Iterator[TaskError]:
    """Yield scripts that are not executable, entry points that name no interpreter, and shell scripts with CRLF."""
    entries = set(_entry_points(sources))
    for file in (*sources.given, *sources.hidden):
        # A project for agents may have modules with a #! that are not run by name.
        is_module = file in sources.environment and file.path.suffix not in ("", ".sh")
        if file.is_script and not file.is_executable and not is_module:
            yield TaskError("begins with #! but is not executable; chmod +x it", file.path, 1)
        if file in entries and file.read(2) != b"#!":
            advice = "write #!/bin/bash into its first line" + ("" if file.is_executable else " and chmod +x it")
            yield TaskError(f"does not name its interpreter; {advice}", file.path, 1)
        if file.path.suffix == ".sh" and b"\r\n" in (content := file.content):
            line = content.count(b"\n", 0, content.index(b"\r\n")) + 1
            message = "ends its lines in CRLF, and bash takes the CR for a part of the command; save it with LF"
            yield TaskError(message, file.path, line)


def _entry_points(sources: TaskSources) -> Iterator[SourceFile]:
    """Yield the scripts that the benchmark itself runs."""
    yield from (file for file in sources.tests if file.place == "test.sh")
    for each in sources.rounds:
        yield from (file for file in each.solution if file.place == "solve.sh")
        yield from (file for file in each.workdir if file.place == "setup.sh")

"""Task directories without a fault, unless a test puts one in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

import pytest

import tests.property_tests  # noqa: F401 - the settings
from pytest_evocode.checks.lint import lint
from pytest_evocode.tasks import load_task

SCRIPT = "#!/bin/bash\ntrue\n"
USUAL_TEST = "test_usual = lambda: None\n"
DOCKERFILE = "FROM python:3.11-slim-bookworm\nWORKDIR /app\nCOPY . /app\n"


class LintTask(Protocol):
    """Writes a task and returns what lint says of it, paths relative to the task.

    ``steps`` are its rounds, ``files`` more paths with their text, in place of the usual ones too; what begins with #!
    becomes executable unless ``plain`` names it. ``without`` are paths not to write; a round without its ``test.sh``
    has a ``test_usual.py`` in its place.
    """

    def __call__(
        self,
        files: Mapping[str, str] = ...,
        *,
        steps: Iterable[str] = ("round-1", "round-2"),
        toml: str = "",
        without: Iterable[str] = (),
        plain: Iterable[str] = (),
    ) -> list[str]: ...


@pytest.fixture
def lint_task(tmp_path: Path) -> LintTask:
    """See :class:`LintTask`."""

    def write_and_lint(
        files: Mapping[str, str] = {},
        *,
        steps: Iterable[str] = ("round-1", "round-2"),
        toml: str = "",
        without: Iterable[str] = (),
        plain: Iterable[str] = (),
    ) -> list[str]:
        directory = tmp_path / "ledger"
        steps = list(steps)
        wanted = {"environment/Dockerfile": DOCKERFILE}
        wanted["task.toml"] = toml + "".join(f'[[steps]]\nname = "{step}"\n' for step in steps)
        for step in steps:
            root = f"steps/{step}/"
            wanted[f"{root}instruction.md"] = f"Do what {step} is for.\n"
            wanted |= {f"{root}tests/test.sh": SCRIPT, f"{root}solution/solve.sh": SCRIPT}
            if f"{root}tests/test.sh" in without:
                wanted[f"{root}tests/test_usual.py"] = USUAL_TEST
        for path, text in (wanted | dict(files)).items():
            if path not in without:
                file = directory / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text.encode("utf-8", "surrogateescape"))
                file.chmod(0o755 if text.startswith("#!") and path not in plain else 0o644)
        return [
            type(problem)(problem.replace(f"{directory}/", ""))
            for problem in lint(load_task(directory, unknown_keys="ignore"))
        ]

    return write_and_lint

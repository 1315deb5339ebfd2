"""Projects are recognised by their files, with the commands that build and test them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pytest_evocode.process.trajectory.shell.purposes import Project, recognise_project


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"tests/test_a.py": ""}, ("pytest", "python3 -m pytest -q")),
        ({"app/pyproject.toml": "[tool.pytest.ini_options]"}, ("pytest", "python3 -m pytest -q")),
        ({"package.json": '{"scripts": {"test": "jest", "build": "tsc"}}'}, ("npm", "npm test")),
        ({"package.json": '{"scripts": {"test": "echo no test specified"}}'}, None),
        ({"go.mod": "", "main_test.go": ""}, ("go", "go test ./...")),
        ({"Cargo.toml": ""}, ("cargo", "cargo test --offline")),
        ({"Makefile": "all:\n\tcc a.c\ntest:\n\t./a\n"}, ("make", "make test")),
        ({"Makefile": "VERSION := 1\ncheck: a\n"}, ("make", "make check")),
        ({"a.py": ""}, ("python", None)),
        ({"notes.txt": ""}, None),
    ],
)
def test_projects_are_recognised(files: Mapping[str, str], expected: tuple[str, str | None] | None) -> None:
    found: Project | None = recognise_project(files)
    assert (None if found is None else (found.kind, found.test)) == expected

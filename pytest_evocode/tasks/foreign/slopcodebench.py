"""SlopCodeBench's problems, as native suites that run beside the program.

Read for this were the problems of github.com/gabeorlanski/scb-problems at commit 95adcef (and v1.0, 4d38d30), and the
runner of github.com/SprocketLab/slop-code-bench: ``evaluation/config.py`` at 2a9800e, ``pytest_runner.py`` beside it at
203534a, ``common/render.py`` at 613bc2a, ``execution/assets.py`` at 6b31994. A problem is a directory::

    config.yaml                     metadata, entry_file, static_assets, checkpoints with order, timeout, env
    checkpoint_1.md                 the request of a checkpoint
    tests/conftest.py               registers --entrypoint and --checkpoint, which the runner gives
    tests/test_checkpoint_1.py      the tests of a checkpoint; earlier ones are run as well, unless it says otherwise
    solutions/checkpoint_1/         the whole workspace as it is to be, or solution/ for all checkpoints at once

The form from before December 2025, with cases as files, is refused: what they are only its own loader.py tells.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.content_hash import is_dropping
from pytest_evocode.tasks.foreign.draft import Draft, entries
from pytest_evocode.tasks.foreign.source import Source, YamlTable, read_yaml
from pytest_evocode.tasks.foreign.suite_edits import Marking, TestModule, give_options, imported_packages, parse
from pytest_evocode.tasks.layout import is_test_module

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class SlopCheckpoint:
    """A checkpoint, which becomes the round at its place in the problem."""

    name: str
    config: YamlTable
    round: str
    timeout: float | None
    """Seconds for each test."""
    env: dict[str, str]
    is_fresh: bool
    """Whether the tests of earlier checkpoints are left out."""
    retired: str
    """The round that takes the tests of this one out of the suite; empty for none."""


def read_checkpoints(config: YamlTable) -> list[SlopCheckpoint]:
    """Return the checkpoints in order, at least one; raises TaskError."""
    table = config.table("checkpoints")
    if not table.values:
        raise config.error("names no checkpoint; add those of the problem", "checkpoints")
    tables = [table.table(name) for name in table.values]
    orders = [each.number("order") or index for index, each in enumerate(tables, start=1)]
    found = sorted(zip(orders, table.values, tables, strict=True), key=lambda each: each[:2])
    fresh = [not each.flag("include_prior_tests", True) for _, _, each in found]
    checkpoints = []
    for number, (_, name, own) in enumerate(found, start=1):
        if not _NAME.fullmatch(name):
            raise table.error("a checkpoint's name is made of letters, digits, '.', '_' and '-'", name)
        retiring = next((later for later in range(number, len(found)) if fresh[later]), None)
        checkpoints.append(
            SlopCheckpoint(
                name,
                own,
                f"round-{number}",
                own.number("timeout") or config.number("timeout"),
                {**_literal(config), **_literal(own)},
                fresh[number - 1],
                f"round-{retiring + 1}" if retiring is not None else "",
            )
        )
    return checkpoints


def read_entry_file(config: YamlTable) -> str:
    """Return the path of the program in the workspace; raises TaskError."""
    name = config.text("entry_file")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not re.fullmatch(r"[\w./-]+", name):
        raise config.error("must be a file's path in the workspace, without blanks and '..'", "entry_file")
    return name if path.suffix else f"{name}.py"


def read_assets(config: YamlTable) -> Iterator[tuple[str, Path, str]]:
    """Yield the name of each static asset, the path it is at, and its path in the workspace; raises TaskError."""
    source = config.source
    assets = config.table("static_assets")
    for name in assets.values:
        asset = assets.table(name)
        place = asset.text("path")
        path = source.path(place, (source.root / config.name, asset.line("path")))
        if not path.exists() or path.resolve() == source.root.resolve():
            raise asset.error(f"must be a file or directory in {source.root}", "path")
        save = PurePosixPath(asset.text("save_path", place))
        if save.is_absolute() or ".." in save.parts or not _NAME.fullmatch(name):
            raise asset.error("must be in the workspace: a relative path without '..', of an asset with a plain name")
        yield name, path, save.as_posix()


def _literal(table: YamlTable) -> dict[str, str]:
    variables = table.environment("env")
    for name, value in variables.items():
        if "${" in value:
            message = "${...} would be filled in from the host's variables here; write the value out"
            raise table.error(message, "env", name)
    return variables


_SCRIPT = """\
#!/bin/bash
# Written by evocode new --from: the workspace becomes what the directory {name} is.
set -e
"""


def write_snapshot(draft: Draft, place: str, workspace: Path, before: Path | None) -> None:
    """Write the solution of a round.

    Args:
        draft: The task.
        place: The solution's directory in it.
        workspace: All files as they are to be after the round.
        before: The same after the round before; its files that are not in ``workspace`` are removed.
    """
    script = _SCRIPT.format(name=workspace.name)
    if workspace == before:
        draft.write(
            f"{place}/solve.sh", script + "# Nothing to do: the round before has done all of it.\n", executable=True
        )
        return
    gone = sorted(_files(before) - _files(workspace)) if before else []
    if gone:
        script += f"rm -f -- {' '.join(map(shlex.quote, gone))}\n"
    draft.copy(workspace, f"{place}/files")
    draft.write(f"{place}/solve.sh", script + "cp -R /solution/files/. .\n", executable=True)


def _files(directory: Path) -> set[str]:
    return {
        path.relative_to(directory).as_posix() for path in entries(directory) if path.is_symlink() or path.is_file()
    }


WORKDIR = "/workspace"
_ASSETS = "/opt/slopcodebench/assets"
_IMAGE = "ghcr.io/astral-sh/uv:python3.12-trixie-slim"  # Of the runner's own configuration for Python.
_CONFIG = "config.yaml"
_CANARY = re.compile(r"\A<!--.*?-->\n?", re.DOTALL)
_PACKAGE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9._,-]+\])?(?:\s*(?:[<>=!~]=?|===)\s*[A-Za-z0-9.*+!_-]+,?)*"
)
_GIVEN = ("jsonschema", "deepdiff")
"""What the runner gives to all tests, beside pytest's plugins."""
_KINDS = {"Core": "core", "Error": "error"}
_KNOWN = (
    *("version", "name", "description", "tags", "author", "category", "difficulty", "checkpoints", "static_assets"),
    *("entry_file", "markers", "test_dependencies", "env", "timeout", "state", "design_doc", "order"),
    "include_prior_tests",
)
"""Keys that are carried over, or say nothing about the task itself."""
_LEAST_SUITE_TIMEOUT = 600.0


def import_problem(directory: Path, draft: Draft) -> None:
    """Write a problem's task.

    Raises:
        TaskError: The problem is not in SlopCodeBench's format.
    """
    _Problem(Source(directory), draft).write()


class _Problem:
    def __init__(self, source: Source, draft: Draft) -> None:
        self.source = source
        self.draft = draft
        self.config = read_yaml(source, _CONFIG, "a problem of SlopCodeBench has one")
        self._refuse_old_form()
        self.checkpoints = read_checkpoints(self.config)
        for checkpoint in self.checkpoints:
            draft.add_round(checkpoint.name)
        self.entry_file = read_entry_file(self.config)
        self.assets = [*read_assets(self.config)]
        self.solutions = "solutions" if self.source.path("solutions").is_dir() else "solution"
        self.test_trees: list[ast.Module] = []

    def write(self) -> None:
        """Write all files of the task."""
        self._write_suites()
        self._write_requests()
        requirements = self._write_solutions()
        self._write_environment(requirements)
        self._write_configuration()
        self._note_the_rest()

    def _refuse_old_form(self) -> None:
        if not self.source.path("tests").is_dir():
            message = (
                "there is no tests/ with pytest modules, so this is SlopCodeBench's form from before December 2025; "
                "take the problem as it is now, such as from github.com/gabeorlanski/scb-problems"
            )
            raise TaskError(message, self.source.root / _CONFIG)
        self.source.text("tests/conftest.py", "SlopCodeBench's tests have their entrypoint from it")

    def _write_suites(self) -> None:
        modules = {f"test_{each.name}.py": each for each in self.checkpoints}
        tests = self.source.path("tests")
        for place in sorted(os.listdir(tests)):
            path = self.source.path(f"tests/{place}")
            if is_dropping(place):
                continue
            if place == "conftest.py":
                text = self.source.text("tests/conftest.py", "")
                command = f"python3 {WORKDIR}/{self.entry_file}"
                rounds = {each.round: each.name for each in self.checkpoints}
                self.draft.write("tests/conftest.py", give_options(path, text, command, rounds))
                self.test_trees.append(parse(path, text))
            elif path.is_file() and is_test_module(place):
                if place not in modules:
                    self.draft.note(path, "belongs to no checkpoint, and SlopCodeBench does not run it")
            else:
                self.draft.copy(path, f"tests/{place}")
                if path.suffix == ".py":
                    self.test_trees.append(parse(path, self.source.text(f"tests/{place}", "")))
        for place, checkpoint in modules.items():
            self._write_module(place, checkpoint)
        for name, path, _ in self.assets:
            # A copy would be a test's file that agents see, as the check starter-clean finds them.
            if not self.draft.link(f"tests/assets/{name}", f"{_ASSETS}/{name}"):
                self.draft.note(path, f"tests/assets/{name} is there already, and is what tests read")

    def _write_module(self, place: str, checkpoint: SlopCheckpoint) -> None:
        text = self.source.text(f"tests/{place}", f"{checkpoint.name} needs its tests")
        path = self.source.path(f"tests/{place}")
        tree = parse(path, text)
        self.test_trees.append(tree)
        custom = self.config.table("markers")
        kinds = {"error": "error", "regression": "", "functionality": ""}
        kinds |= {name: _KINDS.get(custom.table(name).text("group"), "") for name in custom.values if name not in kinds}
        module = TestModule(path, text)
        marking = Marking(checkpoint.name, kinds, "core", checkpoint.retired, checkpoint.timeout)
        if not module.mark_tests(marking):
            raise TaskError("has no test function; add one, or remove the checkpoint", path)
        module.import_from_above()
        if module.set_file(1):
            self.draft.note(
                path,
                "finds its data by __file__, which was set to the path as if it lay in tests/",
                "look whether it does",
            )
        others = {f"test_{each.name}" for each in self.checkpoints} & imported_packages([tree])
        for other in sorted(others):
            self.draft.note(
                path,
                f"imports {other}, which lies in another directory here",
                "move what they share to a module of the task's tests/",
            )
        self.draft.write(f"steps/{checkpoint.round}/tests/{place}", module.text())

    def _write_requests(self) -> None:
        for checkpoint in self.checkpoints:
            text = self.source.text(f"{checkpoint.name}.md", f"it is the request of {checkpoint.name}")
            text = _CANARY.sub("", text)
            text = text.replace("%%%ENTRYPOINT:entry_file%%%", self.entry_file)
            text = text.replace("%%%ENTRYPOINT:entry_command%%%", f"python3 {self.entry_file}")
            self.draft.write(f"steps/{checkpoint.round}/instruction.md", text)

    def _write_solutions(self) -> list[tuple[Path, int, str]]:
        """Write the reference solutions, and return all lines of their requirements.txt with paths and line numbers."""
        before: Path | None = None
        requirements = []
        has_own = self.solutions == "solutions"
        for checkpoint in self.checkpoints:
            path = self.source.path(f"solutions/{checkpoint.name}" if has_own else "solution")
            if not path.is_dir():
                self.draft.note(
                    path,
                    f"there is no reference solution of {checkpoint.name}",
                    f"write steps/{checkpoint.round}/solution/solve.sh; the agent oracle needs one for every round",
                )
                continue
            write_snapshot(self.draft, f"steps/{checkpoint.round}/solution", path, before)
            if path != before and (path / "requirements.txt").is_file():
                place = path.relative_to(self.source.root).as_posix()
                lines = self.source.text(f"{place}/requirements.txt", "").splitlines()
                requirements += [
                    (path / "requirements.txt", number, line) for number, line in enumerate(lines, start=1)
                ]
            before = path
        if not has_own and before and len(self.checkpoints) > 1:
            self.draft.note(
                before,
                "is one solution for all checkpoints, and is put in place in the first round already",
                "write one for each round, or the checks needs-work and active fail",
            )
        return requirements

    def _write_environment(self, requirements: list[tuple[Path, int, str]]) -> None:
        lines = [f"# Written by evocode new --from; SlopCodeBench runs Python problems in this image.\nFROM {_IMAGE}"]
        packages = dict.fromkeys([*self._test_packages(), *self._solution_packages(requirements)])
        if packages:
            lines.append(f"RUN python3 -m pip install --no-cache-dir {' '.join(map(_quoted, packages))}")
        lines.append(f"WORKDIR {WORKDIR}")
        for _, path, save in self.assets:
            self.draft.copy(path, f"environment/assets/{save}")
        if self.assets:
            lines.append(f"COPY assets/ {WORKDIR}/")
            lines.append("# The tests have links to these.")
        for name, _, save in self.assets:
            lines.append(f"COPY {json.dumps([f'assets/{save}', f'{_ASSETS}/{name}'])}")
        self.draft.write("environment/Dockerfile", "\n".join(lines) + "\n")

    def _test_packages(self) -> Iterator[str]:
        imported = imported_packages(self.test_trees)
        yield from (name for name in _GIVEN if name in imported)
        for index, package in enumerate(self.config.texts("test_dependencies")):
            if not _PACKAGE.fullmatch(package):
                table = self.config
                raise table.error(f"{package} is no package with or without a version", "test_dependencies", index)
            yield package
        if self.config.texts("test_dependencies"):
            self.draft.note_key(
                self.config,
                "test_dependencies",
                what="the tests have these to themselves in SlopCodeBench; here they are in the image, for all to see",
                do="pin their versions in environment/Dockerfile",
            )

    def _solution_packages(self, requirements: list[tuple[Path, int, str]]) -> Iterator[str]:
        for path, number, line in requirements:
            package = line.partition("#")[0].strip()
            if package and not _PACKAGE.fullmatch(package):
                self.draft.note(
                    path, f"{package} was not installed", "add it to environment/Dockerfile yourself", line=number
                )
            elif package:
                yield package
        for path in dict.fromkeys(path for path, _, _ in requirements):
            self.draft.note(
                path,
                "the packages of the reference solutions are in the image; SlopCodeBench installs those of every"
                " submission before its tests, and here nobody installs an agent's",
                "say in the instruction what there is, or have the image bring more",
            )

    def _write_configuration(self) -> None:
        config = self.config
        task: dict[str, Any] = {
            "name": f"slopcodebench/{self.draft.name}",
            "version": config.text("version", "1"),
            "description": config.text("description").strip(),
            "keywords": config.texts("tags"),
        }
        if config.values.get("author"):
            task["authors"] = [{"name": config.text("author")}]
        env = {}
        if self.assets:
            env = {"SCBENCH_ASSETS_DIR": "/tests/assets"}
            env |= {f"SCBENCH_ASSET_{each.upper()}": f"/tests/assets/{each}" for each, _, _ in self.assets}
        longest = max((each.timeout or 0 for each in self.checkpoints), default=0)
        steps = [_step(each, env) for each in self.checkpoints]
        self.draft.write_configuration(
            {
                "schema_version": "1.4",
                "source": f"SlopCodeBench: {config.text('name')}",
                "task": task,
                "verifier": {"timeout_sec": max(_LEAST_SUITE_TIMEOUT, 4 * longest)},
                "steps": steps,
                "metadata": {
                    "difficulty": config.text("difficulty", "Easy").lower(),
                    "category": config.text("category", "NOT_SET"),
                    "evocode": {"verify_in": "clean"},
                },
            },
            f"{canary}\n" if (canary := self.source.comment(_CONFIG)) else "",
        )

    def _note_the_rest(self) -> None:
        note = self.draft.note_key
        for index, each in enumerate(self.checkpoints):
            if index and each.is_fresh and not all(later.is_fresh for later in self.checkpoints[index:]):
                note(
                    each.config,
                    "include_prior_tests",
                    what=f"earlier tests are left out of {each.name} only; here they stay retired from then on",
                    do="copy those that are required again to the later rounds",
                )
        used = {_CONFIG, "tests", *(f"{each.name}.md" for each in self.checkpoints), self.solutions}
        used |= {path.relative_to(self.source.root).parts[0] for _, path, _ in self.assets}
        for place in sorted(os.listdir(self.source.root)):
            if place not in used and not is_dropping(place):
                self.draft.note(self.source.root / place, "was left out: config.yaml has no use for it")
        for table in (self.config, *(each.config for each in self.checkpoints)):
            self.draft.note_others(table, _KNOWN)
        if self.assets:
            note(
                self.config,
                "static_assets",
                what=f"tests read them in the image, at {_ASSETS}; SlopCodeBench gives them copies of their own",
                do="nothing, unless agents that are root are not trusted with them",
            )
        note(
            self.config,
            "entry_file",
            what=f"the program is started by python3 {WORKDIR}/{self.entry_file}; in SlopCodeBench the environment"
            " that a run chooses says how",
            do="where that is another way, change environment/Dockerfile, tests/conftest.py and the instructions",
        )
        note(
            self.config,
            "checkpoints",
            what="every test is required, those for functionality too, and code quality is not scored",
            do="take out tests that are not to decide whether a round passed",
        )


def _step(checkpoint: SlopCheckpoint, env: dict[str, str]) -> dict[str, Any]:
    variables = {**env, **checkpoint.env}
    return {"name": checkpoint.round, **({"verifier": {"env": variables}} if variables else {})}


def _quoted(package: str) -> str:
    """Return a package as a word for the shell; its characters are those of ``_PACKAGE``."""
    return f"'{package}'"

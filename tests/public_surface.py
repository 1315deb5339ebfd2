"""What is public of the package, as lines of text: docs/stability.md says what that promises.

``python -m tests.public_surface 45.added.md`` writes ``public_surface.json`` anew after a change that
``changelog.d/45.added.md`` explains, and ``python -m tests.public_surface 0.3.0`` when a release has taken that.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel

from pytest_evocode.agents.specs import ENTRY_POINTS as AGENTS
from pytest_evocode.cli import MODULES
from pytest_evocode.cli import main as evocode
from pytest_evocode.llm.client_factory import ENTRY_POINTS as PROVIDERS
from pytest_evocode.plugin import hookspecs
from pytest_evocode.plugin.options import add_options
from pytest_evocode.process.scores.rigor_score import PROCESS_VERSION
from pytest_evocode.results.records import RECORD_VERSION
from pytest_evocode.results.schema import FILES
from pytest_evocode.results.storage import MANIFEST_VERSION

ROOT = Path(__file__).parents[1]
SNAPSHOT = Path(__file__).with_suffix(".json")
#: A directive that shows a part of the API, with the names of members that it shows.
_DIRECTIVE = re.compile(r"^\.\. auto(class|function|module):: ([\w.]+)(?:\(\))?\n((?:   :.*\n)*)", re.MULTILINE)
_MEMBERS = re.compile(r"^   :members:(.*)$", re.MULTILINE)


def surface() -> list[str]:
    """Return a line for each part of what is public, in order."""
    parts = (_options(), _commands(), _hooks(), _fixtures(), _entry_points(), _records(), _task_keys(), _python())
    return sorted({line for part in parts for line in part})


class _Declared:
    """Takes what the plugin declares, in place of pytest's parser."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        add_options(self)  # type: ignore[arg-type]

    def getgroup(self, *_: str) -> _Declared:
        return self

    def addoption(self, name: str, **more: Any) -> None:
        given = " takes none" if more.get("action") == "store_true" else f" takes {more.get('nargs', 'one')}"
        choices = f" of {', '.join(more['choices'])}" if "choices" in more else ""
        self.lines.append(f"option {name}{given}{choices}")

    def addini(self, name: str, **more: Any) -> None:
        self.lines.append(f"setting {name}: {more['type']}")


def _options() -> Iterator[str]:
    yield from _Declared().lines


def _commands() -> Iterator[str]:
    context = click.Context(evocode, info_name="evocode")
    for name in MODULES:
        command = evocode.get_command(context, name)
        assert command is not None
        yield f"command {name}"
        for parameter in command.params:
            names = "/".join(parameter.opts) if parameter.param_type_name == "option" else parameter.human_readable_name
            yield f"command {name} {names}"


def _hooks() -> Iterator[str]:
    for name, hook in vars(hookspecs).items():
        if name.startswith("pytest_evocode_"):
            yield f"hook {name}{_parameters(hook)}"


def _fixtures() -> Iterator[str]:
    declared = re.compile(r"@pytest\.fixture(\(.*\))?\n *(?:async )?def (\w+)")
    for path in (ROOT / "pytest_evocode").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        yield from (f"fixture {name}" for name in re.findall(r'add_fixture\("(\w+)"', text))
        for how, function in declared.findall(text):
            name = re.search(r'name="(\w+)"', how)
            yield f"fixture {name[1] if name else function}"


def _entry_points() -> Iterator[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    yield from (f"entry points of agents: {AGENTS}", f"entry points of providers: {PROVIDERS}")
    yield from (f"extra {name}" for name in project["optional-dependencies"])
    yield from (f"program {name}" for name in project["scripts"])
    yield from (f"plugin {name}" for name in project["entry-points"]["pytest11"])


def _records() -> Iterator[str]:
    versions = {"records": RECORD_VERSION, "storage": MANIFEST_VERSION, "process scores": PROCESS_VERSION}
    yield from (f"version of {name}: {version}" for name, version in versions.items())
    for pattern, kind in FILES.items():
        yield f"record {kind.__name__} in {pattern}"


def _task_keys() -> Iterator[str]:
    def keys(path: str, table: Mapping[str, Any]) -> Iterator[str]:
        for name, key in table.get("properties", {}).items():
            yield f"{path}{name}"
            yield from keys(f"{path}{name}.", key)
        for below in (*table.get("anyOf", ()), table.get("items"), *table.get("patternProperties", {}).values()):
            if isinstance(below, dict):
                yield from keys(path, below)

    schema = json.loads((ROOT / "pytest_evocode/tasks/task.schema.json").read_text(encoding="utf-8"))
    yield from (f"task.toml {key}" for key in keys("", schema))


def _python() -> Iterator[str]:
    """Yield the names in ``__all__``, and all that pages of the documentation show with its parameters."""
    import pytest_evocode

    yield from (f"python pytest_evocode.{name}" for name in pytest_evocode.__all__)
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for kind, name, options in _DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            members = _MEMBERS.search(options)
            named = [each for each in (members[1] if members else "").replace(",", " ").split() if each]
            if kind == "module":
                module = importlib.import_module(name)
                own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == name]
                for each in named or (key for key in own if not key.startswith("_")):
                    yield from _shown(f"{name}.{each}", getattr(module, each), None)
            else:
                module_name, _, last = name.rpartition(".")
                shown = getattr(importlib.import_module(module_name), last)
                yield from _shown(name, shown, named or None if members else [])


def _shown(name: str, what: Any, members: list[str] | None) -> Iterator[str]:
    """Yield the lines of a function, or of a class with these of its members, None for all."""
    if not inspect.isclass(what):
        yield f"python {name}{_parameters(what) if callable(what) else ''}"
        return
    # Protocols are not called, and what errors and models are made of is no promise.
    is_made = not issubclass(what, BaseException | BaseModel) and not getattr(what, "_is_protocol", False)
    yield f"python {name}{_parameters(what) if is_made else ''}"
    own = [each for each in reversed(what.__mro__) if each.__module__.startswith("pytest_evocode")]
    found = {
        key: value
        for each in own
        for key, value in (*dict.fromkeys(inspect.get_annotations(each)).items(), *vars(each).items())
    }
    for member, value in found.items():
        if not member.startswith("_") and (members is None or member in members) and member != "model_config":
            yield f"python {name}.{member}{_parameters(value) if inspect.isfunction(value) else ''}"


def _parameters(function: Any) -> str:
    """Return a function's parameters without their types, which Pythons spell differently.

    >>> _parameters(lambda a, /, b=1, *c, d, e=2, **f: None)
    '(a, /, b=, *c, d, e=, **f)'
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    parameters = [each.replace(annotation=each.empty, default=each.empty) for each in signature.parameters.values()]
    text = str(signature.replace(parameters=parameters, return_annotation=signature.empty))
    for each in signature.parameters.values():
        if each.default is not each.empty:
            text = re.sub(rf"(?<![\w*]){each.name}(?=[,)])", f"{each.name}=", text)
    return text


def digest(lines: list[str]) -> str:
    """Return a hash of lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def explains(name: str) -> str:
    """Return the hash of what a fragment, or the notes of a release, say; empty where there are none of that name."""
    fragment = ROOT / "changelog.d" / name
    if fragment.suffix == ".md" and fragment.is_file() and name != "README.md":
        return digest([fragment.read_text(encoding="utf-8")])
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    notes = re.search(rf"^## {re.escape(name)}\s*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return digest([name, notes[1]]) if notes else ""


def write(name: str, snapshot: Path = SNAPSHOT) -> None:
    """Write the snapshot of today's surface, which a fragment or a release explains.

    Raises:
        SystemExit: There is no such fragment or release, or it explained what was public before.
    """
    said, lines = explains(name), surface()
    if not said:
        raise SystemExit(
            f"neither changelog.d/{name} nor a heading ## {name} in CHANGELOG.md: write the fragment first"
        )
    before = json.loads(snapshot.read_text(encoding="utf-8")) if snapshot.is_file() else {}
    if before.get("says") == said and before.get("surface") != lines:
        raise SystemExit(
            f"{name} says what it said before this change: say in it, or in another fragment, what changed"
        )
    after = {"explained by": name, "says": said, "surface": lines}
    snapshot.write_text(json.dumps(after, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("name the fragment in changelog.d/ that explains the change, or the release")
    write(sys.argv[1])

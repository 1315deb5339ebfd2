"""Writes what pages say of options, commands, keys, fields, fixtures and faults, from the code that has it.

``python docs/generate.py`` writes it into the pages, between a comment that names the part and ``<!-- end -->``, so
that they can be read without a build. A test tells when a page is not what the code says.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from _pytest.fixtures import FixtureFunctionDefinition
from pydantic import BaseModel

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # For the tests, which have the table of faults, and so that all is of one clone.

from pytest_evocode.agents.acp.agent import AcpOptions  # noqa: E402
from pytest_evocode.agents.harness import HarnessOptions  # noqa: E402
from pytest_evocode.agents.installed.base import CliOptions  # noqa: E402
from pytest_evocode.agents.installed.claude_code import ClaudeCodeOptions  # noqa: E402
from pytest_evocode.agents.installed.codex import CodexOptions  # noqa: E402
from pytest_evocode.agents.installed.declared_command import CommandDeclaration, CommandOptions  # noqa: E402
from pytest_evocode.agents.installed.gemini_cli import GeminiCliOptions  # noqa: E402
from pytest_evocode.agents.installed.opencode import OpenCodeOptions  # noqa: E402
from pytest_evocode.agents.shell.agent import ShellOptions  # noqa: E402
from pytest_evocode.agents.tried import markdown_of_programs  # noqa: E402
from pytest_evocode.checks.attacks import ATTACKS  # noqa: E402
from pytest_evocode.cli import VIEWS  # noqa: E402
from pytest_evocode.cli import main as evocode  # noqa: E402
from pytest_evocode.llm.model_options import ModelOptions  # noqa: E402
from pytest_evocode.plugin.attempts import container_fixture  # noqa: E402
from pytest_evocode.plugin.options import add_options  # noqa: E402
from pytest_evocode.report.score_columns import COLUMNS  # noqa: E402
from pytest_evocode.results.schema import FILES, record_schema  # noqa: E402
from pytest_evocode.tasks.compatibility import tables  # noqa: E402
from pytest_evocode.tasks.schema import SCHEMA_FILE as TASK_SCHEMA  # noqa: E402
from pytest_evocode.verifier.in_container import session, workspace  # noqa: E402
from tests.model_faults import table  # noqa: E402

#: Tables of task.toml that have the keys of another one, which is not shown again.
SAME_AS = {
    "verifier.environment": "environment",
    "steps.agent": "agent",
    "steps.verifier": "verifier",
    "steps.healthcheck": "environment.healthcheck",
    "steps.artifacts": "artifacts",
}
#: What other packages, or code that does not await, play tasks with; it is not imported, as few have these packages.
BRIDGES = ROOT / "pytest_evocode" / "bridges"
BRIDGES_TO = (
    "gymnasium.EvocodeEnv",
    "openenv.create_app",
    "trl.TrainingEpisode",
    "verifiers.EvocodeTaskset",
    "verifiers.EvocodeHarness",
    "blocking.BlockingEpisode",
)
#: Options of agents by the heading of their section: the model that has them, and those that were shown before.
AGENTS: Mapping[str, tuple[type[BaseModel], tuple[type[BaseModel], ...]]] = {
    "Every agent with a model": (HarnessOptions, ()),
    "Models": (ModelOptions, ()),
    "The shell agent": (ShellOptions, (ModelOptions, HarnessOptions)),
    "Installed CLIs": (CliOptions, (HarnessOptions,)),
    "`claude-code`": (ClaudeCodeOptions, (CliOptions,)),
    "`codex`": (CodexOptions, (CliOptions,)),
    "`gemini-cli`": (GeminiCliOptions, (CliOptions,)),
    "`opencode`": (OpenCodeOptions, (CliOptions,)),
    "`acp:COMMAND`": (AcpOptions, (HarnessOptions,)),
    "`cmd:NAME`": (CommandOptions, ()),
    "Declared commands": (CommandDeclaration, ()),
}


def completed(text: str) -> str:
    """Return a page with all its parts as the code has them."""

    def part(found: re.Match[str]) -> str:
        lines = "\n".join(PARTS[found["name"]]()).strip("\n")
        return f"{found['begin']}\n\n{lines}\n\n{END}"

    return PART.sub(part, text)


def by_hand(text: str) -> str:
    """Return what of a page is written by hand."""
    return PART.sub("", text)


def write() -> None:
    """Write the parts of all pages."""
    for page in (ROOT / "docs").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(completed(text), encoding="utf-8")


class Declared:
    """What the plugin declares, in place of pytest's parser."""

    def __init__(self) -> None:
        self.options: dict[str, Mapping[str, Any]] = {}
        self.settings: dict[str, Mapping[str, Any]] = {}
        add_options(self)  # type: ignore[arg-type]

    def getgroup(self, *_: str) -> Declared:
        return self

    def addoption(self, name: str, **more: Any) -> None:
        self.options[name] = more

    def addini(self, name: str, **more: Any) -> None:
        self.settings[name] = more


def options() -> Iterator[str]:
    """Yield the table of pytest's options."""
    yield from ("| option | what it is for |", "|---|---|")
    for name, more in Declared().options.items():
        value = more.get("metavar", "")
        if value:
            value = f"[={value}]" if more.get("nargs") == "?" else f"={value}"
        yield f"| `{name}{value}` | {more['help'] % {'default': more.get('default')}} |"


def settings() -> Iterator[str]:
    """Yield the table of pytest's ini settings."""
    yield from ("| setting | what it is for |", "|---|---|")
    for name, more in Declared().settings.items():
        yield f"| `{name}` | {more['help']} |"


def fixtures() -> Iterator[str]:
    """Yield the table of fixtures: those of native suites, and the one of rounds."""
    declared = [each for owner in (workspace, session) for each in vars(owner).values()]
    texts = {each.name: each.__doc__ for each in declared if isinstance(each, FixtureFunctionDefinition)}
    texts["evocode_container"] = container_fixture(None).__doc__  # type: ignore[arg-type]
    yield from ("| fixture | what it does |", "|---|---|")
    yield from (f"| `{name}` | {' '.join(str(text).split())} |" for name, text in texts.items())


def bridges() -> Iterator[str]:
    """Yield a list of the bridges with their methods."""
    for bridge in BRIDGES_TO:
        module, _, name = bridge.partition(".")
        tree = ast.parse((BRIDGES / f"{module}.py").read_text(encoding="utf-8"))
        (found,) = (each for each in ast.walk(tree) if getattr(each, "name", "") == name)
        methods = {each.name: each for each in getattr(found, "body", ()) if isinstance(each, Function)}
        made = methods.get("__init__", found)
        yield f"- `{bridge}{parameters(made)}`: {first_of_docstring(found)}"
        for method, each in methods.items():
            if not method.startswith("_"):
                called = method if each.decorator_list else f"{method}{parameters(each)}"
                yield f"  - `{called}`: {first_of_docstring(each)}"


Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def parameters(function: ast.AST) -> str:
    """Return the parameters of a function without self; nothing for a class, which has none of its own."""
    if not isinstance(function, Function):
        return ""
    return f"({re.sub('^self(, )?', '', ast.unparse(function.args))})"


def first_of_docstring(node: ast.AST) -> str:
    """Return what a docstring says before its sections, in Markdown."""
    text = re.split(r"\n\n(?:Args|Returns|Raises):", ast.get_docstring(node) or "")[0]  # type: ignore[arg-type]
    return re.sub(r":\w+:`~?([^`]*)`", r"`\1`", " ".join(text.split()).replace("``", "`"))


def agent_options() -> Iterator[str]:
    """Yield a section for each kind of agent with its options."""
    for heading, (model, shown) in AGENTS.items():
        yield from (f"## {heading}", "", "| option | what it is for | default |", "|---|---|---|")
        for name, field in model.model_fields.items():
            before = next((each.model_fields[name] for each in shown if name in each.model_fields), None)
            if before is not None and before.default == field.default:
                continue
            description = field.description or (before and before.description) or ""
            default = "" if field.default in (None, "", (), {}) or field.is_required() else f"`{field.default}`"
            yield f"| `{field.alias or name}` | {' '.join(description.split()).replace('``', '`')} | {default} |"
        yield ""


def attacks() -> Iterator[str]:
    """Yield the table of what every task is tried with."""
    yield from ("| attack | tries to | in |", "|---|---|---|")
    for attack in ATTACKS.values():
        yield f"| `{attack.name}` | {attack.tries} | {'checks, harden' if attack.in_checks else 'harden'} |"


def commands() -> Iterator[str]:
    """Yield a section for each command of ``evocode``, with what ``--help`` prints of it."""
    context = click.Context(evocode, info_name="evocode", max_content_width=100)
    yield from command_help("evocode", evocode, None)
    for name in evocode.list_commands(context):
        command = evocode.get_command(context, name)
        assert command is not None
        yield from command_help(name, command, context)
        for view in VIEWS if name == "results" else ():
            command = evocode.get_command(context, view)
            assert command is not None
            yield from command_help(f"results --view {view}", command, context)


def command_help(name: str, command: click.Command, parent: click.Context | None) -> Iterator[str]:
    """Yield the section of a command."""
    context = click.Context(command, info_name=name, parent=parent, max_content_width=100, terminal_width=100)
    yield from (f"## `{context.command_path}`", "", "```text", *context.get_help().splitlines(), "```", "")


def keys(path: str, table: Mapping[str, Any]) -> Iterator[str]:
    """Yield a section for a table of task.toml with its keys, and then those of the tables in it."""
    inner = []
    properties: Mapping[str, Any] = table["properties"]
    yield from (f"## {f'`[{path}]`' if path else 'The top of task.toml'}", "")
    yield from (str(table.get("description", "")), "", "| key | what it is | default |", "|---|---|---|")
    for name, key in properties.items():
        here = f"{path}.{name}".strip(".")
        below = next(tables_in(key), None)
        what = str(key.get("description", "")).replace("|", "\\|")
        if "enum" in key:
            what += f" One of {', '.join(f'`{each}`' for each in key['enum'])}."
        if here in SAME_AS:
            what += f" Its keys are those of `[{SAME_AS[here]}]`."
        elif below is not None:
            inner.append((here, below))
        default = key.get("default", "")
        yield f"| `{name}` | {what} | {'' if default in ('', [], {}) else f'`{json.dumps(default)}`'} |"
    yield ""
    for here, below in inner:
        yield from keys(here, below)


def records() -> Iterator[str]:
    """Yield a section for each kind of record with its fields, those that are files first."""
    kinds = record_schema()["$defs"]
    files = {model.__name__: path for path, model in FILES.items()}
    for name in sorted(kinds, key=lambda name: (name not in files, name)):
        yield from (f"### {name}", "")
        yield from (f"The file `{files[name]}`.", "") if name in files else ()
        yield from (kinds[name].get("description", "").replace("``", "`"), "")
        yield from ("| field | type | what it is |", "|---|---|---|")
        fields = kinds[name]["properties"].items()
        for (kind, text), alike in groupby(fields, lambda each: (type_of(each[1]), each[1].get("description", ""))):
            yield f"| {', '.join(f'`{key}`' for key, _ in alike)} | {kind} | {text.replace('``', '`')} |"
        yield ""


def type_of(field: Mapping[str, Any]) -> str:
    """Return what a JSON Schema says of the type of a field, in words."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(type_of(each) for each in field["anyOf"]))
    if "enum" in field or "const" in field:
        return ", ".join(f"`{json.dumps(each)}`" for each in field.get("enum", [field.get("const")]))
    kind: str = field.get("type", "any")
    items, values = field.get("items"), field.get("additionalProperties")
    if "prefixItems" in field:
        return f"list: {', '.join(map(type_of, field['prefixItems']))}"
    if isinstance(items, dict):
        return f"list of {type_of(items)}"
    return f"object of {type_of(values)}" if isinstance(values, dict) else kind


def described_keys() -> dict[str, dict[str, str]]:
    """Return the keys of the JSON that commands print with their meanings, by command."""
    described = tomllib.loads((ROOT / "docs" / "json_keys.toml").read_text(encoding="utf-8"))
    return {
        command: {key: text or COLUMNS[key.rpartition(".")[2]].help.removesuffix(".") for key, text in found.items()}
        for command, found in described.items()
    }


def json_keys() -> Iterator[str]:
    """Yield the table of these keys for each command."""
    for command, described in described_keys().items():
        yield from ("", f"`evocode {command} --json`", "", "| key | meaning |", "|---|---|")
        yield from (f"| `{key}` | {text} |" for key, text in described.items())


def tables_in(key: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the tables that a key may have as its value, in a list, or by names of the author's."""
    if "properties" in key:
        yield key
    for each in (*key.get("anyOf", ()), key.get("items"), key.get("additionalProperties")):
        if isinstance(each, dict):
            yield from tables_in(each)
    for each in key.get("patternProperties", {}).values():
        yield from tables_in(each)


#: What makes each part, by the name that its comment has.
PARTS: Mapping[str, Callable[[], Iterable[str]]] = {
    "options": options,
    "settings": settings,
    "fixtures": fixtures,
    "bridges": bridges,
    "commands": commands,
    "agent-options": agent_options,
    "attacks": attacks,
    "clis": markdown_of_programs,
    "task-keys": lambda: keys("", json.loads(TASK_SCHEMA.read_text(encoding="utf-8"))),
    "harbor": lambda: tables().splitlines(),
    "faults": table,
    "records": records,
    "json-keys": json_keys,
}
END = "<!-- end -->"
PART = re.compile(rf"(?P<begin><!-- docs/generate\.py: (?P<name>[\w-]+) -->)\n.*?{END}", re.DOTALL)

if __name__ == "__main__":
    write()

"""Writes what the reference says of options, commands, keys and faults from the code that has it: into docs/generated/.

``conf.py`` calls it at every build of the documentation; the pages include the files.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # For the tests, which have the table of faults.

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
from pytest_evocode.plugin.options import add_options  # noqa: E402
from pytest_evocode.report.score_columns import COLUMNS  # noqa: E402
from pytest_evocode.tasks.compatibility import tables  # noqa: E402
from tests.model_faults import table  # noqa: E402

SCHEMA = ROOT / "pytest_evocode" / "tasks" / "task.schema.json"
#: Tables of task.toml that have the keys of another one, which is not shown again.
SAME_AS = {
    "verifier.environment": "environment",
    "steps.agent": "agent",
    "steps.verifier": "verifier",
    "steps.healthcheck": "environment.healthcheck",
    "steps.artifacts": "artifacts",
}
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


def write(folder: Path) -> None:
    """Write all files; one that is as it should be is left alone, so that Sphinx builds no page anew for it."""
    folder.mkdir(exist_ok=True)
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    texts = {
        "options.md": options(),
        "settings.md": settings(),
        "commands.md": commands(),
        "agent-options.md": agent_options(),
        "attacks.md": attacks(),
        "clis.md": markdown_of_programs(),
        "task-keys.md": keys("", schema),
        "harbor.md": tables().splitlines(),
        "faults.md": table(),
        "json-keys.md": json_keys(),
    }
    for name, lines in texts.items():
        text, path = "\n".join(lines) + "\n", folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


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


if __name__ == "__main__":
    write(Path(__file__).parent / "generated")

"""The tables of docs/harbor.md, which are made when the documentation is built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from pytest_evocode.tasks.compatibility import FIELDS, FILES, Support
from pytest_evocode.tasks.model import (
    AgentConfig,
    Artifact,
    Author,
    CollectHook,
    EnvironmentConfig,
    Healthcheck,
    McpServer,
    SolutionConfig,
    StepConfig,
    TaskConfig,
    TaskInfo,
    TpuConfig,
    VerifierConfig,
)

SECTIONS: Mapping[type[BaseModel], str] = {
    TaskConfig: "The top of task.toml",
    TaskInfo: "`[task]`",
    Author: "`[[task.authors]]`",
    AgentConfig: "`[agent]`, `[steps.agent]`",
    VerifierConfig: "`[verifier]`, `[steps.verifier]`",
    CollectHook: "`[[verifier.collect]]`",
    EnvironmentConfig: "`[environment]`, `[verifier.environment]`",
    McpServer: "`[[environment.mcp_servers]]`",
    TpuConfig: "`[environment.tpu]`",
    Healthcheck: "`[environment.healthcheck]`, `[steps.healthcheck]`",
    SolutionConfig: "`[solution]`",
    StepConfig: "`[[steps]]`",
    Artifact: "`artifacts`, of the task and of steps",
}
"""What a table of the format is called on the page, in the page's order."""


def tables() -> str:
    """Return the tables as Markdown."""
    lines: list[str] = []
    for section, title in SECTIONS.items():
        lines += _table(title, "field", {f"`{name}`": support for name, support in FIELDS[section].items()})
    files = {", ".join(f"`{name}`" for name in names.split(", ")): support for names, support in FILES.items()}
    return "\n".join([*lines, *_table("Files", "file", files)])


def _table(title: str, what: str, rows: dict[str, Support]) -> Iterator[str]:
    yield from (f"### {title}", "", f"| {what} | here | how |", "|---|---|---|")
    for name, support in rows.items():
        yield f"| {name} | {support.state} | {_how(support)} |"
    yield ""


def _how(support: Support) -> str:
    refusal = support.refusal
    if support.values:
        refusal = f"{support.values} {'are' if support.values.startswith('all') else 'is'} refused"
    if support.for_good:
        refusal += ", for good"
    return "; ".join(part for part in (support.how, refusal) if part)

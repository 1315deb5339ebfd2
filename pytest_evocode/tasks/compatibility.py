"""What becomes of each field of Harbor's format: the one table that the loader, the schema and docs/harbor.md follow.

The table is ``compatibility.toml`` beside this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import tomli
from pydantic import BaseModel

from pytest_evocode.tasks import model
from pytest_evocode.tasks.config_text import Keys
from pytest_evocode.tasks.fields import on_a_drive
from pytest_evocode.tasks.problems import Problem

_REFUSED: Mapping[str, Callable[[Any], object]] = {
    "what asks for something": lambda value: value not in (None, (), 0),
    "other systems": lambda system: system.lower() != "linux",
    "drives": on_a_drive,
}


class Support(NamedTuple):
    """What becomes of a field, or of a file of a task."""

    how: str = ""
    """How it differs from Harbor; empty where it does not."""
    refusal: str = ""
    """What the author of a task that is refused for it is told: why, and what to do."""
    refuses: str = "what asks for something"
    """Which values are refused, where there is a ``refusal``."""
    values: str = ""
    """The same in words, where others are not refused."""
    for_good: bool = False
    """Whether it stays refused."""

    @property
    def state(self) -> Literal["supported", "differently", "refused"]:
        """The support in one word."""
        if self.refusal and not self.values:
            return "refused"
        return "differently" if self.how or self.refusal else "supported"


def _supports(rows: Mapping[str, Any]) -> dict[str, Support]:
    return {name: Support(row) if isinstance(row, str) else Support(**row) for name, row in rows.items()}


_TABLE = tomli.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SECTIONS: Mapping[type[BaseModel], str] = {
    getattr(model, name): section["title"] for name, section in _TABLE["sections"].items()
}
"""What a table of the format is called on the page, in the page's order, by the model that reads it."""
FIELDS: Mapping[type[BaseModel], Mapping[str, Support]] = {
    getattr(model, name): _supports(section["fields"]) for name, section in _TABLE["sections"].items()
}
"""The fields of each table of a ``task.toml``, without those below ``[metadata]``."""
FILES = _supports(_TABLE["files"])
"""The files of a task beside its ``task.toml``, or that it counts on."""
SUITE_COMPOSE = "tests/docker-compose.yaml"


def refusals(section: BaseModel, keys: Keys = ()) -> Iterator[Problem]:
    """Yield a problem for each value of ``section``, and of the tables below it, that is refused by the table.

    Args:
        section: What a task.toml says, or a part of it.
        keys: Where in task.toml the part is.
    """
    fields = FIELDS.get(type(section))
    if fields is None:
        return
    # The order of the fields, not that of a set: messages of one line are sorted by nothing else.
    for name in fields:
        if name not in section.model_fields_set:
            continue
        value, support, here = getattr(section, name), fields[name], (*keys, name)
        if support.refusal and value is not None and _REFUSED[support.refuses](value):
            yield Problem(support.refusal, here, unsupported=True, for_good=support.for_good)
        elif isinstance(value, BaseModel):
            yield from refusals(value, here)
        elif isinstance(value, tuple):
            for index, entry in enumerate(value):
                if isinstance(entry, BaseModel):
                    yield from refusals(entry, (*here, index))


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

"""The table of what becomes of Harbor's fields is whole, and is what the schema and the loader say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from pytest_evocode.tasks.compatibility import FIELDS, FILES, SECTIONS, tables
from pytest_evocode.tasks.model import FreeSection, TaskConfig


def sections(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a model and those of the tables below it, but not what is below ``[metadata]``."""
    yield model
    for field in model.model_fields.values():
        for found in models_in(field.annotation):
            if not issubclass(found, FreeSection):
                yield from sections(found)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def test_every_field_of_the_format_has_a_row_and_no_other() -> None:
    known = {model: set(model.model_fields) for model in sections(TaskConfig)}
    assert {model: set(fields) for model, fields in FIELDS.items()} == known


def test_a_row_that_differs_says_how() -> None:
    for support in [*FILES.values(), *(support for fields in FIELDS.values() for support in fields.values())]:
        assert support.state == "supported" or support.how or support.refusal
        assert not support.values or support.refusal


def test_the_page_has_a_table_of_each_section() -> None:
    assert set(SECTIONS) == set(FIELDS)
    assert [line for line in tables().splitlines() if line.startswith("### ")] == [
        *(f"### {title}" for title in SECTIONS.values()),
        "### Files",
    ]

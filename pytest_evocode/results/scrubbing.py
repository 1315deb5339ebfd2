"""Taking the host's secrets out of records before anybody sees them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel

from pytest_evocode.secrets import Scrubber

# They come from the task's author and the command line, and name directories and tests.
_NAMES = frozenset({"task", "agent", "round", "declared_rounds", "run"})

T = TypeVar("T")


def scrubbed(record: T, scrubber: Scrubber) -> T:
    """A record, or whatever JSON has a form for, without secrets in any text; the same object where there are none.

    Names that others look a record up by stay, and so do words of a fixed vocabulary such as outcomes.
    """
    return _scrubbed(record, scrubber.for_many())


def _scrubbed(record: T, clean: Callable[[str], str]) -> T:
    new: Any = record
    if isinstance(record, str):
        new = clean(record)
    elif isinstance(record, BaseModel):
        changes = {
            name: changed
            for name, value in record
            if name not in _fixed(type(record)) and (changed := _scrubbed(value, clean)) is not value
        }
        new = record.model_copy(update=changes) if changes else record
    elif isinstance(record, dict):
        items = tuple(record.items())
        new = record if (cleaned := _scrubbed(items, clean)) is items else dict(cleaned)
    elif isinstance(record, tuple | list):
        parts = [_scrubbed(part, clean) for part in record]
        new = record if all(map(operator.is_, record, parts)) else type(record)(parts)
    return new  # type: ignore[no-any-return]


@functools.cache
def _fixed(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(
        name
        for name, field in model.model_fields.items()
        if (name in _NAMES and field.annotation in (str, tuple[str, ...]))
        or any(get_origin(each) is Literal for each in (field.annotation, *get_args(field.annotation)))
    )

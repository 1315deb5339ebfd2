"""Removal of the host's secrets from records and files before anybody sees them."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel

from pytest_evocode.secrets import Scrubber
from pytest_evocode.tasks.atomic_write import replacing

# These come from the task's author and the command line, and are the names of directories and tests.
_NAMES = frozenset({"task", "agent", "round", "declared_rounds", "run"})

_CHUNK = 2**20  # bytes that are read at a time

T = TypeVar("T")


def scrubbed(record: T, scrubber: Scrubber) -> T:
    """Return a record, or any value that JSON can hold, without secrets in its texts.

    It is the same object where there are none. Names by which others look a record up stay as they are, and so do words
    of a fixed vocabulary such as outcomes.
    """
    return mapped(record, scrubber.for_many())


def mapped(record: T, clean: Callable[[str], str]) -> T:
    """Return a record, or any value that JSON can hold, with other texts; the same object where none is another."""
    new: Any = record
    if isinstance(record, str):
        new = clean(record)
    elif isinstance(record, BaseModel):
        changes = {
            name: changed
            for name, value in record
            if name not in _fixed(type(record)) and (changed := mapped(value, clean)) is not value
        }
        new = record.model_copy(update=changes) if changes else record
    elif isinstance(record, dict):
        items = tuple(record.items())
        new = record if (cleaned := mapped(items, clean)) is items else dict(cleaned)
    elif isinstance(record, tuple | list):
        parts = [mapped(part, clean) for part in record]
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


def scrub_file(path: Path, scrubber: Scrubber) -> bool:
    """Rewrite a file that holds secrets, of any size, and keep its mode; return whether it had any."""
    if not scrubber.finds(_read_chunks(path)):
        return False
    with replacing(path, mode=path.stat().st_mode & 0o7777) as file:
        file.writelines(scrubber.chunks(_read_chunks(path)))
    return True


def _read_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def scrub_tree(directory: Path, scrubber: Scrubber) -> None:
    """Remove secrets from all files below a directory, and from the names there; the directory need not exist."""
    clean = scrubber.for_many()
    for above, directories, files in os.walk(directory, topdown=False):
        for name in files:
            scrub_file(Path(above, name), scrubber)
        for name in (*files, *directories):
            shown = clean(name).replace("/", "_")
            if shown != name:
                os.rename(Path(above, name), _free_place(Path(above, shown)))


def _free_place(path: Path) -> Path:
    """Return the path or, where something is there, the first free one that ends in ``.2``, ``.3`` and so on."""
    number, free = 1, path
    while os.path.lexists(free):
        number += 1
        free = path.with_name(f"{path.name}.{number}")
    return free

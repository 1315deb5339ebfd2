"""Messages about what is wrong with a task: a line per problem, with its place and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pydantic import AliasChoices, BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.config_text import Keys, find_line
from pytest_evocode.tasks.fields import UNREAD
from pytest_evocode.tasks.model import TaskConfig

WANTED = {
    "string_type": "text in quotes",
    "float_type": "a number",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "tuple_type": "an array",
    "finite_number": "a finite number",
    "string_too_short": "text that is not empty",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "literal_error": "{expected}",
    "wanted": "{what}",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong; ``keys`` lead to it in task.toml, and are empty for the task as a whole."""

    message: str
    keys: Keys = ()
    unsupported: bool = False
    """Whether Harbor knows the key and this package does not act on it; the message starts with "not supported yet"."""
    for_good: bool = False
    """Whether what is not supported never will be; the message starts with "not supported"."""
    path: Path | None = None
    """The file at fault, where that is not task.toml."""
    line: int | None = None
    """The line there."""
    unread: Keys | None = None
    """The keys of the part of task.toml that a task can be loaded without; None where it cannot be loaded."""


def placed(problems: Sequence[Problem], path: Path, text: str, data: Mapping[str, Any]) -> list[TaskError]:
    """Return an error for each problem, with its file and line, in the order of the lines.

    Args:
        problems: What is wrong.
        path: The task.toml.
        text: Its text.
        data: Its parsed contents.
    """
    errors = []
    for problem in problems:
        line = find_line(text, problem.keys) if problem.keys else problem.line
        key = dotted(problem.keys, data)
        parts = ["not supported" if problem.for_good else "not supported yet"] if problem.unsupported else []
        message = ": ".join([*parts, *([key] if key else []), problem.message])
        errors.append(TaskError(message, problem.path or path, line))
    return sorted(errors, key=lambda error: error.line or 0)


def task_error(problems: Sequence[Problem], path: Path, text: str, data: Mapping[str, Any]) -> TaskError:
    """Return one error for all of at least one problem; the arguments are those of :func:`placed`."""
    first, *others = placed(problems, path, text, data)
    return TaskError("\n".join([first.message, *map(str, others)]), first.path, first.line)


def dotted(keys: Keys, data: Mapping[str, Any]) -> str:
    """Return ``keys`` as people write them, with steps by name: ``steps[round-2].agent.user``."""
    shown = ""
    value: Any = data
    for key in keys:
        value = _child(value, key)
        if isinstance(key, int):
            name = value.get("name") if isinstance(value, dict) and shown == "steps" else None
            shown += f"[{name}]" if isinstance(name, str) and name else f"[#{key + 1}]"
        else:
            word = key if key.replace("-", "").replace("_", "").isalnum() else json.dumps(key, ensure_ascii=False)
            shown += f".{word}" if shown else word
    return shown


def explain(error: ValidationError) -> list[Problem]:
    """Return the problems that pydantic found, in words for the author of a task."""
    return [_problem(details) for details in error.errors(include_url=False)]


def _problem(details: ErrorDetails) -> Problem:
    keys: Keys = tuple(key for key in details["loc"] if key != "[key]")
    kind, context = details["type"], details.get("ctx", {})
    if kind == "extra_forbidden":
        return Problem(_unknown_key(keys, details["input"]), keys, unread=keys)
    if kind == "rule" and context["key"]:
        keys = (*keys, context["key"])
    return Problem(_wrong_value(details, keys), keys, unread=_unread_part(keys))


def _wrong_value(details: ErrorDetails, keys: Keys) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind == "missing":
        return "is missing; add it"
    if kind == "rule":
        return str(context["message"])
    if kind == "string_pattern_mismatch":
        wrong = "a variable's name cannot be empty, nor contain '=' or NUL"
        return wrong if details["loc"][-1] == "[key]" else "cannot contain NUL"
    wanted = WANTED.get(kind)
    if wanted is None:
        return details["msg"]
    wanted = wanted.format(**context).replace("'", '"') if kind == "literal_error" else wanted.format(**context)
    if kind == "float_type" and str(keys[-1]).endswith("_sec"):
        wanted = "a number of seconds"
    return f"must be {wanted}, not {_describe(details['input'])}"


_CLOSE = 0.76
"""How alike two keys are of which one may be meant by the other: "timeout" and "timeout_sec", not "tags" and "task"."""


def _unknown_key(keys: Keys, value: object) -> str:
    key = str(keys[-1])
    *_, (model, _) = _fields_at(keys)
    if key == "version" and len(keys) == 1:
        return "is the old name of schema_version, which is given too; remove version"
    known = sorted(model.model_fields)
    near = get_close_matches(key, known, n=1, cutoff=_CLOSE)
    if near and _takes(model.model_fields[near[0]], value):
        return f'unknown key; did you mean "{near[0]}"?'
    return f"unknown key; known here: {', '.join(known)}"


def _takes(field: FieldInfo, value: object) -> bool:
    """Tell whether a field takes values of that kind, be they right or wrong."""
    assert field.annotation is not None
    try:
        TypeAdapter(field.annotation).validate_python(value)
    except ValidationError as error:
        return not any(each["loc"] == () and each["type"].endswith("_type") for each in error.errors())
    return True


def _unread_part(keys: Keys) -> Keys | None:
    """Return the keys of the smallest part around a value that nothing here reads; None where it is read."""
    lengths = [length for length, (_, field) in enumerate(_fields_at(keys), 1) if field and UNREAD in field.metadata]
    return keys[: lengths[-1]] if lengths else None


def _fields_at(keys: Keys) -> Iterator[tuple[type[BaseModel], FieldInfo | None]]:
    """Yield for each key the table that it stands in and its field, None for one that is an index or names an entry."""
    model: type[BaseModel] = TaskConfig
    for key in keys:
        field = _fields(model).get(key) if isinstance(key, str) else None
        yield model, field
        if field is not None:
            model = _model_in(field.annotation) or BaseModel


@cache
def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a table by all their names."""
    found = dict(model.model_fields)
    for field in model.model_fields.values():
        if isinstance(field.validation_alias, AliasChoices):
            found |= {str(name): field for name in field.validation_alias.choices}
    return found


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for inner in get_args(annotation) if (model := _model_in(inner)) is not None), None)


def _child(value: Any, key: str | int) -> Any:
    if isinstance(key, int):
        return value[key] if isinstance(value, list) and key < len(value) else None
    return value.get(key) if isinstance(value, dict) else None


def _describe(value: object) -> str:
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return "an array"
    shown = json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."

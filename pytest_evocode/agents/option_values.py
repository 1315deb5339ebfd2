"""What is wrong with an option's value, in one line, with a value that would do."""

from __future__ import annotations

import json
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

_UNIONS = (Union, UnionType)


def what_is_wrong(error: ErrorDetails, options: type[BaseModel], name: str) -> str:
    """Return what pydantic found of the value of the option ``name``, and a value that would do.

    >>> class Options(BaseModel):
    ...     retries: int = 8
    >>> try:
    ...     Options.model_validate({"retries": "many"})
    ... except ValueError as error:
    ...     what_is_wrong(error.errors()[0], Options, "retries")
    'Input should be a valid integer, unable to parse string as an integer; write it such as retries=8'
    """
    words = error["msg"].removeprefix("Value error, ")
    if error["type"] == "string_pattern_mismatch":
        words = "it is not in the right form"
    elif error["type"] == "dict_type":
        words = "it has to be a table, in JSON on the command line"
    example = example_of(options, name)
    return f"{words}; write it such as {example}" if example else words


def example_of(options: type[BaseModel], name: str) -> str:
    """Return an option with a value that it takes, as the command line has it; empty where there is no such option.

    >>> class Options(BaseModel):
    ...     effort: Literal["low", "high"] | None = None
    ...     env: dict[str, str] = {}
    >>> example_of(Options, "effort"), example_of(Options, "env")
    ('effort=low', 'env={"NAME": "value"}')
    """
    field = next((each for key, each in options.model_fields.items() if name in (key, each.alias)), None)
    if field is None:
        return ""
    if field.examples:
        value = field.examples[0]
    elif isinstance(field.default, bool | int | float | str) and not isinstance(field.default, bool):
        value = field.default
    else:
        value = _of_type(field.annotation)
    shown = value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else json.dumps(value)
    return f"{name}={shown}"


def _of_type(annotation: Any) -> Any:
    """Return a value of a type, as simple as it gets."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated or origin in _UNIONS:
        return _of_type(arguments[0])
    if origin is Literal:
        return arguments[0]
    simple: dict[Any, Any] = {bool: True, int: 1, float: 0.5, Path: "FILE", dict: {"NAME": "value"}, list: ["value"]}
    return simple.get(origin or annotation, "VALUE")

"""The JSON Schema of task.toml, by which editors complete and explain keys and find mistakes.

``python -m pytest_evocode.tasks.schema`` writes ``task.schema.json`` beside this module. What it says of a key is the
text below the field of the model. Draft 7 without references is what editors of TOML understand.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_evocode.tasks import model
from pytest_evocode.tasks.compatibility import FIELDS

SCHEMA_FILE = Path(__file__).with_name("task.schema.json")


def task_schema() -> dict[str, Any]:
    """Return the schema of a task.toml."""
    made = model.TaskConfig.model_json_schema(ref_template="{model}")
    sections = made.pop("$defs") | {"TaskConfig": made}
    for name, key, text in field_texts(model):
        for section in sections:
            if name in _bases(section):
                sections[section]["properties"][key]["description"] = text
    for section_model, fields in FIELDS.items():
        for key, support in fields.items():
            if support.refusal:
                which = support.values.replace("`", "") or "all values"
                sections[section_model.__name__]["properties"][key]["description"] += f" Not supported: {which}."
    schema = _resolved(made, sections)
    schema["properties"]["version"] = schema["properties"]["schema_version"] | {
        "description": "The old name of schema_version.",
        "deprecated": True,
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "task.toml",
        **schema,
        "description": "A task of pytest-evocode: Harbor's multi-step format, and ours in [metadata.evocode].",
    }


def field_texts(module: ModuleType) -> Iterator[tuple[str, str, str]]:
    """Yield the text below each field of the models in a module, with the model's name and the field's."""
    for statement in ast.parse(inspect.getsource(module)).body:
        if isinstance(statement, ast.ClassDef):
            for field, below in zip(statement.body, statement.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
                    yield statement.name, ast.unparse(field.target), " ".join(ast.literal_eval(below.value).split())


def _bases(section: str) -> Iterator[str]:
    """Yield the names of a model and of those that it inherits fields from."""
    owner: type = getattr(model, section)
    yield from (base.__name__ for base in owner.__mro__)


def _resolved(schema: Any, sections: dict[str, Any]) -> Any:
    """Return a part of the schema with references replaced, and without titles and null, which TOML has not."""
    if isinstance(schema, list):
        return [_resolved(each, sections) for each in schema]
    if not isinstance(schema, dict):
        return schema
    whole = dict(schema)
    if "$ref" in whole:
        whole = {**sections[whole.pop("$ref")], **whole}
    if "anyOf" in whole:
        choices = [each for each in whole["anyOf"] if each != {"type": "null"}]
        whole = {key: value for key, value in whole.items() if key != "anyOf"}
        whole = {**_resolved(choices[0], sections), **whole} if len(choices) == 1 else {"anyOf": choices, **whole}
    return {
        key: {name: _resolved(each, sections) for name, each in value.items()}
        if key == "properties"
        else _resolved(value, sections)
        for key, value in whole.items()
        if key != "title" and value is not None
    }


def as_text() -> str:
    """Return what ``task.schema.json`` has to hold."""
    return json.dumps(task_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(as_text(), encoding="utf-8")

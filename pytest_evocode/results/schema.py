"""The JSON Schema of the files in a results directory, for readers in other languages.

``python -m pytest_evocode.results.schema`` writes ``schema.json`` beside this module. What it says of a field is the
text below it in the source.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from pytest_evocode.results import records
from pytest_evocode.results.records import (
    RECORD_VERSION,
    AttemptRecord,
    AttemptState,
    Case,
    ChangesFile,
    RoundFile,
    RunRecord,
    SnapshotFile,
)
from pytest_evocode.tasks.schema import field_texts

SCHEMA_FILE = Path(__file__).with_name("schema.json")
#: The kind of record in each file, by the pattern of its path.
FILES: dict[str, type[BaseModel]] = {
    "*/harbor_jobs/*/*/*/result.json": AttemptRecord,
    "*/harbor_jobs/*/*/*/state.json": AttemptState,
    "*/harbor_jobs/*/*/*/changes/*.json.gz": ChangesFile,
    "*/harbor_jobs/*/*/*/steps/*/round.json": RoundFile,
    "*/harbor_jobs/*/*/*/steps/*/snapshot.json": SnapshotFile,
    "runs/*.json": RunRecord,
}
#: A role of reStructuredText, of whose name readers in other languages want the last part.
_ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")


def record_schema() -> dict[str, Any]:
    """Return the schema of all kinds of records, each in ``$defs``; a document is one of those that are files."""
    kinds: tuple[type[BaseModel], ...] = (*FILES.values(), Case)
    _, schema = models_json_schema(
        [(model, "validation") for model in kinds],
        title=f"Records of pytest-evocode, version {RECORD_VERSION}",
        ref_template="#/$defs/{model}",
    )
    for name, kind in schema["$defs"].items():
        texts = _texts(getattr(records, name))
        for key, field in kind["properties"].items():
            if key in texts:
                field["description"] = texts[key]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "anyOf": [{"$ref": f"#/$defs/{model.__name__}"} for model in FILES.values()],
    }


def _texts(model: type) -> dict[str, str]:
    """Return the text below each field of a record that has one, those included that it inherits."""
    owners = [owner for owner in model.__mro__ if owner.__module__.startswith("pytest_evocode")]
    names = {owner.__name__ for owner in owners}
    found = (each for module in {owner.__module__ for owner in owners} for each in field_texts(sys.modules[module]))
    return {key: _ROLE.sub(r"``\1``", text) for owner, key, text in found if owner in names}


def as_text() -> str:
    """Return what ``schema.json`` has to hold."""
    return json.dumps(record_schema(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(as_text(), encoding="utf-8")

"""The JSON Schema in the package is that of the records."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_evocode.results.schema import FILES, SCHEMA_FILE, as_text
from tests.result_trees import write_attempt, write_session
from tests.results.test_parsing import ATTEMPT_1, ROUND_1, RUN_1

pytestmark = pytest.mark.every_python

SCHEMA: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))


def validate(kind: str, document: object) -> None:
    jsonschema.Draft202012Validator({**SCHEMA, "anyOf": [{"$ref": f"#/$defs/{kind}"}]}).validate(document)


def test_the_schema_is_up_to_date() -> None:
    new: dict[str, Any] = json.loads(as_text())
    for schema in (of_file := copy.deepcopy(SCHEMA), new):
        for name in ("additionalProperties", "description"):  # Older versions of pydantic say these of no dataclass.
            for dataclass in ("Phases", "TaskFacts"):
                schema["$defs"][dataclass].pop(name, None)
    assert of_file == new, "run: python -m pytest_evocode.results.schema"


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_what_is_written_follows_the_schema(tmp_path: Path) -> None:
    write_attempt(tmp_path, outcomes="pfe-", cases=["p", "pfse"])
    write_session(tmp_path, {"ledger": {"gpt": [1, 2]}}, shard=(1, 2))
    checked = []
    for pattern, model in FILES.items():
        for path in tmp_path.glob(pattern):
            validate(model.__name__, json.loads(path.read_text(encoding="utf-8")))
            checked.append(path.name)
    assert sorted(set(checked)) == ["2026-01-02__03-04-05.json", "result.json", "round.json"]


@pytest.mark.parametrize(
    ("kind", "document"), [("AttemptRecord", ATTEMPT_1), ("RoundFile", ROUND_1), ("RunRecord", RUN_1)]
)
def test_records_of_version_1_follow_the_schema(kind: str, document: object) -> None:
    validate(kind, document)


@pytest.mark.parametrize(
    "change", [{"attempt": "one"}, {"mode": "sideways"}, {"surprise": 1}, {"rounds": [{**ROUND_1, "outcome": "maybe"}]}]
)
def test_what_is_no_record_does_not_follow_it(change: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validate("AttemptRecord", {**ATTEMPT_1, **change})

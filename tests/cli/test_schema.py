"""``evocode schema``: what editors are given."""

from __future__ import annotations

from pytest_evocode.tasks.schema import SCHEMA_FILE
from tests.cli.conftest import Evocode


def test_it_prints_the_file_that_the_package_has(evocode: Evocode) -> None:
    printed = evocode("show", "--schema")
    assert printed.out == evocode("schema").out
    assert printed.out == SCHEMA_FILE.read_text(encoding="utf-8")
    assert printed.json["properties"]["steps"]["items"]["required"] == ["name"]

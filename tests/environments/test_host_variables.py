"""Variables of the process are read while pytest sets and removes one of its own."""

from __future__ import annotations

import os
import re
from collections import UserDict
from pathlib import Path

import pytest

import pytest_evocode
from pytest_evocode.environments.host_variables import host_variables

#: What copies all variables, and raises KeyError where one is removed at that moment.
COPIES = re.compile(r"\*\*os\.environ|dict\(os\.environ|os\.environ\.(copy|items|values)|os\.environ \|")


class Changing(UserDict[str, str]):
    """Has a variable that is removed while the first copy is made."""

    def __getitem__(self, name: str) -> str:
        self.data.pop("PYTEST_CURRENT_TEST", None)
        return super().__getitem__(name)


def test_a_variable_that_is_removed_meanwhile_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", Changing({"A": "1", "PYTEST_CURRENT_TEST": "a.py::test", "B": "2"}))
    assert host_variables() == {"A": "1", "B": "2"}


def test_nobody_else_copies_the_variables() -> None:
    sources = Path(pytest_evocode.__file__).parent.rglob("*.py")
    assert [path.name for path in sources if COPIES.search(path.read_text())] == ["host_variables.py"]

"""TOML that is written can be read, and says the same."""

from __future__ import annotations

from datetime import date, datetime, time

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from pytest_evocode.tasks.config_text import toml_text

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=8
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_what_is_written_is_read(data: dict[str, object]) -> None:
    assert tomli.loads(toml_text(data)) == data


@pytest.mark.parametrize("value", [date(2026, 1, 2), time(3, 4, 5), datetime(2026, 1, 2, 3, 4, 5)])
def test_dates_are_dates(value: object) -> None:
    assert tomli.loads(toml_text({"at": value})) == {"at": value}

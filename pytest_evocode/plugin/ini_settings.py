"""Reads settings of pytest's ini file that ``-o`` may replace, and says of a wrong one which of the two it is from."""

from __future__ import annotations

import math

import pytest

from pytest_evocode.plugin.options import nearest
from pytest_evocode.plugin.pytest_private import names_of_settings


def refuse_unknown_settings(config: pytest.Config) -> None:
    """Raise pytest.UsageError for a setting called like ours that there is none of; pytest only warns of it."""
    unknown, known = names_of_settings(config)
    for name in sorted(unknown):
        if name.startswith(prefix := "evocode_"):
            ours = [each.removeprefix(prefix) for each in known if each.startswith(prefix)]
            where = "-o" if _is_overridden(config, name) else config.inipath
            raise pytest.UsageError(
                f"{where}: unknown setting {name}{nearest(prefix, name.removeprefix(prefix), ours)}"
            )


def setting_name(config: pytest.Config, name: str) -> str:
    """Return a setting's name for a message, with where its value is from: pytest's ini file, or ``-o``."""
    return f"-o {name}" if _is_overridden(config, name) else f"{config.inipath}: {name}"


def _is_overridden(config: pytest.Config, name: str) -> bool:
    given: list[str] = config.getoption("override_ini") or []
    return any(each.partition("=")[0] == name for each in given)


def read_amount(config: pytest.Config, name: str, unit: str) -> float:
    """Return a setting that is an amount of ``unit``; raises pytest.UsageError for what is none."""
    text: str = config.getini(name).strip()
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise wrong_setting(config, name, text, f"{unit}, 0 or more")
    return amount


def read_count(config: pytest.Config, name: str) -> int | None:
    """Return a setting that is a number of things, None where it is empty; raises pytest.UsageError for others."""
    text: str = config.getini(name).strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise wrong_setting(config, name, text, "a whole number, 1 or more")
    return int(text)


def wrong_setting(config: pytest.Config, name: str, text: str, wanted: str) -> pytest.UsageError:
    """Return the error about the value of a setting that has to be what is ``wanted``."""
    equals = "=" if _is_overridden(config, name) else " = "
    return pytest.UsageError(f"{setting_name(config, name)}{equals}{text}: it has to be {wanted}")

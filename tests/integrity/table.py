"""The table of a session's attacks: what each gained, by the environment and by where the suite runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast, get_args

import pytest

from tests.integrity.places import Attack, Mode, Place

MODES: tuple[Mode, ...] = get_args(Mode)
_PROPERTY = "attack"
# What an agent changes of its system is tried in a file for each kind of suite.
_SYSTEM = ("separate", "clean")
_SHOWN = {"passed": "nothing", "xfailed": "not promised", "failed": "GAINED", "error": "GAINED"}


def note(item: pytest.Item) -> None:
    """Have the item's reports say which attack it plays, and where."""
    callspec = getattr(item, "callspec", None)
    attack, place = (callspec.params.get(name) for name in ("attack", "place")) if callspec else (None, None)
    if isinstance(attack, Attack) and isinstance(place, Place):
        kind = item.path.stem.removeprefix("test_").replace("_", "-")
        name = f"{'system' if kind in _SYSTEM else kind}: {attack.name}"
        played = {"attack": name, "table": place.table, "mode": place.mode, "not_promised": [*attack.not_promised]}
        item.user_properties.append((_PROPERTY, played))


def lines(stats: dict[str, list[object]]) -> Iterator[str]:
    """Yield a table for each environment, from a terminal reporter's reports by their outcome."""
    tables: dict[str, dict[str, dict[str, str]]] = {}
    for outcome, shown in _SHOWN.items():
        for played in _played(stats.get(outcome, ())):
            cells = tables.setdefault(played["table"], {}).setdefault(played["attack"], {})
            cells |= dict.fromkeys(played["not_promised"], "not promised") | cells | {played["mode"]: shown}
    for title, rows in sorted(tables.items()):
        width = max(map(len, (title, *rows)))
        yield f"{title:{width}}  " + "  ".join(f"{mode:12}" for mode in MODES)
        for attack, cells in sorted(rows.items()):
            yield f"{attack:{width}}  " + "  ".join(f"{cells.get(mode, '-'):12}" for mode in MODES).rstrip()
        yield ""


def _played(reports: Iterable[object]) -> Iterator[dict[str, Any]]:
    for report in reports:
        if isinstance(report, pytest.TestReport):
            yield from (cast("dict[str, Any]", value) for name, value in report.user_properties if name == _PROPERTY)

"""All private parts of pytest that a native suite's session uses; seen to work with pytest 8.4 to 9.2.

The toolbox brings the host's pytest, so the versions to watch are those that the package may be installed with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import _pytest.assertion.rewrite
import _pytest.assertion.util
import _pytest.pathlib
import pytest

from pytest_evocode.verifier.in_container.memory import OWN, TESTS, Memory, module_name

_OURS = "/pytest_evocode/"
_NAME = re.compile(r"\w+(?=,|\n|$)")


def import_tests_from(modules: Memory) -> None:
    """Have pytest import tests from memory, by names that are ours; no option or hook says where modules come from."""
    _pytest.pathlib.resolve_pkg_root_and_module_name = lambda path, **_: (Path(TESTS), module_name(str(path)))
    _pytest.assertion.rewrite.AssertionRewritingHook._find_spec = modules.find_source  # type: ignore[assignment]


def let_others_pass(config: pytest.Config) -> None:
    """Let other users pass through to a ``tmp_path``; pytest makes its base private and has no option for that."""
    config._tmp_path_factory.getbasetemp().chmod(0o711)  # type: ignore[attr-defined]


def explain_comparisons(explain: Callable[[str, object, object], list[str] | None]) -> None:
    """Have ``explain`` say why a comparison failed, and pytest itself where that returns None.

    A hook cannot: pytest calls its own, which may take hours, beside all others. That a longer explanation is to be had
    by ``-vv`` is left out, because nobody could give that option.
    """
    by_pytest = _pytest.assertion.util.assertrepr_compare

    def explained(op: str, left: object, right: object, **how: Any) -> Iterable[str]:
        lines = explain(op, left, right)
        found = by_pytest(op=op, left=left, right=right, **how) if lines is None else lines
        shown = (line.removesuffix(", use -vv to show") for line in found or ())
        # Before pytest 9.2 it is a list, or None; from then on all lines may be too many to be made.
        return shown if isinstance(found, Iterator) else [*shown]

    _pytest.assertion.util.assertrepr_compare = explained  # type: ignore[assignment]


def asked_for(error: pytest.FixtureLookupError) -> tuple[str, str, list[str]]:
    """Return the test that asks for a fixture in vain, the fixture that does so for it, and those that suites have.

    A request shows neither its test, where the fixture's scope is wider, nor which fixtures there are.
    """
    request = error.request
    through = error.fixturestack[-1].argname if error.fixturestack else ""
    _, _, available = error.formatrepr().errorstring.partition("available fixtures: ")
    return request._pyfuncitem.name, through, [name for name in _NAME.findall(available) if _is_own(request, name)]


def _is_own(request: pytest.FixtureRequest, name: str) -> bool:
    """Return whether a fixture is the suite's, or one that only native suites have."""
    definitions = request._fixturemanager.getfixturedefs(name, request._pyfuncitem) or ()
    paths = (each.func.__code__.co_filename for each in definitions if hasattr(each.func, "__code__"))
    return any(path.startswith(f"{TESTS}/") and (_OURS in path or not path.startswith(f"{OWN}/")) for path in paths)


def shorten_sections(item: pytest.Item, shortened: Callable[[str], str]) -> None:
    """Shorten what an item has printed and logged, which later reports of the same item are made of."""
    item._report_sections[:] = [(when, name, shortened(text)) for when, name, text in item._report_sections]

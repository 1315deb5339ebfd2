"""Sessions that have nothing to do with tasks: the package and what comes with it change nothing in them."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.every_python]

PYPROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
OWN = "pytest_evocode.plugin"
TESTS = """
import warnings
import pytest

def test_passes(tmp_path):
    warnings.warn("a warning")

def test_fails(capsys):
    print("shown")
    assert [1, 2] == [1, 3]

@pytest.mark.skip(reason="not here")
def test_skipped(): ...

class TestMore:
    @pytest.fixture(params=[1, 2])
    def docker_ip(self, request):
        return request.param

    def test_own(self, docker_ip):
        assert docker_ip in (1, 2)

@pytest.fixture
def broken():
    raise ValueError

def test_error(broken): ...
"""


def brought_plugins() -> dict[str, str]:
    """The plugins of the package's dependencies, and of theirs, by the distributions that have them."""
    left, known = [re.match(r"[\w.-]+", each) for each in PYPROJECT["project"]["dependencies"]], {"pytest-evocode": OWN}
    seen: set[str] = set()
    while left:
        name = (left.pop() or [""])[0]
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # For another Python or system.
            continue
        left += [re.match(r"[\w.-]+", each) for each in distribution.requires or () if "extra ==" not in each]
        plugins = [entry.value for entry in distribution.entry_points if entry.group == "pytest11"]
        known |= {name: " ".join(plugins)} if plugins else {}
    return known


def test_no_dependency_is_a_plugin_but_those_that_are_used() -> None:
    # platformdirs has one since 4.12: a fixture that does nothing unless it is asked for.
    assert brought_plugins().keys() - {"platformdirs"} == {
        "pytest-evocode",
        "pytest-xdist",  # Attempts side by side.
        "pytest-timeout",  # Limits of the cases of native suites, which get the host's.
        "pytest-json-report",  # Their reports; and --json-report has the scores.
        "pytest-metadata",  # What that one needs.
    }


@pytest.mark.parametrize(
    "arguments",
    [("-v",), ("-q", "-ra"), ("--collect-only", "-q"), ("-W", "error", "--strict-markers", "-x"), ("-k", "own", "-vv")],
    ids=" ".join,
)
def test_a_session_without_tasks_is_as_without_the_package(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(test_plain=TESTS)
    pytester.makeini("[pytest]\nxfail_strict = true\n")
    plugins = [option for each in brought_plugins().values() for name in each.split() for option in ("-p", name)]
    usual = pytester.runpytest_subprocess(*arguments)
    ours = pytester.runpytest_subprocess(*plugins, *arguments)
    assert ours.ret == usual.ret
    assert shown(ours) == shown(usual)
    assert ours.parseoutcomes() == usual.parseoutcomes()


def shown(session: pytest.RunResult) -> list[str]:
    """What a session printed, but for times, places, and the plugins, which pytest-metadata lists as well."""
    lines = (
        re.sub(r"\d+\.\d+s|runpytest-\d+|0x[0-9a-f]+", "", line).strip("= ")
        for line in [*session.outlines, *session.errlines]
    )
    return [line for line in lines if not line.startswith(("metadata: ", "plugins: "))]

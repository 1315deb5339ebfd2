"""Fixtures and plugins of the whole test suite."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_evocode.environments import Engine

pytest_plugins = ["pytester"]
# Modules that import what is not there in most environments have no doctests to look for.
collect_ignore = [
    f"pytest_evocode/bridges/{name}.py" for name in ("gymnasium", "openenv", "verifiers") if find_spec(name) is None
]
_TESTS = Path(__file__).with_name("tests")
# Tests of benchmarks import these; the package itself is the installed one where there is one.
sys.path.append(str(Path(__file__).parent))


_parsers: list[pytest.Parser] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what chooses among the tests; see tests/by_day.py."""
    _parsers.append(parser)
    parser.addoption("--night", action="store_true", help="Run all tests, those that are left to the night, too.")
    parser.addoption("--changed", action="store_true", help="Run the tests of what changed since the last commit.")


@pytest.fixture
def option_parser() -> pytest.Parser:
    """The parser of this session's command line, which knows the options of all plugins."""
    return _parsers[0]


def pytest_configure(config: pytest.Config) -> None:
    """Let the programs that tests start be as they are when this session is started at a terminal."""
    # What nohup or a shell starts in the background ignores these, and all its children would.
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    # Many images set this, and hundreds of sessions would compile all of pytest each.
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", "") and (cache := getattr(config, "cache", None)):
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(cache.mkdir("bytecode")))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Give a run of all tests a worker for each processor and one more, as tests often wait; named files none."""
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return 0
    return min(len(os.sched_getaffinity(0)), 8) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests in the package alone; in hundreds of files of tests that takes seconds."""
    found = yield
    return [each for each in found if type(each) is pytest.Module] if file_path.is_relative_to(_TESTS) else found


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of tests without the mark that alone is asked for; that is quicker by most of the files."""
    if config.option.markexpr == "every_python" and collection_path.match("test_*.py"):
        return "every_python" not in collection_path.read_text(encoding="utf-8") or None
    return None


@pytest.fixture(scope="session")
def why_no_docker() -> str | None:
    """Why no Docker engine can be had, None where one answers."""
    from pytest_evocode.environments.docker.engine import connect
    from pytest_evocode.errors import EnvironmentUnavailable

    try:
        connect().close()
    except EnvironmentUnavailable as error:
        return str(error)
    return None


@pytest.fixture(autouse=True)
def _skip_without_docker(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("docker") and (why := request.getfixturevalue("why_no_docker")):
        pytest.skip(why)


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A sandbox engine with a cache of its own; skips where none can be had."""
    from pytest_evocode.environments import choose_engine
    from pytest_evocode.errors import EnvironmentUnavailable

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVOCODE_CACHE", str(tmp_path_factory.mktemp("cache")))
        try:
            engine, _ = choose_engine("sandbox")
        except EnvironmentUnavailable as error:
            pytest.skip(str(error))
        yield engine
        engine.close()

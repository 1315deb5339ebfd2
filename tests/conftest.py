"""Plugins of all tests: what is left to the night, how long tests take, and workers that share what is to compile."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker  # noqa: F401 - before a pytester session imports a part of it and forgets that again
import pytest

from tests.by_day import ByDay
from tests.durations import Durations


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugins."""
    config.pluginmanager.register(ByDay(config), "by-day")
    if worker := getattr(config, "workerinput", None):
        config.pluginmanager.register(ElsewhereFirst(config, worker["workerid"], worker["workercount"]))
    else:
        config.pluginmanager.register(Durations(config), "test-durations")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Have reports say why a test is slow."""
    for mark in item.iter_markers("slow"):
        item.user_properties += [("slow", reason) for reason in mark.args]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of the model of rounds where its extra is not installed, as in all environments but one."""
    if importlib.util.find_spec("numpyro") is None:
        left_out = [item for item in items if item.get_closest_marker("stats")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session", autouse=True)
def _scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what tests make in ``TMPDIR`` in one directory, which the next session removes where this one is killed."""
    from pytest_evocode.environments.scratch import remove_all_dead, scratch_directory

    tmp_path_factory.getbasetemp()  # This stays, to be looked into when a test has failed.
    remove_all_dead()
    with scratch_directory("tests") as directory, pytest.MonkeyPatch.context() as patch:
        directory.chmod(0o711)  # Some tests become another user.
        patch.setenv("TMPDIR", str(directory))
        patch.setattr(tempfile, "tempdir", None)
        yield


class ElsewhereFirst:
    """Lets each worker begin to collect at another folder.

    Workers start together. In a new clone they would all compile all files at the same time, which takes each of them
    12 seconds of a processor.
    """

    def __init__(self, config: pytest.Config, worker: str, workers: int) -> None:
        paths = [config.invocation_params.dir / argument for argument in config.args]
        self._order: list[Path] = []
        if all(path.is_dir() for path in paths):
            self._order = [below for path in paths for below in sorted(path.iterdir()) if _has_tests(below)]
            begin = len(self._order) * int(worker.removeprefix("gw")) // workers
            config.args = [str(path) for path in (*self._order[begin:], *self._order[:begin])]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Have all workers agree on the order, and leave what asks models to one of them, or two.

        The SDKs of models take a worker that imports them eight seconds in a new clone.
        """
        places = {path: number for number, path in enumerate(self._order)}
        items.sort(
            key=lambda item: (
                _asks_models(item),
                min(places.get(path, len(places)) for path in (item.path, *item.path.parents)),
            )
        )


def _asks_models(item: pytest.Item) -> bool:
    module = getattr(item, "module", None)
    return hasattr(module, "ModelServer") or hasattr(module, "ProviderServer")


def _has_tests(path: Path) -> bool:
    return path.suffix == ".py" if path.is_file() else path.name != "__pycache__"

"""Builds the images of a session's later attempts while the first ones run."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.plugin.attempts import RoundItem
from pytest_evocode.plugin.session import EvocodeSession
from pytest_evocode.tasks import Task

if TYPE_CHECKING:
    from pytest_evocode.trial.warming import ImagesAhead, Wanted

AHEAD = "evocode-images-ahead"
"""The plugin's name, by which xdist's controller finds it."""


class ImagesAheadPlugin:
    """Hooks that begin builds with the first attempt, and end them with the last.

    In the process that starts attempts or hands them out to workers; these find what it has built.
    """

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._images: ImagesAhead | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Begin, where rounds are run in this process."""
        if self._images is None and isinstance(item, RoundItem):
            rounds = (each for each in item.session.items if isinstance(each, RoundItem))
            attempts = dict.fromkeys(each.parent for each in rounds)
            self.begin((each.agent.id, each.task.name, lambda each=each: each.task) for each in attempts)  # type: ignore[misc]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """End what is not needed any more, before an attempt that was broken off is cleaned up after."""
        try:
            return (yield)
        finally:
            if self._images is not None:
                self._images.close()

    def begin(self, attempts: Iterable[tuple[str, str, Callable[[], Task]]]) -> None:
        """Begin with the images of attempts, in this order.

        Args:
            attempts: The id of the agent, the name of the task, and what loads it.
        """
        installed = self._session.roster.installations
        wanted: dict[tuple[str, str], Callable[[], Wanted]] = {}
        for agent, task, load in attempts:
            on_top = installed.get(agent)
            wanted.setdefault((task, on_top.script if on_top else ""), lambda load=load, top=on_top: (load(), top))  # type: ignore[misc]
        if len(wanted) > 1:  # A single image is built by the attempt that needs it.
            from pytest_evocode.trial.warming import ImagesAhead

            self._images = ImagesAhead(self._session.engine)
            self._images.begin(wanted.values())

"""Episodes for code that does not await."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from pytest_evocode.environments import ExecResult
from pytest_evocode.play import Episode, RoundObservation, RoundResult

T = TypeVar("T")


class BlockingEpisode:
    """An episode each of whose methods returns when it is done; threads may each have one.

    Arguments and errors are those of :class:`~pytest_evocode.play.Episode`.
    """

    def __init__(self, episode: Episode) -> None:
        """Enter the episode's context, which lasts until :meth:`close`."""
        self._episode = episode
        _wait(episode.__aenter__())

    def reset(self) -> RoundObservation:
        """Begin at the first round."""
        return _wait(self._episode.reset())

    def exec(self, command: str, *, timeout: float | None = None) -> ExecResult:
        """Run a command as the task's agent."""
        return _wait(self._episode.exec(command, timeout=timeout))

    def finish_round(self) -> RoundResult:
        """End the turn and have the round verified."""
        return _wait(self._episode.finish_round())

    @property
    def rewards(self) -> dict[str, float] | None:
        """The rewards of the whole episode by key, as it is so far."""
        return self._episode.rewards

    @property
    def reward(self) -> float | None:
        """The reward of the whole episode, as it is so far."""
        return self._episode.reward

    def close(self) -> None:
        """End the episode."""
        _wait(self._episode.close())


def _wait(doing: Coroutine[Any, Any, T]) -> T:
    future = asyncio.run_coroutine_threadsafe(doing, _loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the event loop that all blocking episodes of this process run in."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="evocode-episodes", daemon=True).start()
    return loop

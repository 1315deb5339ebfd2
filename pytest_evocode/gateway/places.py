"""PlaceQueue for requests, and the pace of an account, without a thread for each request that waits."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator

from pytest_evocode.llm.connection_limits import RequestPlace, limits_of_process
from pytest_evocode.llm.waiting import WaitCause, Waiting


class PlaceQueue:
    """What :func:`~pytest_evocode.llm.connection_limits.place_for_request` is to threads, for the tasks of one loop."""

    def __init__(self) -> None:
        self._turns: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @contextlib.asynccontextmanager
    async def hold(self, account: str, most: int | None, waiting: Waiting) -> AsyncIterator[RequestPlace]:
        """Wait until an account may be sent one more request, and hold its place in the block.

        Raises:
            ModelFault: The turn has waited for as long as it may.
        """
        limits = limits_of_process()
        most = limits.most if most is None else most
        place = limits.take(account, most)
        if place is None:
            with waiting.pausing(limits.look, "connections"):
                async with self._turns[account]:  # Only the first in the row looks.
                    while (place := limits.take(account, most)) is None:
                        await asyncio.sleep(limits.look)
        try:
            seconds, reserved_at = limits.reserve(account)
            while seconds > 0:
                await pause(waiting, seconds, "rate limit")
                if limits.confirm(account, reserved_at):
                    break
                seconds, reserved_at = limits.reserve(account)
            yield RequestPlace(limits, account, reserved_at)
        finally:
            limits.give_back(account, place)


async def pause(waiting: Waiting, seconds: float, cause: WaitCause) -> None:
    """Wait for a cause that the turn is not to blame for; raises ModelFault where it may not wait as long."""
    with waiting.pausing(seconds, cause):
        await asyncio.sleep(seconds)

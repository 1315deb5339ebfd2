"""Places for requests, and the pace of an account, without a thread for each request that waits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial

from pytest_evocode.llm.connection_limits import RequestPlace, async_place_for_request, limits_of_process
from pytest_evocode.llm.waiting import WaitCause, Waiting


class PlaceQueue:
    """What :func:`~pytest_evocode.llm.connection_limits.place_for_request` is to threads, for the tasks of one loop."""

    def __init__(self) -> None:
        self._own: dict[tuple[str, int], asyncio.Semaphore] = {}
        """As many as may be under way, by account: what other processes leave of them is looked for again and again."""

    @contextlib.asynccontextmanager
    async def hold(self, account: str, most: int | None, waiting: Waiting) -> AsyncIterator[RequestPlace]:
        """Wait until an account may be sent one more request, and hold its place in the block.

        Raises:
            ModelFault: The turn has waited for as long as it may.
        """
        limits = limits_of_process()
        most = limits.most if most is None else most
        own = self._own.setdefault((account, most), asyncio.Semaphore(most))
        with waiting.pausing(0.0, "connections") if own.locked() else contextlib.nullcontext():
            await own.acquire()
        try:
            async with async_place_for_request(account, most, partial(pause, waiting), limits) as place:
                yield place
        finally:
            own.release()


async def pause(waiting: Waiting, seconds: float, cause: WaitCause) -> None:
    """Wait for a cause that the turn is not to blame for; raises ModelFault where it may not wait as long."""
    with waiting.pausing(seconds, cause):
        await asyncio.sleep(seconds)

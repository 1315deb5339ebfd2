"""What a session does only in xdist's workers: pause between attempts, and stop when the controller says so."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time

import pytest

from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.plugin.attempts import Later, later
from pytest_evocode.plugin.session import EvocodeSession
from pytest_evocode.results.selection import selected_as_json
from pytest_evocode.tasks.atomic_write import write_atomically

STOP_SIGN = "stop"
"""The file, among those that the session's processes share, whose presence tells workers to stop."""
SELECTED = "selected.json"
"""The file there that workers write the attempts to which they have collected, those of other shards too."""
_INTERVAL = 0.1  # seconds

logger = logging.getLogger(__name__)


class WorkerPlugin:
    """Hooks of a worker, which pause between attempts and stop when the controller says so."""

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._stop_sign = session.shared / STOP_SIGN

    def pytest_collection_finish(self) -> None:
        """Write for the controller, which collects nothing itself, what was selected; all workers write the same."""
        with contextlib.suppress(OSError):  # The controller has gone.
            write_atomically(self._session.shared / SELECTED, selected_as_json(self._session.selected))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Append the pause, now that tests were counted and reported, and watch for the sign to stop.

        See :class:`~pytest_evocode.plugin.xdist.scheduler.AttemptScheduling` for the reason.
        """
        session.items.append(later(session))
        threading.Thread(target=self._watch, args=(session,), name="evocode-stop", daemon=True).start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Run nothing, not even other plugins' hooks, in a pause."""
        return True if isinstance(item, Later) else None

    def _watch(self, session: pytest.Session) -> None:
        """End the attempt under way, and every later one, once there is the sign to stop or no controller."""
        controller = os.getppid()
        while True:
            time.sleep(_INTERVAL)
            if self._stop_sign.exists() or os.getppid() != controller:
                if not session.shouldstop:
                    logger.info("stopping, at a sign of the controller or for want of one")
                session.shouldstop = session.shouldstop or "stopped by the session"
                with contextlib.suppress(EnvironmentFault):  # Its teardown closes it as well, and says so.
                    self._session.stop_running()

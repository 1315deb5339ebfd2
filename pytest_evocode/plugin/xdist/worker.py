"""A session in one of xdist's workers: what it does that a session in a process of its own does not."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from pathlib import Path

import pytest

from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.plugin.session import EvocodeSession
from pytest_evocode.tasks.atomic_write import write_atomically

#: By this name the controller tells workers which file will appear when they have to stop.
STOP_SIGN = "evocode_stop_sign"
#: By this name it tells them where to write which attempts they have collected, those of other shards too.
SELECTED = "evocode_selected"
_INTERVAL = 0.1  # seconds


class Pause(pytest.Item):
    """What follows an attempt until it is known what follows it: see :mod:`pytest_evocode.plugin.xdist.scheduler`."""

    def runtest(self) -> None:
        """Nothing; no part of pytest but the worker's loop ever sees it."""

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Nowhere."""
        return self.path, None, self.name


class WorkerPlugin:
    """Registered in workers only."""

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._stop_sign = Path(session.config.workerinput[STOP_SIGN])  # type: ignore[attr-defined]

    def pytest_collection_finish(self) -> None:
        """Tell the controller, which collects nothing itself, what was selected; all workers write the same."""
        path = Path(self._session.config.workerinput[SELECTED])  # type: ignore[attr-defined]
        with contextlib.suppress(OSError):  # The controller has gone.
            write_atomically(path, json.dumps(self._session.selected))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Put the pause behind the last test, now that these were counted and reported, and begin to watch."""
        session.items.append(Pause.from_parent(session, name="pause"))
        threading.Thread(target=self._watch, args=(session,), name="evocode-stop", daemon=True).start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Nothing happens in a pause."""
        return True if isinstance(item, Pause) else None

    def _watch(self, session: pytest.Session) -> None:
        """End the attempt under way, and every one that begins, once there is the sign or no controller."""
        controller = os.getppid()
        while True:
            time.sleep(_INTERVAL)
            if self._stop_sign.exists() or os.getppid() != controller:
                session.shouldstop = session.shouldstop or "stopped by the session"
                with contextlib.suppress(EnvironmentFault):  # Its teardown closes it as well, and says so.
                    self._session.stop_running()

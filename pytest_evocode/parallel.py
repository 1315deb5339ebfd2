"""xdist: an attempt is one unit of work, because its rounds share a container."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

from pytest_evocode.collection import TASK_FILE


class AttemptScheduling(LoadScopeScheduling):
    """Gives whole attempts to workers, and every other test by itself."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.rsplit("::", 1)[0] if f"{TASK_FILE}::" in nodeid else nodeid

"""The connections to models' providers that all processes of a session share, in the results directory."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_evocode.plugin.session import EvocodeSession


def share_connections(session: EvocodeSession) -> None:
    """Have this process's clients of models go by the limits of the whole run, until the session ends."""
    from pytest_evocode.llm.connection_limits import MOST, connections_shared_by
    from pytest_evocode.llm.shared_connections import SharedConnections

    directory = _directory(session.settings.results, session.run_name)
    sharing = contextlib.ExitStack()
    sharing.enter_context(connections_shared_by(SharedConnections(directory, session.settings.max_connections or MOST)))
    session.config.add_cleanup(sharing.close)


def forget_connections(session: EvocodeSession) -> None:
    """Remove the files of a run's connections; to be called when no process of the session asks a model any more."""
    if session.run_name:
        shutil.rmtree(_directory(session.settings.results, session.run_name), ignore_errors=True)


def _directory(results: Path, run: str) -> Path:
    return results / "runs" / f"{run}.connections"

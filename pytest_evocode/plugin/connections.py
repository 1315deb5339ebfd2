"""The connections to models' providers that all processes of a session share, in the results directory."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path


def share_connections(results: Path, run: str, most: int | None) -> Callable[[], None]:
    """Have this process's clients of models go by the limits of a whole run, until what is returned is called.

    ``most`` is how many requests may be under way for each provider and key; None is the default.
    """
    from pytest_evocode.llm.connection_limits import MOST, SharedConnections, connections_shared_by

    sharing = contextlib.ExitStack()
    sharing.enter_context(connections_shared_by(SharedConnections(_directory(results, run), most or MOST)))
    return sharing.close


def forget_connections(results: Path, run: str) -> None:
    """Remove the files of a run's connections; to be called when no process of the session asks a model any more."""
    shutil.rmtree(_directory(results, run), ignore_errors=True)


def _directory(results: Path, run: str) -> Path:
    return results / "runs" / f"{run}.connections"

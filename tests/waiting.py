"""Wait for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(there: Callable[[], T], what: object = "", *, seconds: float = 300) -> T:
    """Return what a call returns as soon as it is true; fail where that is not within some seconds.

    ``what`` is said then, by a call where it is one.
    """
    deadline = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.01)
    return found

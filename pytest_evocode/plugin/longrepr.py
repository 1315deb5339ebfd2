"""A failure that has no traceback, in pytest's own form."""

from __future__ import annotations

import pytest
from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback


def failure_of(item: pytest.Item, text: str) -> ReprExceptionInfo:
    """What a report shows; plain text would have no first line to show alone in short summaries."""
    summary = text.partition("\n")[0]
    shown = [] if item.config.option.tbstyle == "line" else [ReprEntryNative([f"{text}\n"])]
    return ReprExceptionInfo(
        reprtraceback=ReprTraceback(shown, extraline=None, style="native"),
        reprcrash=ReprFileLocation(str(item.path), 1, summary),
    )

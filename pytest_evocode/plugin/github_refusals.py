"""What the summary of a job on GitHub Actions says of a session that ended before its plugins were made."""

from __future__ import annotations

import contextlib
import os

import pytest

from pytest_evocode.report.tables import plain
from pytest_evocode.secrets import Scrubber

NAME = "evocode-github"
"""What the plugin for GitHub is registered as."""


def tell_refusal(config: pytest.Config, status: pytest.ExitCode, reason: str) -> None:
    """Append to the job's summary why a session ended that has no plugin for GitHub to tell it."""
    target, plugins = os.environ.get("GITHUB_STEP_SUMMARY"), config.pluginmanager
    if not target or os.environ.get("GITHUB_ACTIONS") != "true" or hasattr(config, "workerinput"):
        return
    if plugins.is_blocked(NAME) or plugins.hasplugin(NAME):
        return
    text = Scrubber().text(f"{heading(status)}\n\n- {plain(reason)}\n")
    with contextlib.suppress(OSError), open(target, "a", encoding="utf-8", errors="replace") as file:
        file.write(text)


def heading(status: int, counted: str = "") -> str:
    """Return the heading of why a session ended with a status."""
    names = {int(code): code.name.lower().replace("_", " ") for code in pytest.ExitCode}
    return f"## Exit status {int(status)}: {counted or names.get(status, 'ended early')}"

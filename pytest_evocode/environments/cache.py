"""Where built images and the state of sandboxes are kept on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_directory() -> Path:
    """``$EVOCODE_CACHE``, else the user's cache directory for this program; made when missing, private to the user."""
    named = os.environ.get("EVOCODE_CACHE")
    directory = Path(named) if named else platformdirs.user_cache_path("pytest-evocode", appauthor=False)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    return directory.resolve()

"""Which version of an npm package is the latest: looked up with this machine's npm, once a day."""

from __future__ import annotations

import json
import logging
import re
import shutil
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock

from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.tasks.atomic_write import write_atomically

logger = logging.getLogger(__name__)

LATEST = "latest"
_DAY = 86_400.0  # seconds
_LOOKING = 60.0  # seconds
_VERSION = re.compile(r"\d+\.[A-Za-z0-9._+-]+")


def latest_version(package: str) -> str | None:
    """Return the latest version of an npm package as of the last day; None where it cannot be looked up.

    All sessions of this machine share what was found. The version of an earlier day serves where npm does not answer.
    """
    directory = cache_directory() / "latest-versions"
    directory.mkdir(exist_ok=True)
    known = directory / f"{quote(package, safe='')}.json"
    with FileLock(known.with_suffix(".lock")):
        version, looked_up = _read(known)
        if version is not None and 0 <= time.time() - looked_up < _DAY:
            return version
        found = _ask_npm(package)
        if found is None:
            return version
        write_atomically(known, json.dumps({"version": found, "looked_up": time.time()}))
        return found


def _read(path: Path) -> tuple[str | None, float]:
    try:
        values = json.loads(path.read_text())
        return str(values["version"]), float(values["looked_up"])
    except (OSError, ValueError, LookupError, TypeError):  # There is none, or one of a broken write.
        return None, 0.0


def _ask_npm(package: str) -> str | None:
    npm = shutil.which("npm")
    if npm is None:
        logger.warning("%s: there is no npm on this machine to look up its latest version with", package)
        return None
    try:
        asked = subprocess.run(
            [npm, "view", f"{package}@{LATEST}", "version"], capture_output=True, text=True, timeout=_LOOKING, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        logger.warning("%s: npm did not tell its latest version: %s", package, error)
        return None
    version = asked.stdout.strip()
    if asked.returncode != 0 or not _VERSION.fullmatch(version):
        logger.warning("%s: npm did not tell its latest version: %s", package, (asked.stderr or version).strip()[-500:])
        return None
    return version

"""Run SlopCodeBench's program ``scb-check`` on the texts of a workspace, as that benchmark does.

Nothing of the workspace is run. The program is no dependency: it and what it brings take 70 MB and Python 3.12.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import StateNotRebuilt, UsageError

#: The release that SlopCodeBench pins.
RELEASE = "0.1.3"
_TIMEOUT = 300.0  # seconds for the files of one round
_CONFIG = "scb-check.toml"


class ScbCheck:
    """The installed program; texts that were checked before are not checked again."""

    def __init__(self, path: str | None = None) -> None:
        """Find the program on ``path``, by default the ``PATH``, or beside this Python.

        Raises:
            UsageError: It is not installed; the message says how to do that.
        """
        path = os.environ.get("PATH", "") if path is None else path
        search = os.pathsep.join((path, str(Path(sys.executable).parent)))
        found = shutil.which("scb-check", path=search)
        if found is None:
            raise UsageError(
                "SlopCodeBench's program scb-check is not installed: install it by itself, "
                f"uv tool install scb-check=={RELEASE}, or into Python 3.12 or later, "
                "pip install 'pytest-evocode[slopcodebench]'"
            )
        self._program = Path(found)
        # It looks for ast-grep under the name sg, which is another program on most machines, and does without it.
        beside = str(self._program.resolve().parent)
        self._environ = {**os.environ, "PATH": os.pathsep.join((beside, os.environ.get("PATH", "")))}
        self._known: dict[str, Mapping[str, Any]] = {}

    @property
    def version(self) -> str:
        """The release that is installed."""
        return self._run(Path.cwd(), "--version").stdout.strip()

    def report(self, texts: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the program's report on files, by their relative paths.

        Raises:
            StateNotRebuilt: It has none; the message says why.
        """
        key = hashlib.sha256(json.dumps(sorted(texts.items())).encode()).hexdigest()
        if key not in self._known:
            self._known[key] = self._check(texts)
        return self._known[key]

    def _check(self, texts: Mapping[str, str]) -> Mapping[str, Any]:
        with scratch_directory("scb") as top:
            files = Path(top, "files")
            files.mkdir()
            # Where it is run: settings that the agent wrote would leave files out.
            Path(top, _CONFIG).write_text("exclude = []\n", encoding="utf-8")
            Path(top, ".git").mkdir()
            _write(files, texts)
            ran = self._run(Path(top), "check", "--report", "--include-all", str(files))
        lines = ran.stdout.strip().splitlines()
        if ran.returncode not in (0, 1) or not lines:
            what = (ran.stdout + ran.stderr).strip().splitlines()
            raise StateNotRebuilt(
                f"scb-check: {what[-1] if what else f'exit code {ran.returncode}'}".replace(str(top), "")
            )
        if "ast-grep" in ran.stderr:
            raise StateNotRebuilt("scb-check could not run ast-grep, without which verbosity is too low")
        report: dict[str, Any] = json.loads(lines[-1])
        return report

    def _run(self, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [str(self._program), *arguments]
        try:
            return subprocess.run(
                argv, cwd=directory, env=self._environ, capture_output=True, encoding="utf-8", errors="replace",
                timeout=_TIMEOUT, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise StateNotRebuilt(f"scb-check did not end in {_TIMEOUT:.0f} s") from None


def _write(top: Path, texts: Mapping[str, str]) -> None:
    for path, text in texts.items():
        pure = PurePosixPath(path)
        # Neither what leads elsewhere, nor what says which files count.
        if pure.is_absolute() or ".." in pure.parts or pure.name in (".gitignore", _CONFIG):
            continue
        place = top / pure
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode("utf-8", "surrogateescape"))

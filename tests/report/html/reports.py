"""Reports as written, and what is in their files."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

_CALL = re.compile(rb'evocode\.receive\("([^"]*)","([^"]*)"\);\n')


def unpacked(script: bytes) -> tuple[str, Any]:
    """The name and the value that a file below ``data/`` hands over."""
    found = _CALL.fullmatch(script)
    assert found is not None
    return found[1].decode(), json.loads(gzip.decompress(base64.b64decode(found[2])))


def value_in(report: Path, name: str) -> Any:
    """The value of ``data/NAME.js``."""
    called, value = unpacked((report / "data" / f"{name}.js").read_bytes())
    assert called == name
    return value


def files_in(report: Path) -> dict[str, tuple[int, int]]:
    """All files by their paths in a report, each with what changes when it is written."""
    return {
        path.relative_to(report).as_posix(): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in report.rglob("*")
        if path.is_file()
    }

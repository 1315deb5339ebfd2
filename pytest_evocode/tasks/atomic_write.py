"""Atomic writes: a file is written whole or not at all, so that a killed session leaves no half of one.

This is in the lowest package that writes files, so that all packages above it can use it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: Path, *, mode: int = 0o644) -> Iterator[BinaryIO]:
    """Yield a new file that takes the place of ``path`` when the block ends, or is removed where the block raises."""
    # Cut off, because nothing can be added to a name of 255 bytes, such as an artifact may have.
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        os.chmod(temporary, mode)  # After the last write, which would take set-user-ID away.
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def write_atomically(path: Path, text: str) -> None:
    """Write a text in UTF-8 and make the directories above it; a character that UTF-8 cannot encode becomes ``?``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text.encode("utf-8", "replace"))

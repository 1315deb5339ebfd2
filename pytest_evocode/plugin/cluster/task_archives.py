"""Task directories on their way to nodes, as archives; :mod:`pytest_evocode.environments.kept_tasks` unpacks them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from pytest_evocode.tasks.content_hash import is_dropping


def pack_task(directory: Path) -> bytes:
    """Return a task's directory as a compressed archive, without what tools leave behind."""
    stream = io.BytesIO()

    def kept(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if is_dropping(info.name.rpartition("/")[2]):
            return None
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        return info

    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=3) as archive:
        archive.add(directory, directory.name, filter=kept)
    return stream.getvalue()

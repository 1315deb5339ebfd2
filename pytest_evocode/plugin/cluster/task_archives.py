"""Task directories on their way to nodes: as archives, kept on each node under the hash of their contents."""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.tasks.content_hash import hash_directory, is_dropping


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


def kept_tasks() -> Path:
    """Return the directory of the tasks that this machine has."""
    return cache_directory() / "cluster" / "tasks"


def place_task(task_hash: str, name: str, fetch: Callable[[], bytes]) -> Path:
    """Return a task's directory on this machine, fetched and unpacked if it is not there yet.

    Args:
        task_hash: The hash of its contents.
        name: What the directory is called.
        fetch: Returns the archive.
    """
    home = kept_tasks() / task_hash
    home.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(home.with_suffix(".lock")):
        if (home / name).is_dir() and hash_directory(home / name) == task_hash:
            return home / name
        shutil.rmtree(home, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=".", dir=home.parent) as work:
            with tarfile.open(fileobj=io.BytesIO(fetch()), mode="r:gz") as archive:
                archive.extractall(Path(work, "task"), filter="tar")
            Path(work, "task").rename(home)
    return home / name

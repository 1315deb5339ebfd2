"""Content hashes of directories, by which an image is built only once."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Container
from pathlib import Path


def hash_directory(directory: Path, *salt: str, leaving_out: Container[str] = ()) -> str:
    """Return a SHA-256 in hex over the names, types, executable bits, link targets and contents below a directory.

    Args:
        directory: Times and owners in it do not count.
        salt: Whatever else the result depends on.
        leaving_out: Names of files and directories that do not count, wherever they are.
    """
    digest = hashlib.sha256("\0".join(salt).encode())
    for root, names, files in os.walk(directory):
        names[:] = sorted(name for name in names if name not in leaving_out)
        for name in sorted([*(name for name in files if name not in leaving_out), *names]):
            path = os.path.join(root, name)
            info = os.lstat(path)
            digest.update(f"{os.path.relpath(path, directory)}\0{stat.S_IFMT(info.st_mode)}\0".encode())
            if stat.S_ISLNK(info.st_mode):
                digest.update(os.readlink(path).encode())
            elif stat.S_ISREG(info.st_mode):
                digest.update(f"{info.st_mode & 0o111}\0{info.st_size}\0".encode())
                with open(path, "rb") as file:
                    digest.update(file.read())
    return digest.hexdigest()

"""Content hashes of directories, so that an image is built once for what is in it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Container
from pathlib import Path


def hash_directory(directory: Path, *salt: str, leaving_out: Container[str] = ()) -> str:
    """A SHA-256 in hex over names, types, executable bits, link targets and contents below a directory.

    ``salt`` is whatever else the result depends on. Times and owners do not count, nor do files and directories whose
    names are to be left out.
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

"""What COPY and ADD of a Dockerfile find in the build context, laid out to be brought into a sandbox."""

from __future__ import annotations

import fnmatch
import glob
import os
import shutil
import tarfile
from pathlib import Path

from pytest_evocode.environments.sandbox.dockerfile import CopyInstruction
from pytest_evocode.errors import BuildError


def stage(dockerfile: Path, copy: CopyInstruction, staging: Path, into_directory: bool) -> bool:
    """Lay out on the host what is to be copied, and return whether it goes into the target or is the target itself."""
    context = dockerfile.parent
    kept = _context_files(context)
    found = [path for source in copy.sources for path in _find(context, source, kept, dockerfile, copy.line)]
    into_directory = into_directory or len(found) > 1
    for path in found:
        if copy.extract and path.is_file() and tarfile.is_tarfile(path):
            _extract(path, staging, dockerfile, copy.line)
            into_directory = True
        elif path.is_dir():
            _copy_kept(path, staging, context, kept)
            into_directory = True
        else:
            shutil.copy2(path, staging / (path.name if into_directory else os.path.basename(copy.target)))
    return into_directory


def _extract(path: Path, staging: Path, dockerfile: Path, line: int) -> None:
    """Unpack a tar without following it out of the directory.

    Python's own filter for that is in 3.11.4 and later only.
    """
    inside = os.path.realpath(staging)
    try:
        with tarfile.open(path) as archive:
            archive.extraction_filter = lambda member, _: member
            for member in archive:
                member.name = member.name.lstrip("/")
                for name in (member.name, *([member.linkname] if member.islnk() else [])):
                    if os.path.commonpath([inside, os.path.realpath(os.path.join(inside, name))]) != inside:
                        raise tarfile.TarError(f"{name} leads out of the directory")
                if member.isreg() or member.isdir() or member.issym() or member.islnk():
                    archive.extract(member, inside)
    except (tarfile.TarError, OSError) as error:
        raise BuildError(f"{dockerfile}:{line}: {path.name} cannot be unpacked: {error}") from None


def _context_files(context: Path) -> set[str]:
    """Return the relative paths of the build context that .dockerignore leaves in."""
    ignore = context / ".dockerignore"
    if not ignore.is_file():
        return {path.relative_to(context).as_posix() for path in context.rglob("*")}
    from docker.utils.build import exclude_paths

    lines = [line.strip() for line in ignore.read_text().splitlines()]
    patterns = [line for line in lines if line and not line.startswith("#")]
    # The function keeps the Dockerfile and .dockerignore whatever the patterns say, for an engine that reads them.
    kept: set[str] = set(exclude_paths(str(context), patterns, dockerfile="no such file"))
    if any(fnmatch.fnmatch(".dockerignore", pattern.lstrip("/")) for pattern in patterns):
        kept.discard(".dockerignore")
    return kept


def _find(context: Path, source: str, kept: set[str], dockerfile: Path, line: int) -> list[Path]:
    clean = os.path.normpath(source.lstrip("/")) if source.lstrip("/") else "."
    if clean.startswith(".."):
        raise BuildError(f"{dockerfile}:{line}: {source} lies outside the build context {context}")
    if clean == ".":
        return [context]
    found = [Path(path) for path in sorted(glob.glob(str(context / clean)))]
    found = [path for path in found if path.relative_to(context).as_posix() in kept or _holds_any(path, context, kept)]
    if any(not path.resolve().is_relative_to(context.resolve()) for path in found):
        raise BuildError(f"{dockerfile}:{line}: {source} is a link out of the build context {context}")
    if not found:
        raise BuildError(f"{dockerfile}:{line}: {source} is not in the build context {context}")
    return found


def _holds_any(path: Path, context: Path, kept: set[str]) -> bool:
    below = f"{path.relative_to(context).as_posix()}/"
    return any(name.startswith(below) for name in kept)


def _copy_kept(source: Path, target: Path, context: Path, kept: set[str]) -> None:
    for directory, names, files in os.walk(source):
        here = Path(directory)
        for name in (*names, *files):
            path = here / name
            if path.relative_to(context).as_posix() not in kept:
                continue
            copied = target / path.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink():
                copied.symlink_to(path.readlink())
            elif path.is_dir():
                copied.mkdir(exist_ok=True)
            else:
                shutil.copy2(path, copied)

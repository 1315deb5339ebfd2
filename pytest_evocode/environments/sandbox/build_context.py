"""What COPY and ADD of a Dockerfile find in the build context."""

from __future__ import annotations

import fnmatch
import glob
import os
import tarfile
from pathlib import Path, PurePosixPath

from pytest_evocode.environments.archive import lay_over
from pytest_evocode.environments.sandbox.dockerfile import CopyInstruction
from pytest_evocode.errors import BuildError


def find_files(
    dockerfile: Path, copy: CopyInstruction, scratch: Path, into_directory: bool
) -> tuple[dict[str, Path], bool]:
    """Find what is to be copied.

    Args:
        dockerfile: The Dockerfile.
        copy: The instruction.
        scratch: An empty directory for what is unpacked.
        into_directory: Whether the target is known to be a directory.

    Returns:
        The files and directories by their paths in the target, and whether they go into it or one is the target itself.
    """
    context = dockerfile.parent
    kept = _context_files(context)
    found = [path for source in copy.sources for path in _find(context, source, kept, dockerfile, copy.line)]
    into_directory = into_directory or len(found) > 1
    members: dict[str, Path] = {}
    for path in found:
        if copy.extract and path.is_file() and tarfile.is_tarfile(path):
            _extract(path, scratch, dockerfile, copy.line)
            members |= lay_over([scratch])
            into_directory = True
        elif path.is_dir():
            below = lay_over([path]).items()
            members |= {name: each for name, each in below if each.relative_to(context).as_posix() in kept}
            into_directory = True
        else:
            members[path.name if into_directory else os.path.basename(copy.target)] = path.resolve()
    return members, into_directory


def _extract(path: Path, scratch: Path, dockerfile: Path, line: int) -> None:
    """Unpack a tar without following it out of the directory.

    Python's own filter for that is in 3.11.4 and later only.
    """
    inside = os.path.realpath(scratch)
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
    """Return the relative paths of the build context that .dockerignore leaves in, and of the directories above."""
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
    return kept | {above.as_posix() for path in kept for above in PurePosixPath(path).parents}


def _find(context: Path, source: str, kept: set[str], dockerfile: Path, line: int) -> list[Path]:
    clean = os.path.normpath(source.lstrip("/")) if source.lstrip("/") else "."
    if clean.startswith(".."):
        raise BuildError(f"{dockerfile}:{line}: {source} lies outside the build context {context}")
    if clean == ".":
        return [context]
    found = [Path(path) for path in sorted(glob.glob(str(context / clean)))]
    found = [path for path in found if path.relative_to(context).as_posix() in kept]
    if any(not path.resolve().is_relative_to(context.resolve()) for path in found):
        raise BuildError(f"{dockerfile}:{line}: {source} is a link out of the build context {context}")
    if not found:
        raise BuildError(f"{dockerfile}:{line}: {source} is not in the build context {context}")
    return found

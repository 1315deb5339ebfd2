"""Brings a round's declared artifacts from what the agent left to the environment that its suite has for itself."""

from __future__ import annotations

import contextlib
import logging
import posixpath
import tarfile
import tempfile
from collections.abc import Sequence
from typing import IO, BinaryIO, cast

from pytest_evocode.environments import Environment
from pytest_evocode.environments.artifact_archives import (
    SIZE_LIMIT,
    BoundedFile,
    DeclaredTree,
    copy_declared,
    too_large,
)
from pytest_evocode.environments.programs import FileKind
from pytest_evocode.environments.protocol import Files
from pytest_evocode.environments.task_environment import VERIFIER_DIRECTORIES
from pytest_evocode.environments.tree_archives import is_in
from pytest_evocode.errors import EnvironmentFault, UnreadableFile
from pytest_evocode.tasks import Artifact, Round
from pytest_evocode.tasks.compose_file import MAIN

logger = logging.getLogger(__name__)

ALWAYS = "/logs/artifacts"
"""What is an artifact of every round."""
_LOOKING = 60.0  # seconds
_OVERHEAD = 2**20  # bytes of what a tar has beside the contents of a single file
# Makes what is above each path, and prints where the path leads to there: the image's own links are followed.
_PLACES = r"""
kinds=$1; shift
for path; do
  kind=${kinds%%,*}; kinds=${kinds#*,}
  above=${path%/*}; above=${above:-/}; name=${path##*/}
  mkdir -p -- "$above" || exit
  # A suite that is not root may write beside a file that came along, as it may in a directory.
  [ "$kind" = directory ] || [ "$above" = / ] || chmod a+rwx -- "$above" 2>/dev/null
  if [ -d "$path" ]; then place=$(cd -P -- "$path" && pwd -P) || exit
  else place=$(cd -P -- "$above" && pwd -P) || exit; place=${place%/}/$name
  fi
  printf '%s\0' "$place"
done
"""


def bring_artifacts(source: Environment, target: Environment, round_: Round) -> tuple[str, ...]:
    """Put the artifacts of a round into the environment of its suite, each at the path where the agent left it.

    What the image has there is replaced, except where an artifact is missing. Regular files, directories and links
    within an artifact come along; they belong to root, and have no set-id bit.

    Args:
        source: A fork of what the agent left.
        target: Where the suite is to run.
        round_: The round.

    Returns:
        What is to be said of those that did not come along.

    Raises:
        EnvironmentFault: An environment failed.
    """
    left_out: list[str] = []
    with contextlib.ExitStack() as opened:
        found: list[tuple[Artifact, FileKind, IO[bytes]]] = []
        packed: IO[bytes]
        left = SIZE_LIMIT
        for artifact in _outermost([*round_.artifacts, Artifact(source=ALWAYS)]):
            packed = opened.enter_context(tempfile.TemporaryFile())
            try:
                kind = _pack(source.files_of(artifact.service), artifact.source, packed, left)
            except UnreadableFile as error:
                if artifact.source != ALWAYS:
                    left_out.append(f"{artifact.source} {error}")
                continue
            left -= packed.tell()
            packed.seek(0)
            found.append((artifact, kind, packed))
        places = _places(target, [(artifact.source, kind) for artifact, kind, _ in found])
        harmless = opened.enter_context(tempfile.TemporaryFile())
        brought: list[str] = []
        with tarfile.open(fileobj=harmless, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for (artifact, _, packed), place in zip(found, places, strict=True):
                tree = DeclaredTree(artifact.source, place, artifact.exclude, VERIFIER_DIRECTORIES)
                try:
                    left_out += copy_declared(packed, tree, archive)
                except UnreadableFile as error:
                    left_out.append(f"{artifact.source} {error}")
                else:
                    brought.append(place)
        harmless.seek(0)
        # What has a place of the suite's own in it stays, with what the image has there.
        paths = [path for path in brought if not any(is_in(each, path) for each in VERIFIER_DIRECTORIES)]
        target.put_trees(paths, (), harmless)
    logger.debug("%s: brought %s to its suite", round_.name, ", ".join(brought) or "no artifact")
    return tuple(f"artifact not brought to the suite: {each}" for each in left_out)


def _outermost(artifacts: Sequence[Artifact]) -> list[Artifact]:
    """Return the artifacts, the first of each path, without those that lie in others of the same service."""
    by_path = {(each.service or MAIN, posixpath.normpath(each.source)): each for each in reversed(artifacts)}
    return [
        each.model_copy(update={"source": path})
        for (service, path), each in by_path.items()
        if not any(is_in(path, other) for named, other in by_path if named == service and other != path)
    ]


def _pack(source: Files, path: str, packed: IO[bytes], limit: int) -> FileKind:
    """Pack a file or directory, and return which it is; raises UnreadableFile where it is neither, or too large."""
    status = source.file_status(path)
    if status is None:
        raise UnreadableFile("is not there")
    if status.kind not in ("file", "directory"):
        raise UnreadableFile("is a link" if status.kind == "link" else "is neither a file nor a directory")
    if status.size > limit:
        raise UnreadableFile(too_large(SIZE_LIMIT))
    with contextlib.closing(BoundedFile(packed, limit + _OVERHEAD)) as bounded:
        source.pack_trees([path], cast(BinaryIO, bounded), files=True)
    return status.kind


def _places(target: Environment, found: Sequence[tuple[str, FileKind]]) -> list[str]:
    """Return the paths that those of files and directories lead to in an environment, with what is above them made."""
    if not found:
        return []
    paths, kinds = [path for path, _ in found], "".join(f"{kind}," for _, kind in found)
    with tempfile.TemporaryFile() as output:
        argv = ["bash", "-c", _PLACES, "places", kinds, *paths]
        made = target.exec(argv, user="0", cwd="/", timeout=_LOOKING, stdout=output)
        output.seek(0)
        places = output.read().decode("utf-8", "surrogateescape").split("\0")[:-1]
    if not made.ok or len(places) != len(paths):
        raise EnvironmentFault(f"there is no place for the artifacts in the suite's environment:\n{made.tail()}")
    return places

"""Snapshots of containers: committed images, which may outlive the session that made them."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient

REPOSITORY = "evocode-snapshot"
#: Names of images that outlive sessions and attempts: states of reference solutions.
REFERENCES = "evocode-reference"
KEEP_FOR = "evocode.keep-for"
_CHANGED = "evocode.changed-paths"
_LABEL_LIMIT = 2**16  # bytes


@dataclass(frozen=True, slots=True)
class DockerSnapshot:
    """An image committed from a container, and tars of the volumes, which no commit holds."""

    client: APIClient
    image: str
    image_layers: int
    """Layers of the task's image, all of which are below this one's own."""
    volumes: Mapping[str, IO[bytes]] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """See :class:`~pytest_evocode.environments.protocol.Snapshot`; nobody finds the volumes again."""
        return "" if self.volumes else self.image

    def changed_paths(self, outside: str) -> list[str]:
        """See :class:`~pytest_evocode.environments.protocol.Snapshot`."""
        with faults("looking at a snapshot"):
            image = self.client.inspect_image(self.image)  # type: ignore[no-untyped-call]
        noted = (image["Config"].get("Labels") or {}).get(_CHANGED)
        if noted is not None:
            return [path for path in json.loads(noted) if not _is_below(path, outside)]
        found: set[str] = set()
        for layer in own_layers(image, self.image_layers):
            found.update(_list_layer(layer, outside))
        return sorted(found)

    def discard(self) -> None:
        """Remove the image."""
        for contents in self.volumes.values():
            contents.close()
        with faults("removing a snapshot"):
            self.client.remove_image(self.image, force=True)


def commit_container(
    client: APIClient, container: str, *, image_layers: int, volumes: Sequence[str] = (), keep_for: Path | None = None
) -> DockerSnapshot:
    """Commit a container; the engine pauses it meanwhile."""
    image = f"{REPOSITORY}:{uuid.uuid4().hex[:12]}"
    labels = {} if keep_for is None or volumes else {KEEP_FOR: str(keep_for)}
    repository, _, tag = image.partition(":")
    with faults("taking a snapshot"), contextlib.ExitStack() as undo:
        undo.callback(_remove_if_made, client, image)
        if _layers_can_be_read(client, container):
            client.commit(container, repository=repository, tag=tag, conf={"Labels": labels})
        else:
            # The engine has to compare the container with its image, which takes it half a second, and in the same
            # pause: what changes and changes back would not be seen.
            client.pause(container)
            try:
                labels[_CHANGED] = _as_label(client.diff(container))
                client.commit(container, repository=repository, tag=tag, conf={"Labels": labels})
            finally:
                client.unpause(container)
        copies = {path: undo.enter_context(_copy_volume(client, container, path)) for path in volumes}
        undo.pop_all()
    return DockerSnapshot(client, image, image_layers, copies)


def _remove_if_made(client: APIClient, image: str) -> None:
    """Clear up after a snapshot that broke off; what broke it off is what the caller is told."""
    with contextlib.suppress(EnvironmentFault), faults("removing a snapshot"):
        client.remove_image(image, force=True)


def _copy_volume(client: APIClient, container: str, path: str) -> IO[bytes]:
    contents = tempfile.TemporaryFile()  # noqa: SIM115 - the snapshot keeps it
    for chunk in client.get_archive(container, path)[0]:
        contents.write(chunk)
    contents.flush()
    return contents


def _layers_can_be_read(client: APIClient, container: str) -> bool:
    """Whether the engine's own files are within reach: on this machine, for root, with its usual storage driver."""
    driver = client.inspect_container(container).get("GraphDriver") or {}
    upper = (driver.get("Data") or {}).get("UpperDir", "")
    return driver.get("Name") == "overlay2" and os.access(upper, os.R_OK | os.X_OK)


def own_layers(image: Mapping[str, Any], below: int) -> list[str]:
    """The directories of an image's layers above the first ``below``."""
    data = image["GraphDriver"]["Data"]
    layers = [data["UpperDir"], *data.get("LowerDir", "").split(":")]
    return layers[: len(image["RootFS"]["Layers"]) - below]


def _list_layer(top: str, outside: str) -> list[str]:
    """What an overlay's layer holds; a deleted file is a device there, and so no directory."""
    found = []
    waiting = [""]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(top + here) as entries:
                below = [(f"{here}/{entry.name}", entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise EnvironmentFault(f"a snapshot's layer cannot be read: {error}") from error
            below = []  # Too deep for a path: the directory stands for what is in it.
        found += [path for path, is_directory in below if not is_directory]
        waiting += [path for path, is_directory in below if is_directory and (outside == "/" or path != outside)]
        if not below and here:
            found.append(here)
    return found


def _is_below(path: str, directory: str) -> bool:
    return directory != "/" and f"{path}/".startswith(f"{directory}/")


def _as_label(changes: Sequence[Mapping[str, Any]] | None) -> str:
    """The paths of an engine's comparison without the directories above them, as far as they fit."""
    paths = sorted(change["Path"] for change in changes or ())
    leaves = [path for path, after in zip(paths, [*paths[1:], ""], strict=True) if not after.startswith(f"{path}/")]
    while len(text := json.dumps(leaves)) > _LABEL_LIMIT:
        leaves = leaves[: len(leaves) // 2]
    return text

"""What outlives a session's containers: snapshots, and containers that ``--evocode-keep`` leaves to be looked at.

Snapshots are committed images. Kept containers are known by their names, because a container's labels are fixed.

What a snapshot changed is listed when it is made, by the engine, and kept on the host where the engine's layers cannot
be read, in a file named after the snapshot's image. No label could hold it: an agent can make it as long as it likes.

A snapshot travels to another engine as archives of its layers over the task's image, those of the agent alone. There
they are put on top of the image that is built of the same files; the engine gets them as it gets any saved image,
without the layers that it has.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import json
import logging
import os
import shlex
import tarfile
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pytest_evocode.environments.archive import add_entry
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.environments.docker.calls import discard, faults
from pytest_evocode.environments.docker.execs import EngineCommand
from pytest_evocode.environments.docker.files import paused, streamed
from pytest_evocode.environments.docker.increments import Increments
from pytest_evocode.environments.engines import ExportedLayer
from pytest_evocode.environments.overlay import LayeredFiles, is_below, list_changes
from pytest_evocode.environments.tree_archives import CHUNK
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks.atomic_write import replacing

if TYPE_CHECKING:
    from docker import APIClient


def leaves(paths: Iterable[str]) -> list[str]:
    """Return the paths that are above no other one, in order.

    >>> leaves(["/a", "/a-b", "/a/b", "/c"])
    ['/a-b', '/a/b', '/c']
    """
    found = set(paths)
    above: set[str] = set()
    for path in found:
        while (path := path.rpartition("/")[0]) and path not in above:
            above.add(path)
    return sorted(found - above)


def write_list(image: str, paths: Collection[str]) -> None:
    """Keep the list of a snapshot, whose image has this id."""
    with replacing(_file_of(image)) as file:
        file.write(gzip.compress(json.dumps(sorted(paths)).encode(), mtime=0))


def read_list(image: str) -> list[str] | None:
    """Return the list of a snapshot, None where there is none."""
    try:
        found: list[str] = json.loads(gzip.decompress(_file_of(image).read_bytes()))
    except FileNotFoundError:
        return None
    return found


def drop_lists_without_image(client: APIClient) -> None:
    """Remove the lists of snapshots that are gone."""
    # Looked for before the images: a list is written when its image exists.
    if files := list(_directory().iterdir()):
        needed = {_file_of(image["Id"]) for image in client.images()}
        for file in files:
            if file not in needed:
                file.unlink(missing_ok=True)


def _file_of(image: str) -> Path:
    return _directory() / f"{image.removeprefix('sha256:')}.gz"


def _directory() -> Path:
    directory = cache_directory() / "docker-changes"
    directory.mkdir(exist_ok=True)
    return directory


logger = logging.getLogger(__name__)

#: Names of the images of snapshots.
REPOSITORY = "evocode-snapshot"
#: What the engine's history of an image says of a layer that a snapshot put there.
COMMENT = "evocode snapshot"
#: Names of images that outlive sessions and attempts: states of reference solutions.
REFERENCES = "evocode-reference"
KEEP_FOR = "evocode.keep-for"
#: Bytes of all files that were changed in a container, and of each of its volumes; holes count as data.
SIZE_LIMIT = 32 * 2**30
_KEPT = "evocode-kept-"
_OPAQUE = "trusted.overlay.opaque"
MOUNTED = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")  # by the engine, anew in every container


@dataclass(frozen=True, slots=True)
class DockerSnapshot:
    """An image of a container's files, and a tar of each volume, because no commit holds volumes."""

    client: APIClient
    image: str
    """The name of the image."""
    image_layers: int
    """How many layers the task's image has; they are below the snapshot's own."""
    volumes: Mapping[str, IO[bytes]] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """See :class:`~pytest_evocode.environments.protocol.Snapshot`; no later session can find volumes."""
        return "" if self.volumes else self.image

    def changed_paths(self, outside: Sequence[str] = ()) -> list[str]:
        """See :class:`~pytest_evocode.environments.protocol.Snapshot`."""
        with faults("looking at a snapshot"):
            image = self.client.inspect_image(self.image)  # type: ignore[no-untyped-call]
        return sorted(changed_in_image(image, self.image_layers, [*outside, *MOUNTED]))

    def discard(self) -> None:
        """Remove the image and the copies of volumes."""
        for contents in self.volumes.values():
            contents.close()
        discard(self.client, "image", self.image)


def commit_container(
    client: APIClient,
    container: str,
    *,
    image_layers: int,
    volumes: Sequence[str],
    keep_for: Path | None,
    increments: Increments,
) -> DockerSnapshot:
    """Commit a container, which is paused meanwhile.

    Args:
        client: A client of the engine.
        container: The container's id.
        image_layers: How many layers the task's image has.
        volumes: The directories of its volumes, to be copied.
        keep_for: As for :meth:`~pytest_evocode.environments.protocol.Environment.snapshot`; without effect with
            volumes.
        increments: Of the container's environment.
    """
    image = f"{REPOSITORY}:{uuid.uuid4().hex[:12]}"
    labels = snapshot_labels(keep_for, volumes)
    repository, _, tag = image.partition(":")
    with faults("taking a snapshot"), contextlib.ExitStack() as undo:
        undo.callback(discard, client, "image", image)
        state = client.inspect_container(container)
        compared = not layers_can_be_read(state)
        # Both in one pause, or a change that is undone between the two would not be seen.
        with paused(client, container) as is_paused:
            listed = client.containers(all=True, size=True, filters={"id": container})
            # As the engine counts them: with overlay2, holes are included.
            size = sum(each.get("SizeRw") or 0 for each in listed)
            refuse_size(size, "the files that were changed in the container")
            changed = leaves(each["Path"] for each in client.diff(container) or ()) if compared else []
            is_whole = compared or not is_paused or bool(volumes)  # Nobody is to make volumes for nothing.
            committed = container if is_whole else increments.prepare(state, size)
            made = client.commit(committed, repository=repository, tag=tag, message=COMMENT, conf={"Labels": labels})
        increments.committed(container, image)
        if compared and (before := _changed_before(client, state["Image"], image_layers)) is not None:
            write_list(made["Id"], {*before, *changed})
        copies = {path: undo.enter_context(copy_volume(client, container, path)) for path in volumes}
        undo.pop_all()
    logger.debug("committed container %.12s as %s", container, image)
    return DockerSnapshot(client, image, image_layers, copies)


def refuse_size(size: int, what: str) -> None:
    """Raise :class:`EnvironmentFault` where a snapshot would have more bytes than :data:`SIZE_LIMIT`.

    In an image the holes of a file take as much of the disk as data, and an agent makes terabytes of them in no time.
    """
    if size > SIZE_LIMIT:
        raise EnvironmentFault(
            f"no snapshot can be taken: {what} have more than {SIZE_LIMIT / 2**30:g} GiB; holes of sparse "
            "files count as data"
        )


def snapshot_labels(keep_for: Path | None, volumes: Sequence[str]) -> dict[str, str]:
    """Return the labels of a snapshot's image, beside those of the container."""
    return {} if keep_for is None or volumes else {KEEP_FOR: str(keep_for)}


def copy_volume(client: APIClient, container: str, path: str) -> IO[bytes]:
    """Return a tar of a volume of a container, of no more than :data:`SIZE_LIMIT` bytes."""
    contents = tempfile.TemporaryFile()  # noqa: SIM115 - the snapshot keeps it
    try:
        for chunk in client.get_archive(container, path)[0]:
            contents.write(chunk)
            refuse_size(contents.tell(), f"the files of the volume {path}")
        contents.flush()
    except BaseException:
        contents.close()
        raise
    return contents


def layers_can_be_read(container: Mapping[str, Any]) -> bool:
    """Tell whether the engine's own files can be read: on this machine, by root, with the overlay2 driver."""
    driver = container.get("GraphDriver") or {}
    upper = (driver.get("Data") or {}).get("UpperDir", "")
    return driver.get("Name") == "overlay2" and os.access(upper, os.R_OK | os.X_OK)


def changed_in_image(image: Mapping[str, Any], below: int, outside: Sequence[str]) -> list[str]:
    """Return the paths at which a snapshot's image differs from the one with the first ``below`` of its layers.

    Raises EnvironmentFault where that is not known.
    """
    listed = read_list(image["Id"])
    if listed is not None:
        return [path for path in listed if not is_below(path, outside)]
    try:
        return list_changes(*layered_files(image, below), outside)
    except OSError as error:
        raise EnvironmentFault(
            f"what the agent changed is not known: no list of it is kept in {cache_directory()}, where another "
            f"user or another EVOCODE_CACHE may have it, and a snapshot's layer cannot be read: {error}"
        ) from error


def layered_files(image: Mapping[str, Any], below: int) -> tuple[LayeredFiles, LayeredFiles]:
    """Return the files of a snapshot's image, and of the one with the first ``below`` of its layers.

    Raises:
        OSError: They cannot be read.
    """
    data = (image.get("GraphDriver") or {}).get("Data") or {}
    if "UpperDir" not in data:
        raise OSError(errno.EOPNOTSUPP, "the engine's layers are no directories")
    layers = [data["UpperDir"], *data.get("LowerDir", "").split(":")]  # The highest first.
    own = len(image["RootFS"]["Layers"]) - below
    return LayeredFiles({"": layers}, _OPAQUE), LayeredFiles({"": layers[own:]}, _OPAQUE)


def _changed_before(client: APIClient, image: str, image_layers: int) -> list[str] | None:
    """Return what the image of a container changed against the task's; None where that is not known."""
    found = client.inspect_image(image)  # type: ignore[no-untyped-call]
    return [] if len(found["RootFS"]["Layers"]) <= image_layers else read_list(found["Id"])


def keep_container(client: APIClient, container: str, name: str, network: str | None) -> str:
    """Rename a running container so that no session removes it, and return the new name.

    Args:
        client: A client of the engine.
        container: The container's id.
        name: What the new name contains.
        network: The session's own network, which will be removed and is replaced by the engine's default; None for a
            container without a network.
    """
    kept = f"{_KEPT}{name}-{uuid.uuid4().hex[:6]}"
    with faults("keeping a container"):
        client.rename(container, kept)
        if network is not None:
            client.disconnect_container_from_network(container, network)
            client.connect_container_to_network(container, "bridge")
    return kept


def is_kept(container: Mapping[str, Any]) -> bool:
    """Tell whether a container, as the engine lists it, is one that was kept."""
    return any(name.lstrip("/").startswith(_KEPT) for name in container["Names"] or ())


def docker_exec_line(container: str, command: EngineCommand, conceal: Callable[[str], str]) -> str:
    """Return the command line that runs a command in a container on the terminal it is typed at."""
    line = ["docker", "exec", "-it", "--user", command.user, "--workdir", command.cwd]
    for name, value in command.env.items():
        line += ["--env", f"{name}={conceal(value)}"]
    return shlex.join([*line, container, *command.argv])


_CHANGES = "evocode.changes"
"""The name of an archive that has the list of what the snapshot changed; it is no layer of the image."""


def export_image(
    client: APIClient, image: Mapping[str, Any], below: int, known: Collection[str], target: Path
) -> list[ExportedLayer]:
    """Write the layers of an image above its first ``below`` to files, and the list of what is changed in them.

    Raises EnvironmentFault.
    """
    names: list[str] = image["RootFS"]["Layers"][below:]
    archives = {name: target / f"{index}.tar" for index, name in enumerate(names) if name not in known}
    if archives:
        with faults("reading a snapshot"):
            _write_layers(client, image["Id"], archives)
    layers = [ExportedLayer(name, archives.get(name)) for name in names]
    with contextlib.suppress(EnvironmentFault):  # Where nobody here knows it.
        changes = sorted(changed_in_image(image, below, ()))
        digest = hashlib.sha256("\0".join(changes).encode("utf-8", "surrogateescape")).hexdigest()
        name = f"{_CHANGES}:{digest}"
        path = None
        if name not in known:
            path = target / _CHANGES
            with tarfile.open(path, "w") as archive:
                add_entry(archive, _CHANGES, json.dumps(changes).encode())
        layers.append(ExportedLayer(name, path))
    return layers


def _write_layers(client: APIClient, image: str, archives: Mapping[str, Path]) -> None:
    """Write layers to files out of all that the engine saves of an image, the layers below them included."""
    missing = dict(archives)
    part = next(iter(archives.values())).with_name("part")
    with streamed(client.get_image(image)) as stream, tarfile.open(fileobj=stream, mode="r|", bufsize=CHUNK) as saved:
        # Their names depend on the engine's version, their contents do not.
        for member in saved:
            if member.isreg() and (target := missing.pop(_copy(_contents(saved, member), part), None)) is not None:
                part.rename(target)
    part.unlink(missing_ok=True)
    if missing:
        raise EnvironmentFault(f"the engine saved the image {image} without the layers {', '.join(missing)}")


def _copy(contents: IO[bytes], target: Path) -> str:
    """Write contents to a file, and return their digest."""
    digest = hashlib.sha256()
    with target.open("wb") as file:
        while chunk := contents.read(CHUNK):
            digest.update(chunk)
            file.write(chunk)
    return f"sha256:{digest.hexdigest()}"


def _contents(archive: tarfile.TarFile, member: tarfile.TarInfo | str) -> IO[bytes]:
    found = archive.extractfile(member)
    assert found is not None
    return found


def import_image(
    client: APIClient,
    base: Mapping[str, Any],
    reference: str,
    layers: Sequence[ExportedLayer],
    labels: Mapping[str, str],
) -> None:
    """Put layers on top of an image, under a name; raises EnvironmentFault."""
    changes = [each for each in layers if each.name.startswith(f"{_CHANGES}:")]
    archives = [each.archive for each in layers if each.archive is not None and each not in changes]
    digests = [_digest(path) for path in archives]
    below: list[str] = base["RootFS"]["Layers"]
    config = json.dumps({
        "architecture": base["Architecture"],
        "os": base["Os"],
        "config": {**(base.get("Config") or {}), "Labels": dict(labels)},
        "rootfs": {"type": "layers", "diff_ids": [*below, *digests]},
        # As many entries as layers, or the engine cannot tell the sizes of these.
        "history": [*({"created_by": "task"} for _ in below), *({"comment": COMMENT} for _ in archives)],
    }).encode()  # fmt: skip
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    names = [f"{digest.removeprefix('sha256:')}/layer.tar" for digest in (*below, *digests)]
    manifest = json.dumps([{"Config": config_name, "RepoTags": [reference], "Layers": names}]).encode()
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            for name, path in dict(zip(names[len(below) :], archives, strict=True)).items():
                archive.add(path, name)
            add_entry(archive, config_name, config)
            add_entry(archive, "manifest.json", manifest)
        file.seek(0)
        with faults("bringing a snapshot"):
            answers = list(client.load_image(file))  # type: ignore[no-untyped-call]
            said = "; ".join(
                str(answer["error"]) for answer in answers if isinstance(answer, dict) and "error" in answer
            )
            if said:
                raise EnvironmentFault(f"the engine does not take the layers of {reference}: {said}")
            image = client.inspect_image(reference)  # type: ignore[no-untyped-call]
    for each in changes:
        if each.archive is not None:
            with tarfile.open(each.archive) as archive:
                write_list(image["Id"], json.load(_contents(archive, _CHANGES)))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"

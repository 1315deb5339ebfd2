"""Snapshots of a container whose layer can be read: images that have what changed on top of the snapshot before.

The container is paused only while the changes are copied. The engine makes the image of them afterwards, beside the
agent's next turn.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.layer_delta import Layer, copy_changes, find_changes, read_layer
from pytest_evocode.environments.docker.mapped_files import is_plain_overlay, mapped_inodes
from pytest_evocode.environments.docker.removal import discard
from pytest_evocode.environments.docker.snapshot_images import REPOSITORY, SnapshotImage
from pytest_evocode.environments.docker.snapshots import (
    CHANGED_FILES,
    COMMENT,
    DockerSnapshot,
    commit_container,
    copy_volumes,
    layers_can_be_read,
    paused,
    refuse_size,
    snapshot_labels,
)
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient

logger = logging.getLogger(__name__)

_DEEPEST = 40
"""How many layers snapshots put over a task's image before all changes are copied anew; an engine takes 125 in all."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """The last snapshot: what the container's layer held then, and the image that has it."""

    container: str
    layer: Layer
    image: SnapshotImage
    depth: int
    """How many layers the image has on top of the container's."""


@dataclass(frozen=True, slots=True)
class _Staged:
    """A copy of what changed, which is to become a layer of an image."""

    directory: str
    below: SnapshotImage | str
    """The image that it goes on top of: a snapshot's, or the id of the container's own."""
    depth: int
    """How many layers the new image has on top of the container's."""
    layer: Layer


class SnapshotChain:
    """Takes the snapshots of one environment.

    Args:
        client: A client of the engine.
        labels: Of the environment's containers.
        image_layers: How many layers the task's image has.
        volumes: The directories of its volumes, which are copied with each snapshot.
    """

    def __init__(
        self, client: APIClient, labels: Mapping[str, str], image_layers: int, volumes: Sequence[str] = ()
    ) -> None:
        self._client = client
        self._labels = dict(labels)
        self._image_layers = image_layers
        self._volumes = tuple(volumes)
        self._lock = threading.Lock()
        self._last: _Copy | None = None
        self._workers: ThreadPoolExecutor | None = None

    def take(self, container: str, keep_for: Path | None = None) -> DockerSnapshot:
        """Take a snapshot of a container; it may become an image after this returns.

        Raises :class:`~pytest_evocode.errors.EnvironmentFault`, also where the image of the last snapshot could not be
        made.
        """
        with self._lock:
            if self._last is not None:
                self._last.image.raise_failure()
            with faults("taking a snapshot"):
                state = self._client.inspect_container(container)
                staged = self._stage(state) if layers_can_be_read(state) else None
            if staged is None:
                if self._last is not None:
                    self._last.image.wait()  # Later snapshots are never found without the earlier ones.
                self._forget()
                return commit_container(
                    self._client,
                    container,
                    image_layers=self._image_layers,
                    volumes=self._volumes,
                    keep_for=keep_for,
                )
            name = f"{REPOSITORY}:{uuid.uuid4().hex[:12]}"
            made: Future[None] = Future()
            image = SnapshotImage(self._client, name, made)
            labels = {**self._labels, **snapshot_labels(keep_for, self._volumes)}
            last, self._last = self._last, _Copy(container, staged.layer, image, staged.depth)
            image.hold()
            self._submit(lambda: self._make(staged, image, labels, made, None if last is None else last.image))
            try:
                copies = copy_volumes(self._client, container, self._volumes)
            except BaseException:
                image.discard()
                raise
            return DockerSnapshot(self._client, image, self._image_layers, copies)

    def settle(self) -> None:
        """Wait until all snapshots are images, and keep nothing for a next one."""
        with self._lock:
            workers, self._workers = self._workers, None
            if workers is not None:
                workers.shutdown(wait=True)
            self._forget()

    def _stage(self, state: Mapping[str, Any]) -> _Staged | None:
        """Copy what changed since the last snapshot; None where only the engine can take one."""
        container, first = state["Id"], state["State"]["Pid"]
        top = state["GraphDriver"]["Data"]["UpperDir"]
        if not first or not is_plain_overlay(first):
            return None
        last = self._last
        if last is not None and (last.container != container or last.depth >= self._most_layers(state["Image"])):
            last = None
        directory = (
            f"{os.path.dirname(top)}/evocode-{uuid.uuid4().hex}"  # It goes when the engine removes the container.
        )
        with paused(self._client, container) as is_paused:
            if not is_paused:
                return None
            try:
                layer = read_layer(top, time.time_ns())
                refuse_size(layer.size, CHANGED_FILES)
                copy_changes(find_changes(None if last is None else last.layer, layer), top, directory)
                mapped = mapped_inodes(container, first, top)
            except OSError as error:
                logger.info("container %.12s is committed by the engine: %s", container, error)
                shutil.rmtree(directory, ignore_errors=True)
                return None
        return _Staged(
            directory,
            state["Image"] if last is None else last.image,
            1 if last is None else last.depth + 1,
            # Nothing is known of files that may change without a trace, so the next snapshot has all of them.
            layer.without({mark.inode for mark in layer.marks.values()} if mapped is None else mapped),
        )

    def _most_layers(self, image: str) -> int:
        """Return how many layers may go on top of the image of a container, which may be a snapshot's itself."""
        found = self._client.inspect_image(image)  # type: ignore[no-untyped-call]
        return max(1, _DEEPEST - (len(found["RootFS"]["Layers"]) - self._image_layers))

    def _make(
        self,
        staged: _Staged,
        image: SnapshotImage,
        labels: Mapping[str, str],
        made: Future[None],
        last: SnapshotImage | None,
    ) -> None:
        """Make the image of a copy, as the commit of a container in which nothing is ever started."""
        container = None
        try:
            with faults("taking a snapshot"):
                if last is not None:
                    last.wait()  # Also where this one is not on top of it: what can be found later is in order.
                below = staged.below
                container = self._create(below.wait() if isinstance(below, SnapshotImage) else below)
                _put_into(staged.directory, self._client.inspect_container(container))
                repository, _, tag = image.name.partition(":")
                conf = {"Labels": dict(labels)}
                self._client.commit(container, repository=repository, tag=tag, message=COMMENT, conf=conf)
        except BaseException as error:
            made.set_exception(error)
        else:
            made.set_result(None)
        finally:
            shutil.rmtree(staged.directory, ignore_errors=True)  # Where it has not become the layer.
            with contextlib.suppress(EnvironmentFault):
                if last is not None:
                    last.release()
            if container is not None:
                discard(self._client, "container", container)

    def _create(self, image: str) -> str:
        """Create a container whose layer the copy becomes."""
        from docker.types import Mount

        # An anonymous volume of our own: that of the image would be filled with the image's files.
        mounts = [Mount(path, None, type="volume", no_copy=True) for path in self._volumes]
        created = self._client.create_container(
            image,
            entrypoint=["true"],
            command=[],
            user="0",
            working_dir="/",
            labels=self._labels,
            host_config=self._client.create_host_config(network_mode="none", mounts=mounts),
            network_disabled=True,
        )
        return str(created["Id"])

    def _forget(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            with contextlib.suppress(EnvironmentFault):
                last.image.release()

    def _submit(self, job: Callable[[], None]) -> None:
        if self._workers is None:
            # One makes images, of which each needs the one before; the other clears away meanwhile.
            self._workers = ThreadPoolExecutor(2, thread_name_prefix="snapshot")
        self._workers.submit(job)


def _put_into(directory: str, container: Mapping[str, Any]) -> None:
    """Make a directory the layer of a container that was never started."""
    top = container["GraphDriver"]["Data"]["UpperDir"]
    try:
        os.rename(directory, top)
    except OSError:
        # It may count towards another quota, between which nothing can be renamed.
        shutil.rmtree(top)
        copy_changes(find_changes(None, read_layer(directory, 0)), directory, top)

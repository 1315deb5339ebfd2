"""Snapshots that travel from one Docker engine to another: their layers over the task's image, as archives.

What is taken along are the layers of the agent alone. On the other machine they are put on top of the image that is
built there from the same files; the engine gets them as it gets any saved image, without the layers that it has.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pytest_evocode.environments.docker.change_lists import write_list
from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.files import streamed
from pytest_evocode.environments.docker.snapshots import COMMENT, changed_in_image
from pytest_evocode.environments.protocol import ExportedLayer
from pytest_evocode.environments.tree_archives import CHUNK
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient

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
                _add(archive, _CHANGES, json.dumps(changes).encode())
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
            _add(archive, config_name, config)
            _add(archive, "manifest.json", manifest)
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


def _add(archive: tarfile.TarFile, name: str, contents: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(contents)
    archive.addfile(info, io.BytesIO(contents))

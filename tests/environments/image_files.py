"""Images for tests: layers of a few files, in an OCI layout or as `docker save` writes them."""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_evocode.environments.sandbox.given_images import machine

PROGRAMS = (
    *("sh", "bash", "cat", "chmod", "chown", "echo", "env", "find", "id", "ln", "ls", "mkdir", "mv", "pwd"),
    *("readlink", "rm", "sleep", "sort", "stat", "tail", "test", "touch"),
)
ENTRY = dict[str, Any]
"""What a member of a layer is: `name`, `contents`, and fields of a TarInfo."""


def file(name: str, contents: str | bytes = b"", **fields: Any) -> ENTRY:
    contents = contents.encode() if isinstance(contents, str) else contents
    return {"name": name, "contents": contents, "mode": 0o644, **fields}


def directory(name: str, **fields: Any) -> ENTRY:
    return {"name": name, "type": tarfile.DIRTYPE, "mode": 0o755, **fields}


def link(name: str, target: str, **fields: Any) -> ENTRY:
    return {"name": name, "type": tarfile.SYMTYPE, "linkname": target, **fields}


def hard_link(name: str, target: str) -> ENTRY:
    return {"name": name, "type": tarfile.LNKTYPE, "linkname": target}


def layer(*entries: ENTRY) -> bytes:
    """A plain tar."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in entries:
            fields = dict(entry)
            contents = fields.pop("contents", b"")
            info = tarfile.TarInfo(fields.pop("name"))
            info.size, info.mtime = len(contents), 1_700_000_000
            for name, value in fields.items():
                setattr(info, name, value)
            archive.addfile(info, io.BytesIO(contents))
    return stream.getvalue()


@functools.cache
def tiny_system() -> bytes:
    """A layer with a few programs of this machine, a system of its own for whoever looks."""
    files: dict[str, Path] = {}
    for program in PROGRAMS:
        found = shutil.which(program, path="/usr/bin:/bin")
        assert found is not None
        files[f"usr/bin/{program}"] = Path(found)
        listed = subprocess.run(["ldd", found], capture_output=True, text=True).stdout
        files |= {path.lstrip("/"): Path(path) for path in re.findall(r"(/\S+) \(0x", listed)}
    entries = [
        *(directory(name) for name in ("dev", "etc", "proc", "root", "usr", "usr/bin", "usr/lib", "usr/lib64")),
        directory("tmp", mode=0o1777),
        *(link(name, f"usr/{name}") for name in ("bin", "lib", "lib64")),
        file("etc/os-release", "ID=tiny\n"),
        file("etc/passwd", "root:x:0:0:root:/root:/bin/bash\nworker:x:1000:1000::/home:/bin/sh\n"),
        file("etc/group", "root:x:0:\nworker:x:1000:\n"),
    ]
    entries += [
        file(re.sub(r"^lib", "usr/lib", name), path.read_bytes(), mode=0o755) for name, path in sorted(files.items())
    ]
    return layer(*entries)


def digest(contents: bytes) -> str:
    return f"sha256:{hashlib.sha256(contents).hexdigest()}"


def description(layers: Sequence[bytes], config: Mapping[str, Any], architecture: str | None = None) -> bytes:
    """The configuration of an image."""
    return json.dumps(
        {
            "architecture": architecture or machine(),
            "os": "linux",
            "config": dict(config),
            "rootfs": {"type": "layers", "diff_ids": [digest(each) for each in layers]},
        }
    ).encode()


def compressed(plain: bytes) -> bytes:
    return gzip.compress(plain, compresslevel=1)


def layout(
    images: Iterable[tuple[Sequence[bytes], Mapping[str, Any], str | None]],
    *,
    names: Sequence[str] = (),
    nested: bool = False,
    pack: Callable[[bytes], bytes] = compressed,
) -> dict[str, bytes]:
    """The files of an OCI layout: of one image per architecture; ``nested`` puts them into an index of their own."""
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}

    def blob(contents: bytes) -> dict[str, Any]:
        files[f"blobs/{digest(contents).replace(':', '/')}"] = contents
        return {"digest": digest(contents), "size": len(contents)}

    entries: list[dict[str, Any]] = []
    for number, (layers, config, architecture) in enumerate(images):
        manifest = {
            "schemaVersion": 2,
            "config": blob(description(layers, config, architecture)),
            "layers": [blob(pack(each)) for each in layers],
        }
        named = {"org.opencontainers.image.ref.name": names[number]} if names else {}
        entries.append({**blob(json.dumps(manifest).encode()), "annotations": named})
    index = {"schemaVersion": 2, "manifests": entries}
    if nested:
        index = {"schemaVersion": 2, "manifests": [blob(json.dumps(index).encode())]}
    files["index.json"] = json.dumps(index).encode()
    return files


def saved(layers: Sequence[bytes], config: Mapping[str, Any], name: str) -> dict[str, bytes]:
    """The files of `docker save` before version 25."""
    described = description(layers, config)
    files = {f"{number}/layer.tar": each for number, each in enumerate(layers)}
    entry = {"Config": "config.json", "RepoTags": [name], "Layers": [*files]}
    return {**files, "config.json": described, "manifest.json": json.dumps([entry]).encode()}


def write_directory(files: Mapping[str, bytes], path: Path) -> Path:
    for name, contents in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(contents)
    return path


def write_archive(files: Mapping[str, bytes], path: Path) -> Path:
    """A tar, compressed where the name of the path says so."""
    tar = layer(*(file(name, contents) for name, contents in files.items()))
    path.write_bytes(compressed(tar) if path.suffix == ".gz" else tar)
    return path

"""Images that the user gives in place of the host's system: OCI layouts, archives of these, and of ``docker save``.

Only what describes an image is read here, and its layers are made plain tars; who unpacks them is elsewhere.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import json
import lzma
import platform
import posixpath
import re
import subprocess
import tarfile
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pydantic import BaseModel

from pytest_evocode.errors import BuildError, EnvironmentFault, UsageError
from pytest_evocode.tasks import Healthcheck

_CHUNK = 2**20  # bytes
_DESCRIPTION = 2**24  # bytes of a file that describes an image, at most
_DIGEST = re.compile(r"(sha256|sha512):[0-9a-f]{64,128}")
_NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
_NESTED = 4  # indexes within one another
_ARCHITECTURES = {
    "x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "armv6l": "arm", "i686": "386", "i386": "386",
}  # fmt: skip
_BROKEN = (
    *(OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, RecursionError),
    *(tarfile.TarError, zlib.error, lzma.LZMAError),
)
_SHELL = ("/bin/sh", "-c")
_Plain = IO[bytes] | gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile
_Open = Callable[[str], AbstractContextManager[IO[bytes]]]


class ImageConfig(BaseModel):
    """What an image sets for all that is run in it or built on it."""

    env: dict[str, str] = {}
    workdir: str = "/"
    user: str = "0"
    entry_point: tuple[str, ...] = ()
    """What is run beside all else; empty for nothing. That of a FROM image that is not given is not known."""
    healthcheck: Healthcheck | None = None
    """The HEALTHCHECK, as far as it is known in the same way."""
    shell: tuple[str, ...] = _SHELL
    """What runs an instruction that is one line."""


@dataclass(frozen=True, slots=True)
class GivenImage:
    """An image on this machine's disk."""

    name: str
    path: Path
    digest: str
    """Of its configuration, which names the contents of all layers: what engines call an image's ID."""
    config: ImageConfig
    layers: tuple[tuple[str, str], ...]
    """The digest of each layer's plain tar, the lowest first, and the file that it is in, maybe compressed."""
    open: _Open

    @property
    def key(self) -> str:
        """Stands for the files of all layers, whatever the image is called or sets."""
        return hashlib.sha256(" ".join(digest for digest, _ in self.layers).encode()).hexdigest()

    def copy_layer(self, digest: str, file: str, cancelled: threading.Event, output: IO[bytes]) -> None:
        """Write the plain tar of a layer, unless that is ``cancelled``.

        Raises:
            BuildError: It cannot be read, or is another one than the image says.
            BrokenPipeError: Nobody reads what is written.
            EnvironmentFault: It was cancelled.
        """
        found = hashlib.new(digest.partition(":")[0])
        try:
            with self.open(file) as packed, _plain(packed) as plain:
                while chunk := plain.read(_CHUNK):
                    if cancelled.is_set():
                        raise EnvironmentFault(f"{self.path} is not unpacked any more")
                    found.update(chunk)
                    output.write(chunk)
        except BrokenPipeError:
            raise
        except _BROKEN as error:
            raise BuildError(f"{self.path}: the layer {file} of the image cannot be read: {_reason(error)}") from error
        if found.hexdigest() != digest.partition(":")[2]:
            raise BuildError(f"{self.path}: the layer {file} is damaged: its digest is not {digest}; save it again")


def read_images(paths: Mapping[str, Path]) -> dict[str, GivenImage]:
    """Find the images that the user gives, by their full names.

    Raises:
        UsageError: There is no image at a path, or none for this machine.
    """
    return {full_name(name): read_image(name, path) for name, path in paths.items()}


def full_name(name: str) -> str:
    """Return the name of an image as Docker completes it, however much of it is written.

    >>> full_name("python:3.11"), full_name("localhost:5000/a"), full_name("a/b:1@sha256:00")
    ('docker.io/library/python:3.11', 'localhost:5000/a:latest', 'docker.io/a/b@sha256:00')
    """
    name, _, digest = name.partition("@")
    path, _, tag = name.rpartition(":")
    if not path or "/" in tag:
        path, tag = name, "latest"
    registry, slash, repository = path.partition("/")
    if not slash or not (registry == "localhost" or {".", ":"} & {*registry}):
        registry, repository = "docker.io", path
    if registry in ("docker.io", "index.docker.io"):
        registry = "docker.io"
        repository = repository if "/" in repository else f"library/{repository}"
    return f"{registry}/{repository}@{digest}" if digest else f"{registry}/{repository}:{tag}"


def machine() -> str:
    """Return this machine's architecture, as images name it."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def is_this_machine(wanted: str) -> bool:
    """Tell whether a platform, such as ``linux/amd64``, is this machine's.

    >>> is_this_machine(f"linux/{machine()}"), is_this_machine("windows/amd64")
    (True, False)
    """
    system, architecture, *_ = wanted.split("/") if "/" in wanted else ("linux", wanted)
    return system == "linux" and _ARCHITECTURES.get(architecture, architecture) == machine()


def parse_given(text: str) -> tuple[str, Path]:
    """Return the name and the path of ``NAME=PATH``; raises UsageError for anything else."""
    name, _, path = text.partition("=")
    if not name.strip() or not path.strip():
        raise UsageError(f"{text!r}: write it as NAME=PATH, such as python:3.11-slim=python.tar")
    return name.strip(), Path(path.strip()).expanduser()


def read_image(name: str, path: Path) -> GivenImage:
    """Find an image in an OCI layout or in an archive.

    Raises:
        UsageError: There is none, or none for this machine.
    """
    try:
        open_file = _open_directory(path) if path.is_dir() else _open_archive(path)
        return _choose([*_images_in(open_file)], name, path, open_file)
    except _BROKEN as error:
        raise UsageError(
            f"the image {name}={path} cannot be used: {_reason(error)}; give the directory of an OCI layout, or an "
            "archive that 'docker save' or a builder wrote"
        ) from None


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, tarfile.ReadError):
        return "it is no tar"
    return f"its description has no {error}" if isinstance(error, KeyError) else str(error)


def _open_directory(path: Path) -> _Open:
    @contextlib.contextmanager
    def open_file(name: str) -> Iterator[IO[bytes]]:
        with (path / _inside(name)).open("rb") as file:
            yield file

    return open_file


def _open_archive(path: Path) -> _Open:
    with tarfile.open(path) as archive:
        members = {posixpath.normpath(member.name): member for member in archive}

    @contextlib.contextmanager
    def open_file(name: str) -> Iterator[IO[bytes]]:
        member = members.get(_inside(name))
        with tarfile.open(path) as archive:
            # Links are to other members, as where an image has a layer twice.
            file = None if member is None else archive.extractfile(member)
            if file is None:
                raise FileNotFoundError(f"it has no file {name}")
            with file:
                yield file

    return open_file


def _inside(name: str) -> str:
    """Return a name in an archive or layout, and nothing that leads out of it."""
    clean = posixpath.normpath(name)
    if clean.startswith(("/", "..")):
        raise ValueError(f"{name} leads out of it")
    return clean


@dataclass(frozen=True, slots=True)
class _Found:
    """One of the images in a layout or an archive."""

    names: frozenset[str]
    digest: str
    description: dict[str, Any]
    files: tuple[str, ...]

    @property
    def platform(self) -> str:
        return f"{self.description.get('os')}/{self.description.get('architecture')}"


def _images_in(open_file: _Open) -> Iterator[_Found]:
    """Find the images of an OCI layout; where there is none, of an archive of ``docker save`` before version 25."""
    try:
        index = _json(_read(open_file, "index.json"))
    except (FileNotFoundError, KeyError):
        try:
            saved = _json(_read(open_file, "manifest.json"))
        except (FileNotFoundError, KeyError):
            raise ValueError("it has neither an index.json nor a manifest.json") from None
        for image in saved:
            description = _read(open_file, image["Config"])
            yield _found(frozenset(image.get("RepoTags") or ()), description, image["Layers"])
    else:
        yield from _images_of_index(open_file, index["manifests"], frozenset(), _NESTED)


def _images_of_index(
    open_file: _Open, entries: Iterable[Mapping[str, Any]], names: frozenset[str], deep: int
) -> Iterator[_Found]:
    for entry in entries:
        notes = entry.get("annotations") or {}
        named = names or frozenset(notes[key] for key in _NAMES if key in notes)
        # What is missing is of another platform, which was not saved.
        with contextlib.suppress(FileNotFoundError):
            manifest = _json(_read(open_file, _blob(entry["digest"])))
            if "manifests" in manifest and deep:
                yield from _images_of_index(open_file, manifest["manifests"], named, deep - 1)
            elif "config" in manifest:
                description = _read(open_file, _blob(manifest["config"]["digest"]))
                yield _found(named, description, [_blob(each["digest"]) for each in manifest["layers"]])


def _found(names: frozenset[str], description: bytes, files: Iterable[str]) -> _Found:
    digest = f"sha256:{hashlib.sha256(description).hexdigest()}"
    return _Found(names, digest, dict(_json(description)), tuple(files))


def _choose(found: Sequence[_Found], name: str, path: Path, open_file: _Open) -> GivenImage:
    """Return the image for this machine, by its name where there are several; raises ValueError where that is none."""
    images = [each for each in found if each.platform.startswith("linux/") and "unknown" not in each.platform]
    fitting = [each for each in images if is_this_machine(each.platform)]
    if images and not fitting:
        platforms = ", ".join(sorted({each.platform for each in images}))
        raise ValueError(f"it is for {platforms}, and this machine is linux/{machine()}")
    wanted = full_name(name)
    named = [each for each in fitting if any(_is_called(each_name, wanted) for each_name in each.names)]
    chosen = {each.digest: each for each in named or fitting}
    if not chosen:
        raise ValueError("there is no image of Linux in it")
    if len(chosen) > 1:
        names = ", ".join(sorted({each_name for each in fitting for each_name in each.names})) or "none has a name"
        raise ValueError(f"there are {len(chosen)} images in it ({names}), and not one of them is called {name}")
    [image] = chosen.values()
    return GivenImage(name, path, image.digest, _config(image.description), _layers(image), open_file)


def _is_called(name: str, wanted: str) -> bool:
    """Tell whether an image is called that; what is written down may be its tag alone."""
    return full_name(name) == wanted or name == wanted.rpartition(":")[2]


def _layers(image: _Found) -> tuple[tuple[str, str], ...]:
    digests = [str(each) for each in image.description["rootfs"]["diff_ids"]]
    if len(digests) != len(image.files) or not all(map(_DIGEST.fullmatch, digests)):
        raise ValueError("its configuration does not tell the digests of its layers")
    return tuple(zip(digests, image.files, strict=True))


def _config(description: Mapping[str, Any]) -> ImageConfig:
    config = description.get("config") or {}
    if config.get("OnBuild"):
        raise ValueError("it has ONBUILD instructions, which are not replayed")
    check = config.get("Healthcheck") or {}
    seconds = {name: check.get(key, 0) / 1e9 for name, key in _TIMES.items()}
    return ImageConfig(
        env=dict(each.partition("=")[::2] for each in config.get("Env") or ()),
        workdir=config.get("WorkingDir") or "/",
        user=(config.get("User") or "0").partition(":")[0],
        entry_point=tuple(config.get("Entrypoint") or ()),
        healthcheck=Healthcheck.of_engine(check.get("Test") or (), **seconds, retries=check.get("Retries") or 0),
        shell=tuple(config.get("Shell") or _SHELL),
    )


_TIMES = {"interval": "Interval", "timeout": "Timeout", "start_period": "StartPeriod"}  # in nanoseconds


def _read(open_file: _Open, name: str) -> bytes:
    with open_file(name) as file:
        return file.read(_DESCRIPTION)


def _json(text: bytes) -> Any:
    return json.loads(text)


def _blob(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"{digest} is no digest")
    return f"blobs/{digest.replace(':', '/')}"


@contextlib.contextmanager
def _plain(packed: IO[bytes]) -> Iterator[_Plain]:
    """Yield what a file has uncompressed; by its first bytes, because descriptions may tell something else."""
    start = packed.read(6)
    packed.seek(0)
    readers: dict[bytes, Callable[[IO[bytes]], AbstractContextManager[_Plain]]] = {
        b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
        b"BZh": bz2.BZ2File,
        b"\xfd7zXZ\x00": lzma.LZMAFile,
        b"\x28\xb5\x2f\xfd": _through_zstd,
    }
    read = next((read for magic, read in readers.items() if start.startswith(magic)), None)
    if read is None:
        yield packed
        return
    with read(packed) as plain:
        yield plain


@contextlib.contextmanager
def _through_zstd(packed: IO[bytes]) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        while chunk := packed.read(_CHUNK):
            file.write(chunk)
        file.seek(0)
        try:
            program = subprocess.Popen(["zstd", "-dcq"], stdin=file, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            raise ValueError("it is compressed by zstd, and there is no such program on PATH") from None
        with program:
            assert program.stdout is not None
            yield program.stdout
            # Not where reading was broken off, which ends it by a signal.
            if program.wait() != 0:
                raise ValueError("zstd cannot read it")

"""A directory or a bucket in which attempts are kept beyond one machine, by ``fsspec``."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_evocode.errors import StorageFault, UsageError

_PASSWORD = re.compile(r"^[a-z0-9+.-]+://[^/@]*:[^/@]*@", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Whole files by name, below one URL; it can be pickled, and is opened where it is first used.

    Args:
        url: A directory, or any URL that ``fsspec`` has an implementation for, such as ``s3://bucket/prefix``.
        options: What that implementation is given, such as endpoint and keys; they are never shown or written.

    Raises:
        UsageError: The URL has a password in it, or a package is missing.
        StorageFault: Every verb raises it where the place cannot be read or written.
    """

    url: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if _PASSWORD.match(self.url):
            raise UsageError(
                "the storage's URL has a password in it, which records and logs would show; give it by the variables "
                "of the provider (AWS_SECRET_ACCESS_KEY), by FSSPEC_<PROTOCOL>_<OPTION> or by storage options"
            )

    def sizes(self, directory: str) -> dict[str, int]:
        """Return the names of the files in a directory, without the directory's, and the bytes of each."""
        filesystem, root = self._open()
        with self._faults("list", directory):
            try:
                found = filesystem.ls(f"{root}/{directory}", detail=True, refresh=True)
            except FileNotFoundError:
                return {}
            return {entry["name"].rpartition("/")[2]: int(entry["size"]) for entry in found if entry["type"] == "file"}

    def tree(self, directory: str) -> list[str]:
        """Return the names of all files below a directory, from the store's root."""
        filesystem, root = self._open()
        with self._faults("list", directory):
            filesystem.invalidate_cache()
            try:
                found = filesystem.find(f"{root}/{directory}" if directory else root)
            except FileNotFoundError:
                return []
            return sorted(str(path).removeprefix(f"{root}/") for path in found)

    def read(self, name: str) -> bytes | None:
        """Return the contents of a file, None where there is none."""
        filesystem, root = self._open()
        with self._faults("read", name):
            try:
                contents: bytes = filesystem.cat_file(f"{root}/{name}")
            except FileNotFoundError:
                return None
            return contents

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files; a killed process may leave some of them cut off."""
        filesystem, root = self._open()
        if files:
            with self._faults("write", next(iter(files))):
                filesystem.pipe({f"{root}/{name}": contents for name, contents in files.items()})

    def remove(self, names: list[str]) -> None:
        """Remove files; those that are gone are passed over."""
        filesystem, root = self._open()
        if names:
            with self._faults("remove", names[0]), contextlib.suppress(FileNotFoundError):
                filesystem.rm([f"{root}/{name}" for name in names])

    def _open(self) -> tuple[Any, str]:
        return _filesystem(self.url, _Options(self.options))

    @contextlib.contextmanager
    def _faults(self, verb: str, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # Each implementation has exceptions of its own.
            raise StorageFault(
                f"the storage {self.url}: it cannot {verb} {name}: {type(error).__name__}: {error}"
            ) from error


class _Options(dict[str, Any]):
    """Options that a cache can take as a key."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted((name, repr(value)) for name, value in self.items())))


@functools.lru_cache(maxsize=8)
def _filesystem(url: str, options: _Options) -> tuple[Any, str]:
    """Return the implementation for a URL, and the path there."""
    try:
        from fsspec.core import split_protocol, url_to_fs
    except ImportError:
        raise UsageError("storage for attempts needs fsspec: pip install 'pytest-evocode[storage]'") from None
    is_local = split_protocol(url)[0] in (None, "file", "local")
    try:
        filesystem, root = url_to_fs(url, **{"auto_mkdir": True} if is_local else {}, **options)
    except ImportError as error:
        raise UsageError(f"the storage {url}: {error}; for S3: pip install 'pytest-evocode[storage]'") from None
    except ValueError as error:
        raise UsageError(f"the storage {url}: {error}") from None
    except Exception as error:  # Some implementations connect at once.
        raise StorageFault(f"the storage {url} cannot be opened: {type(error).__name__}: {error}") from error
    return filesystem, str(root).rstrip("/")

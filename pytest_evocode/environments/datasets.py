"""Git repositories with tasks that sessions name by URL and commit, each cloned once into the cache."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from filelock import FileLock

from pytest_evocode.environments.cache import cache_directory, is_used, remove_unused, used
from pytest_evocode.environments.host_variables import host_variables
from pytest_evocode.errors import UsageError

_FORM = "git+URL@COMMIT#PATH, as in git+https://github.com/harbor-framework/harbor-cookbook@<40 digits>#harbor_cookbook"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHOWN = 12  # digits
_OF_A_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")


@dataclass(frozen=True, slots=True)
class Dataset:
    """A directory of a repository at a commit."""

    url: str
    commit: str
    path: str
    """Relative to the repository's root; empty for all of it."""

    @property
    def name(self) -> str:
        """What node ids begin with: the last part of the URL and the beginning of the commit."""
        last = re.split(r"[/:]", self.url.rstrip("/").removesuffix(".git"))[-1]
        return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', last)}-{self.commit[:_SHOWN]}"

    @property
    def clone(self) -> Path:
        """Where the repository is kept once it is fetched."""
        return _clones() / f"{self.name}-{hashlib.sha256(self.url.encode()).hexdigest()[:_SHOWN]}"


def parse_dataset(text: str, here: Path) -> Dataset:
    """Return the dataset that an option names.

    Args:
        text: ``git+URL@COMMIT#PATH``; the URL may be a path.
        here: What a path is relative to.

    Raises:
        UsageError: It is written in another way, or not pinned to a commit.
    """
    where, _, path = text.partition("#")
    url, _, commit = where.removeprefix("git+").rpartition("@")
    if not where.startswith("git+") or not (url or commit):
        raise UsageError(f"{text}: write it as {_FORM}")
    if not _COMMIT.fullmatch(commit):
        raise UsageError(
            f"{text}: a dataset is pinned, so that it stays what it is: name its commit, all 40 digits, behind an @, "
            f"as in {_FORM}"
        )
    parts = PurePosixPath(path).parts
    if path.startswith("/") or ".." in parts:
        raise UsageError(f"{text}: {path} has to be a path in the repository, relative and without '..'")
    if "://" not in url and not re.match(r"[\w.-]+(@[\w.-]+)?:", url):
        url = os.path.abspath(here / url)
    return Dataset(url, commit, PurePosixPath(*parts).as_posix() if parts else "")


@contextlib.contextmanager
def fetched(dataset: Dataset) -> Iterator[Path]:
    """Yield the dataset's directory, cloned if it is not here yet, and keep it from being removed in the block.

    A clone that is here needs no network. Of several processes one clones, and the others wait.

    Raises:
        UsageError: It cannot be had, or has no such directory.
    """
    clone = dataset.clone
    clone.parent.mkdir(exist_ok=True)
    with used(clone):
        if not clone.is_dir():
            with FileLock(clone.parent / ".lock"), tempfile.TemporaryDirectory(prefix=".", dir=clone.parent) as work:
                if not clone.is_dir():
                    _clone(dataset, Path(work, "clone"))
                    Path(work, "clone").rename(clone)
        directory = clone / dataset.path
        if not directory.is_dir() or not directory.resolve().is_relative_to(clone):
            raise UsageError(f"{dataset.url} has no directory {dataset.path} at {dataset.commit[:_SHOWN]}")
        yield directory


def _clone(dataset: Dataset, target: Path) -> None:
    _git(target.parent, "init", "--quiet", target.name)
    # Some servers give only what a branch or a tag names.
    if _git(target, "fetch", "--quiet", "--depth=1", "--no-tags", "--", dataset.url, dataset.commit) and (
        why := _git(target, "fetch", "--quiet", "--", dataset.url, "+refs/*:refs/dataset/*")
    ):
        raise UsageError(f"{dataset.url} cannot be cloned: {why}")
    if why := _git(target, "checkout", "--quiet", "--detach", dataset.commit):
        raise UsageError(f"{dataset.url} has no commit {dataset.commit}: {why}")


def _git(directory: Path, *arguments: str) -> str:
    """Run git in a directory, and return why it failed; empty where it did not."""
    # Of what git sets where it starts pytest itself nothing, and nobody is asked for a password.
    env = {name: value for name, value in host_variables().items() if name not in _OF_A_REPOSITORY}
    env |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    except OSError as error:
        raise UsageError(
            f"a dataset is cloned by git, which cannot be started ({error.strerror}); install it"
        ) from None
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.splitlines() if line.startswith(("fatal: ", "error: "))]
    return lines[0] if lines else f"git {arguments[0]} ended with {done.returncode}"


def unused_clones() -> list[Path]:
    """Return the clones that no session uses."""
    return [clone for clone in sorted(_clones().glob("[!.]*")) if not is_used(clone)]


def remove_clone(clone: Path) -> None:
    """Remove a clone, unless a session uses it."""
    with FileLock(clone.parent / ".lock"):
        remove_unused(clone)


def _clones() -> Path:
    return cache_directory() / "datasets"

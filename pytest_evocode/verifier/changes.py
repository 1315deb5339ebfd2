"""What an agent changed outside of its workspace: every path, by what it is for, and whether it can steer a suite."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pytest_evocode.environments.overlay import is_below
from pytest_evocode.results.records import ChangeClass, ChangesFile
from pytest_evocode.tasks import VerifyIn
from pytest_evocode.verifier.image_facts import ImageFacts

#: What suites use unknowingly. What shells read by themselves, and caches, are put right in a fork.
_STEERING: tuple[ChangeClass, ...] = (
    "interpreters",
    "libraries",
    "configuration",
    "alternatives",
    "path",
    "environments",
    "image",
)
_LISTED = 50
_PROGRAMS = re.compile(r"/(usr/(local/)?)?s?bin(/|$)|/(usr|opt)/(.+/)?s?bin(/|$)")
_LIBRARIES = re.compile(r"/(usr|lib|lib32|lib64|libx32|opt)(/|$)")
_PYTHON = re.compile(r"/(site-packages|dist-packages|sitecustomize(\.py)?|usercustomize(\.py)?)(/|$)")
# Python runs these before a program, and asks nobody.
_PYTHON_START_UP = re.compile(
    r"/(sitecustomize|usercustomize)(/|\.[^/]*$|$)|/\.local/lib/python[^/]*/site-packages/[^/]+\.pth$"
)
_CACHE = "__pycache__"


@dataclass(frozen=True)
class Changes:
    """Paths that an agent changed, by class; each class in order."""

    paths: Mapping[ChangeClass, tuple[str, ...]] = field(default_factory=dict)

    def inside(self, directory: str) -> Changes:
        """Return those in a directory."""
        place = [directory.rstrip("/")]
        found = {kind: tuple(path for path in paths if is_below(path, place)) for kind, paths in self.paths.items()}
        return Changes({kind: paths for kind, paths in found.items() if paths})

    def steering(self, rests_on: VerifyIn) -> tuple[str, ...]:
        """Return the paths that can steer a suite, or could if it ran in the agent's system, in order."""
        # Where the agent works on, its start-up files stay.
        classes = (*_STEERING, "start-up") if rests_on == "place" else _STEERING
        return tuple(sorted(path for each in classes for path in self.paths.get(each, ())))

    @property
    def caches(self) -> tuple[str, ...]:
        """Files in Python's caches of what a suite may use."""
        return self.paths.get("caches", ())

    @property
    def start_up(self) -> tuple[str, ...]:
        """Files that shells and Pythons run before anything else."""
        python = (path for paths in self.paths.values() for path in paths if _PYTHON_START_UP.search(path))
        return tuple(sorted({*self.paths.get("start-up", ()), *python}))

    @property
    def everything(self) -> tuple[str, ...]:
        """All paths, in order."""
        return tuple(sorted(path for paths in self.paths.values() for path in paths))

    @property
    def file(self) -> ChangesFile:
        """The list as the results keep it, and with a name that need not be UTF-8 made readable."""
        paths = {each: tuple(map(_as_text, found)) for each, found in sorted(self.paths.items())}
        return ChangesFile(paths=paths)


def _as_text(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def listed(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the first paths, and how many more there are."""
    shown = tuple(map(_as_text, paths[:_LISTED]))
    return shown if len(paths) <= _LISTED else (*shown, f"and {len(paths) - _LISTED} more")


def classify(paths: Iterable[str], image: ImageFacts, workdir: str, entry: Sequence[str] = ()) -> Changes:
    """Return the paths by class, without those in the workspace that are nothing of the image's.

    Args:
        paths: Paths that are not as in the image, those of :func:`looked_at` in the workspace among them.
        image: What the image was like as built.
        workdir: The workspace.
        entry: Files of the image's ENTRYPOINT, which a fork starts beside its suite wherever they lie.
    """
    found: dict[ChangeClass, list[str]] = {}
    inside = [workdir.rstrip("/")] if workdir.strip("/") else []
    for path in sorted(paths):
        if path in entry and is_below(path, inside):
            kind: ChangeClass | None = "interpreters"
        else:
            kind = _class_inside(path, image) if is_below(path, inside) else _class_outside(path, image)
        if kind is not None:
            found.setdefault(kind, []).append(path)
    return Changes({kind: tuple(of_kind) for kind, of_kind in found.items()})


def looked_at(image: ImageFacts) -> tuple[str, ...]:
    """Return what is looked at even in the workspace: virtual environments of the image, and directories of PATH."""
    return (*image.environments, *image.path)


def _class_inside(path: str, image: ImageFacts) -> ChangeClass | None:
    if _concerns(path, image.environments):
        return "caches" if _in_cache(path) else "environments"
    # A program of the agent's may be on PATH. One that takes the name of a tool is found before that.
    directory, _, name = path.rpartition("/")
    return "path" if name in image.programs and directory in image.path else None


def _class_outside(path: str, image: ImageFacts) -> ChangeClass:
    kind = _class_but_cache(path, image)
    return "caches" if kind in _STEERING and _in_cache(path) else kind


def _class_but_cache(path: str, image: ImageFacts) -> ChangeClass:
    if _concerns(path, image.environments):
        return "environments"
    if is_below(path, ["/etc/alternatives"]):
        return "alternatives"
    if is_below(path, ["/etc"]):
        return "configuration"
    if _PROGRAMS.match(path):
        return "interpreters"
    if _LIBRARIES.match(path) or _PYTHON.search(path):
        return "libraries"
    if _concerns(path, image.named):
        return "path"
    if _concerns(path, image.homes) and _concerns(path, image.start_up_places):
        return "start-up"
    if is_below(path, ["/root", "/home", *image.homes]):
        return "home"
    return "image" if path in image.own else "other"


def _concerns(path: str, places: Iterable[str]) -> bool:
    """Tell whether a path is one of some places, in one of them, or in the way of one of them."""
    return any(path == each or path.startswith(f"{each}/") or each.startswith(f"{path}/") for each in places)


def _in_cache(path: str) -> bool:
    return _CACHE in PurePosixPath(path).parts

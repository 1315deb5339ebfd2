"""What of the agent's files a suite finds: the workspace, what the task declares, and what its reference changes, too.

All else stays behind, whatever it is (default-deny). What changed outside of the workspace is known from the layers of
the snapshot, and what the reference solution changes there is found out by playing it.
"""

from __future__ import annotations

import posixpath
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from pytest_evocode.environments import Environment, Snapshot, require_readable
from pytest_evocode.environments.overlay import is_below
from pytest_evocode.errors import UnreadableFile
from pytest_evocode.results.directory import recorded_changes, write_changes
from pytest_evocode.results.records import ChangedPaths, ChangesFile
from pytest_evocode.tasks import Round, Task
from pytest_evocode.trial.context import TrialContext, writing_results

Carry = Literal["declared", "reference", "changed", "system"]
"""How much of the agent's system a clean environment has: the workspace and what the task declares; what the reference
solution changes, too; all that was changed; or all of it, as it is."""
ARTIFACTS = "/logs/artifacts"
WHOLE_SYSTEM = "/"
"""What a verdict trusts whose suite ran where the agent works."""
_OWN_DIRECTORIES = ("/logs", "/tests", "/solution")  # of the harness: a suite finds none of what an agent left there
_LISTED = 50
_DEBIAN = re.compile(r"/var/lib/dpkg/info/([^/:]+)(?::[^/]+)?\.list")
_PYTHON = re.compile(r"(?:/[^/]+)+/([^/]+?)-[^/-]+\.dist-info/(?:RECORD|METADATA)")
_REQUIRED = re.compile(r"^Requires-Dist:\s*([\w.-]+)", re.MULTILINE)
_LIST_LIMIT = 4 * 2**20  # bytes of a list
_MOST_LISTS = 1000  # lists that are read
_LOOKING = 60.0  # seconds
_PYTHONS_OWN = r"(.*/(site-packages|dist-packages|lib-dynload|python3\.[0-9]+)|/tests)"


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs from the image in a snapshot and may matter to a suite; each in order."""

    outside: tuple[str, ...] = ()
    """Paths that are not in :func:`trees_of`, and not the harness's own."""
    modules: tuple[str, ...] = ()
    """Python modules and packages at the top of the workspace, which is where Python may look first."""
    entry: tuple[str, ...] = ()
    """Files in the workspace that the image's ENTRYPOINT is started from."""
    workspace: bool = False
    """Whether the workspace itself, or what it is in, was deleted, replaced or given another mode or owner."""

    @property
    def noted(self) -> tuple[str, ...]:
        """What is worth to be known of a reference solution."""
        return (*self.outside, *self.modules)


@dataclass(frozen=True, slots=True)
class Carried:
    """What an agent changed outside of its workspace and of what the task declares, by what becomes of it."""

    carried: tuple[str, ...] = ()
    """Absolute paths that a suite, or the program under test, finds as the agent left them."""
    left_behind: tuple[str, ...] = ()
    trusts: tuple[str, ...] = ()
    """Of those carried, what the verdict has to say; and files in the workspace that the image runs by itself."""
    changes: Changes = Changes()

    @property
    def named(self) -> tuple[str, ...]:
        """What a verdict says that it trusts, cut where that is much."""
        return _cut(self.trusts)

    @property
    def file(self) -> ChangesFile:
        """The list as the results keep it."""
        found = {"carried": self.carried, "left behind": self.left_behind}
        return ChangesFile(paths={kind: tuple(map(_as_text, paths)) for kind, paths in found.items() if paths})


class Reference(Protocol):
    """What is known of a task's reference solutions; :class:`~pytest_evocode.trial.references.ReferenceChanges`.

    Methods raise Cancelled and EnvironmentFault.
    """

    def after(self, round_: Round) -> frozenset[str]:
        """Return :attr:`Changes.noted` after the solutions up to a round."""

    def note(self, index: int, paths: Iterable[str]) -> None:
        """Note these paths as the solutions' own attempt found them."""

    def played(self, last: Round) -> AbstractContextManager[Environment]:
        """Play the solutions up to a round and yield where; raises AgentFault and TaskError where they fail."""

    def stop(self) -> None:
        """End what is still done to know them."""


class Carrying:
    """Decides what comes along into the environments of one attempt's suites.

    Methods raise :class:`~pytest_evocode.errors.EnvironmentFault`.
    """

    def __init__(self, context: TrialContext, reference: Reference) -> None:
        self._context = context
        self._reference = reference

    def find(self, snapshot: Snapshot, environment: Environment, round_: Round, carry: Carry) -> Carried:
        """Return what becomes of what the agent changed; the reference solutions may be played for that."""
        changes = changes_of(self._context.task, snapshot, environment)
        # The program under test of a separate suite runs in all of the agent's system, and that suite in none.
        if round_.verify_in == "separate" or carry in ("changed", "system"):
            return Carried(changes.outside, changes=changes)
        if round_.suite_environment is not None:
            return Carried((), changes.outside, changes=changes)
        if carry == "declared" or not changes.outside:
            return Carried((), changes.outside, changes.entry, changes)
        changed, reference = frozenset(changes.outside), self._reference.after(round_)
        carried = add_packages(changed & reference, changed, reference, snapshot, environment)
        listed = tuple(sorted(carried))
        return Carried(listed, tuple(sorted(changed - carried)), (*changes.entry, *listed), changes)

    def marked(self, carried: Carried, round_: Round, place: Environment) -> Carried:
        """Return what a suite that passed in ``place`` trusts with modules of the agent's that may be why.

        Modules that the reference solution has, too, are the product.
        """
        if not (modules := carried.changes.modules):
            return carried
        own = [path for path in modules if path not in self._reference.after(round_)]
        return replace(carried, trusts=(*carried.trusts, *find_shadowing(place, own, round_.tests)))

    def recorded(self, carried: Carried) -> ChangedPaths:
        """Write the list into the results, and return what a verdict says of it."""
        if (directory := self._context.directory) is not None:
            with writing_results():
                write_changes(directory.path, carried.file, self._context.scrubber)
        return recorded_changes(carried.file, self._context.scrubber)


def trees_of(task: Task, environment: Environment) -> tuple[str, ...]:
    """Return the files and directories that always come along, whole."""
    # An agent that works in / has no workspace, only a system.
    workspace = () if environment.workdir in ("/", "/usr") else (environment.workdir,)
    return (*workspace, ARTIFACTS, *task.state)


def changes_of(task: Task, snapshot: Snapshot, environment: Environment) -> Changes:
    """Find what differs from the image in a snapshot of an environment."""
    always = (*(tree for tree in trees_of(task, environment) if tree != environment.workdir), *_OWN_DIRECTORIES)
    found = [path for path in snapshot.changed_paths(always) if not is_below(path, always)]
    if environment.workdir not in trees_of(task, environment):
        return Changes(tuple(found))
    inside = [path for path in found if is_below(path, [environment.workdir])]
    modules = dict.fromkeys(module for path in inside if (module := _module(path, environment.workdir)))
    outside = tuple(path for path in found if not is_below(path, [environment.workdir]))
    started_from = environment.entry_point.files if environment.entry_point is not None else ()
    entry = tuple(path for path in started_from if path in inside)
    return Changes(outside, tuple(modules), entry, is_below(environment.workdir, found))


def _module(path: str, workdir: str) -> str:
    """Return the path of the module at the top of the workspace that a file there belongs to; empty if none.

    >>> [_module(f"/app/{path}", "/app") for path in ("a.py", "b/c/d.py", "e.txt", "f-g.py", "h.cpython-311.so")]
    ['/app/a.py', '/app/b', '', '', '/app/h.cpython-311.so']
    """
    first, below, _ = path.removeprefix(f"{workdir}/").partition("/")
    is_code = path.endswith((".py", ".pyc", ".so"))
    return f"{workdir}/{first}" if is_code and (first if below else first.partition(".")[0]).isidentifier() else ""


def _cut(paths: Sequence[str]) -> tuple[str, ...]:
    shown = tuple(map(_as_text, paths[:_LISTED]))
    return shown if len(paths) <= _LISTED else (*shown, f"and {len(paths) - _LISTED} more")


def _as_text(path: str) -> str:
    """Return a path whose name need not be UTF-8 as text that can be written."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def add_packages(
    carried: frozenset[str],
    changed: frozenset[str],
    reference: frozenset[str],
    snapshot: Snapshot,
    environment: Environment,
) -> frozenset[str]:
    """Return the carried paths with those of the packages among the changed ones that the reference installed, too.

    Files are found by the package managers' own lists, because the two need not have the same version or dependencies,
    and so not the same paths. A list is the agent's word: what comes along by it is named in the verdict, as all that
    comes along. Raises :class:`~pytest_evocode.errors.EnvironmentFault` when the engine fails.
    """
    lists = {path: name for path in changed if (name := _package(path)) is not None}
    wanted = {name for path in reference if (name := _package(path)) is not None}
    if changed == carried or not wanted & set(lists.values()):
        return carried
    texts = _read(list(lists)[:_MOST_LISTS], snapshot, environment)
    # What a package requires is of it, in whichever version each is.
    while more := {name for path, text in texts.items() if lists[path] in wanted for name in _requires(text)} - wanted:
        wanted |= more
    files = {file for path, text in texts.items() if lists[path] in wanted for file in _files(path, text)}
    return carried | (files & changed)


def _package(path: str) -> str | None:
    """Return the package whose list a path is, as pip or dpkg call it.

    >>> _package("/usr/lib/python3/site-packages/Flask_Cors-6.0.dist-info/RECORD")
    'flask-cors'
    >>> _package("/var/lib/dpkg/info/zlib1g:amd64.list"), _package("/usr/bin/env")
    ('dpkg zlib1g', None)
    """
    if found := _DEBIAN.fullmatch(path):
        return f"dpkg {found[1]}"
    found = _PYTHON.fullmatch(path)
    return _normal(found[1]) if found else None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _requires(text: str) -> Iterator[str]:
    return map(_normal, _REQUIRED.findall(text))


def _files(path: str, text: str) -> Iterable[str]:
    r"""Return the files that a package's list names, with its own.

    >>> sorted(_files("/v/lib/a-1.dist-info/RECORD", "a/x.py,sha256=1,2\n../bin/a,,\n../../etc/passwd,,\n"))
    ['/v/bin/a', '/v/lib/a-1.dist-info/METADATA', '/v/lib/a-1.dist-info/RECORD', '/v/lib/a/x.py']
    """
    if found := _DEBIAN.fullmatch(path):
        info = posixpath.dirname(path)
        yield from (f"{info}/{found[1]}.{kind}" for kind in ("list", "md5sums", "triggers", "shlibs", "symbols"))
        for line in text.splitlines():
            # The package may say /lib, which is a link to /usr/lib.
            yield from (line, f"/usr{line}")
        return
    directory = posixpath.dirname(posixpath.dirname(path))
    programs = re.compile(r"(?:\.\./)+bin/[^/]+")
    yield from (f"{posixpath.dirname(path)}/{name}" for name in ("RECORD", "METADATA"))
    for line in text.splitlines():
        name = line.partition(",")[0].strip('"')
        file = posixpath.normpath(f"{directory}/{name}")
        if file.startswith(f"{directory}/") or programs.fullmatch(name):
            yield file


def _read(paths: list[str], snapshot: Snapshot, environment: Environment) -> Mapping[str, str]:
    """Read files of a snapshot in a fork in which nothing of it is run."""
    fork = environment.fork(snapshot, network="no-network")
    try:
        fork.start()
        found = fork.read_files(dict.fromkeys(paths, _LIST_LIMIT))
    finally:
        fork.stop()
    texts = {}
    for path, contents in found.items():
        try:
            texts[path] = (require_readable(contents) or b"").decode("utf-8", "surrogateescape")
        except UnreadableFile:
            continue
    return texts


def find_shadowing(environment: Environment, modules: Sequence[str], tests: Sequence[Path]) -> list[str]:
    """Return those of some modules, by path, that have the name of one of Python's, of the suite's, or installed.

    ``python -m pytest`` and ``python3 -`` look in the working directory first, so that ``/app/pytest.py`` or
    ``/app/json.py`` decides what the suite says, whatever the rest of its environment is like.

    Args:
        environment: Where the suite has run, with what it installed.
        modules: Modules that the agent made at the top of the workspace.
        tests: The directories of the suite. A word of its texts may be the name of a module that it runs or imports.

    Raises:
        EnvironmentFault: The environment failed.
    """
    by_name: dict[str, list[str]] = {}
    for path in modules:
        by_name.setdefault(path.rpartition("/")[2].partition(".")[0], []).append(path)
    names = {*sys.stdlib_module_names, *_words(tests)} & by_name.keys()
    if others := by_name.keys() - names:
        names |= _installed(environment, others)
    return sorted(path for name in names for path in by_name[name])


def _words(tests: Sequence[Path]) -> Iterator[str]:
    for directory in tests:
        for file in directory.rglob("*"):
            if file.suffix in (".sh", ".py") and file.is_file():
                yield from re.findall(r"\w+", file.read_text(encoding="utf-8", errors="replace"))


def _installed(environment: Environment, names: set[str]) -> set[str]:
    """Return which names modules have where Python looks after the working directory; all if nothing can tell."""
    same = rf"{_PYTHONS_OWN}/({'|'.join(map(re.escape, names))})(\.py|/__init__\.py|\..*\.so|\.so)"
    argv = ["find", "/", "-xdev", "-path", environment.workdir, "-prune", "-o"]
    argv += ["-regextype", "posix-extended", "-regex", same, "-print0"]
    with tempfile.TemporaryFile() as output:
        looked = environment.exec(argv, user="0", cwd="/", timeout=_LOOKING, stdout=output)
        output.seek(0)
        found = output.read().decode("utf-8", "replace").split("\0")[:-1]
    if looked.exit_code not in (0, 1):  # With 1 it complains of what it may not read, and tells of the rest.
        return names
    return {match[3] for path in found if (match := re.fullmatch(same, path))}

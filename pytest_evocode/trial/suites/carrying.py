"""What of the agent's files a suite finds: the workspace, what the task declares, and what its reference changes, too.

All else stays behind, whatever it is (default-deny). What changed outside of the workspace is known from the layers of
the snapshot, and what the reference solution changes there is found out by playing it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from pytest_evocode.environments import Environment, Snapshot
from pytest_evocode.environments.entry_points import entry_files
from pytest_evocode.environments.overlay import is_below
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.results.changes import recorded_changes, write_changes
from pytest_evocode.results.records import ChangesFile
from pytest_evocode.tasks import Round, Task
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.suites.packages import add_packages
from pytest_evocode.trial.suites.shadowing import find_shadowing
from pytest_evocode.verifier import SuiteRun

Carry = Literal["declared", "reference", "changed", "system"]
"""How much of the agent's system a clean environment has: the workspace and what the task declares; what the reference
solution changes, too; all that was changed; or all of it, as it is."""
ARTIFACTS = "/logs/artifacts"
WHOLE_SYSTEM = "/"
"""What a verdict trusts whose suite ran where the agent works."""
_OWN_DIRECTORIES = ("/logs", "/tests", "/solution")  # of the harness: a suite finds none of what an agent left there
_LISTED = 50


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
    def file(self) -> ChangesFile:
        """The list as the results keep it."""
        found = {"carried": self.carried, "left behind": self.left_behind}
        return ChangesFile(paths={kind: tuple(map(_as_text, paths)) for kind, paths in found.items() if paths})


class Reference(Protocol):
    """What is known of a task's reference solutions; :class:`~pytest_evocode.trial.reference_changes.ReferenceChanges`.

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

    def attach(self, suite: SuiteRun, carried: Carried, round_: Round) -> SuiteRun:
        """Return a suite's run with what it rests on in its verdict; the list is written into the results."""
        recorded = recorded_changes(carried.file, self._context.scrubber)
        if (directory := self._context.directory) is not None:
            try:
                write_changes(directory.path, carried.file, self._context.scrubber)
            except OSError as error:
                raise EnvironmentFault(f"the results could not be written: {error}") from error
        return suite.saying(rests_on=round_.verify_in, changed=recorded, trusts=_cut(carried.trusts))


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
    entry = tuple(path for path in entry_files(environment) if path in inside)
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

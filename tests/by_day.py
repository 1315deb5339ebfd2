"""What a run by day leaves to the night. Marks say it where the tests stand, and no list names a test.

- ``nightly``: the whole function.
- ``matrix``: all parameter sets of a function but the first and one more, which the commit chooses; with a parameter's
  name, as in ``matrix("attack")``, all but the first with each of its values and one more.
- ``guards("trial")``: where no change reaches this package, all tests of a module but the first and one more.

``--night`` leaves nothing out, and neither does a session that names its tests, by ``::`` or ``--lf``.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

#: Names the commit to compare with, for branches that did not begin at the remote's own.
BASE = "EVOCODE_TESTS_BASE"
_PACKAGE = "pytest_evocode"


@dataclass(frozen=True)
class Changes:
    """What changed since the branch began, as it travels to workers."""

    commit: str
    """The newest; empty outside of a repository."""
    since: str
    """The commit that it is compared with; empty where none was found, and then everything counts as changed."""
    files: Sequence[str]
    """Paths from the root."""
    reached: Sequence[str]
    """Packages in which some module imports a changed one, or one that does."""

    def reach(self, package: str, test: PurePath) -> bool:
        """Return whether a change reaches a package, a test's file, or what lies beside it and is no test."""
        near = [path for path in map(PurePath, self.files) if path.parent in test.parents]
        return (
            not self.since
            or package in self.reached
            or any(path == test or (path.suffix == ".py" and not path.match("test_*.py")) for path in near)
        )

    def __str__(self) -> str:
        by = f"by commit {self.commit[:10] or 'none'}"
        if not self.since:
            return f"{by}, all packages, as no commit to compare with was found"
        return f"{by}, changes since {self.since[:10]} reach {', '.join(self.reached) or 'no package'}"


class ByDay:
    """Deselects what is left to the night, and says how much that is."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._left: Counter[str] = Counter()
        self._all = (
            config.option.night or config.getoption("lf", False) or any("::" in argument for argument in config.args)
        )
        # Workers choose as their controller does, also when somebody commits meanwhile.
        received = getattr(config, "workerinput", {}).get("by_day")
        self._changes = Changes(**received) if received else changes(config.rootpath)

    def pytest_report_header(self) -> str:
        """Say what the choice is made by."""
        return "tests: all" if self._all else f"tests: those of the day, {self._changes}; --night runs all"

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        """Send a worker what the choice is made by."""
        node.workerinput["by_day"] = asdict(self._changes)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Choose among what other options have left."""
        if self._all:
            return
        left = left_to_the_night(items, self._changes, self._config.rootpath)
        self._left = Counter(left.values())
        self._config.hook.pytest_deselected(items=[*left])
        items[:] = [item for item in items if item not in left]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Tell the controller what this worker has left out."""
        if (output := getattr(self._config, "workeroutput", None)) is not None:
            output["by_day"] = dict(self._left)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: WorkerController) -> None:
        """Take what a worker has left out; all collect the same."""
        self._left = Counter(getattr(node, "workeroutput", {}).get("by_day", self._left))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how much was left to the night."""
        if self._left:
            left = ", ".join(f"{count} {reason}" for reason, count in sorted(self._left.items()))
            terminalreporter.write_line(f"left to the night: {left}")


def left_to_the_night(items: Iterable[pytest.Item], changes: Changes, root: Path) -> dict[pytest.Item, str]:
    """Return the tests that a run by day leaves out, each with the reason."""
    left: dict[pytest.Item, str] = {}
    modules, functions = defaultdict[Path, _Group](dict), defaultdict[str, _Group](dict)
    for item in items:
        guards, matrix = item.get_closest_marker("guards"), item.get_closest_marker("matrix")
        if item.get_closest_marker("nightly"):
            left[item] = "nightly tests"
        elif guards and not changes.reach(guards.args[0], item.path.relative_to(root)):
            modules[item.path][item] = None
        elif matrix:
            callspec: Any = getattr(item, "callspec", None)
            value = callspec.params.get(matrix.args[0]) if callspec and matrix.args else None
            functions[item.nodeid.partition("[")[0]][item] = value
    for groups, reason in ((modules.values(), "tests of what did not change"), (functions.values(), "parameter sets")):
        left |= {item: reason for group in groups for item in _others(group, changes.commit)}
    return left


#: Tests, each with the value that the first is kept of.
_Group = dict[pytest.Item, Any]


def _others(group: _Group, commit: str) -> Iterator[pytest.Item]:
    """Yield all tests but the first with each value and one that the commit chooses."""
    seen: list[Any] = []
    others = []
    for item, value in group.items():
        if value in seen:
            others.append(item)
        else:
            seen.append(value)
    if others:
        digest = sha256(f"{commit} {others[0].nodeid}".encode()).digest()
        chosen = int.from_bytes(digest) % len(others)
        yield from (item for number, item in enumerate(others) if number != chosen)


def changes(root: Path) -> Changes:
    """Return what changed in a work tree since its branch began.

    That is where it left the remote's branch. On that branch itself it is the last commit that is older than a day,
    since a night has seen all before it.
    """

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    commit = git("rev-parse", "HEAD")
    since = os.environ.get(BASE) or git("merge-base", "HEAD", "origin/HEAD") or git("merge-base", "HEAD", "origin/main")
    if since in ("", commit):
        since = git("rev-list", "-1", "--before=24 hours ago", "HEAD")
    if not since:
        return Changes(commit, "", (), ())
    files = f"{git('diff', '--name-only', since)}\n{git('ls-files', '--others', '--exclude-standard')}".split("\n")
    return Changes(commit, since, [path for path in files if path], sorted(_reached(files)))


def _reached(files: Iterable[str]) -> set[str]:
    """Return the packages that changes of files reach, by the graph of all imports."""
    import grimp  # Loads a library in Rust, and workers need none.

    graph = grimp.build_graph(_PACKAGE, cache_dir=None)
    reached = set()
    for file in files:
        path = PurePath(file)
        if path.parts and path.parts[0] == _PACKAGE:
            # A file that is no module is one of its package, and so is a module that is gone.
            names = (".".join(each.parts) for each in (path.with_suffix(""), *path.parents))
            module = next((name for name in names if name in graph.modules), _PACKAGE)
            reached |= {module, *graph.find_downstream_modules(module)}
    return {module.split(".")[1] for module in reached if "." in module}

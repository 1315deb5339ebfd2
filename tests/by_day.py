"""What a run by day leaves to the night. Marks say it where the tests stand, and no list names a test.

- ``nightly``: the whole function.
- ``matrix``: all parameter sets of a function but the first; with a parameter's name, as in ``matrix("attack")``, all
  but the first with each of its values.
- ``guards("trial")``: where no change reaches this package, all tests of a module but the first.
- ``turns(3)``: two of three functions whose own lines and the package that their folder is named for have not changed.
  Whose turn it is, the commit chooses.

Of ``matrix`` and ``guards`` one more of each folder is run, which the commit chooses, too.

``--night`` leaves nothing out, and neither does a session that names its tests, by ``::`` or ``--lf``. Before a commit
``--changed`` runs the tests of packages that have changed since the last one, and test files that have changed.
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

#: A variable that names the commit to compare with, where the remote's branch is not known or not the right one.
BASE = "EVOCODE_TESTS_BASE"
_PACKAGE = "pytest_evocode"
_MARK = re.compile(r"[-+]@pytest\.mark\.(?!parametrize)\w+(\(.*\))?( +#.*)?")


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
    lines: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict)
    """Of each test file, first and last numbers of lines that are new, or after which there are fewer."""

    def reach(self, package: str, test: PurePath) -> bool:
        """Return whether a change reaches a package, a test's file, or what lies beside it and is no test."""
        near = [path for path in map(PurePath, self.files) if path.parent == test.parent]
        return (
            not self.since
            or package in self.reached
            or any(path == test or (path.suffix == ".py" and not path.match("test_*.py")) for path in near)
        )

    def own(self, test: PurePath, root: Path) -> bool:
        """Return whether the test file has changed, or the package that its folder is named for."""
        return str(test) in self.files or self.package(test, root)

    def package(self, test: PurePath, root: Path) -> bool:
        """Return whether a file has changed in the package that the test's folder is named for, or lies in."""
        named = test.parent.parts[1:]
        while named and not root.joinpath(_PACKAGE, *named).is_dir():
            named = named[:-1]
        folder = (_PACKAGE, *named)
        below = (PurePath(file).parts[: len(folder)] == folder for file in self.files)
        return not self.since or (bool(named) and any(below))

    def touch(self, function: Callable[..., object], test: PurePath) -> bool:
        """Return whether lines of a test's function have changed."""
        if not (changed := self.lines.get(str(test))):
            return False
        text, first = inspect.getsourcelines(inspect.unwrap(function))
        return any(begin < first + len(text) and first <= end for begin, end in changed)

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
        since = "HEAD" if config.option.changed else os.environ.get(BASE, "")
        self._changes = Changes(**received) if received else changes(config.rootpath, since)

    def pytest_report_header(self) -> str:
        """Say what the choice is made by."""
        return "tests: all" if self._all else f"tests: those of the day, {self._changes}; --night runs all"

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        """Send a worker what the choice is made by."""
        node.workerinput["by_day"] = asdict(self._changes)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """With ``--changed`` import nothing of what did not change, but for the tests of the tree itself."""
        test = collection_path.relative_to(self._config.rootpath)
        if self._config.option.changed and test.suffix == ".py" and len(test.parts) > 2:
            return not self._changes.own(test, self._config.rootpath) or None
        return None

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
    seen: defaultdict[object, list[object]] = defaultdict(list)
    folders: defaultdict[Path, list[pytest.Item]] = defaultdict(list)
    # Files have many tests, functions many parameter sets, and days many changes.
    reach, package, touch = cache(changes.reach), cache(changes.package), cache(changes.touch)
    for item in items:
        guards, matrix = item.get_closest_marker("guards"), item.get_closest_marker("matrix")
        callspec: Any = getattr(item, "callspec", None)
        function: Any = getattr(item, "function", None)  # A doctest has none, and no mark.
        test = item.path.relative_to(root)
        group: object
        if item.get_closest_marker("nightly"):
            left[item] = "nightly tests"
            continue
        turns = item.get_closest_marker("turns")
        if turns and not (
            _has_its_turn(item, turns.args[0], changes.commit) or package(test, root) or touch(function, test)
        ):
            left[item] = "tests of other turns"
            continue
        if guards and not reach(guards.args[0], test):
            group, value, reason = item.path, None, "tests of what did not change"
        elif matrix and callspec:
            group, reason = item.nodeid.partition("[")[0], "parameter sets"
            value = callspec.params.get(matrix.args[0]) if matrix.args else None
        else:
            continue
        if value in seen[group]:
            left[item] = reason
            folders[item.path.parent].append(item)
        seen[group].append(value)
    for folder in folders.values():
        digests = {sha256(f"{changes.commit} {item.nodeid}".encode()).digest(): item for item in folder}
        del left[digests[min(digests)]]
    return left


def _has_its_turn(item: pytest.Item, number: int, commit: str) -> bool:
    function = item.nodeid.partition("[")[0]
    return int(sha256(f"{function} {commit}".encode()).hexdigest(), 16) % number == 0


def changes(root: Path, since: str = "") -> Changes:
    """Return what changed in a work tree since a commit, by default that at which its branch left the remote's.

    On the remote's branch itself it is what changed since the last night, which has seen all before it.
    """

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    commit = git("rev-parse", "HEAD")
    if since:
        since = git("rev-parse", "--verify", "--quiet", f"{since}^{{commit}}")
    elif (since := git("merge-base", "HEAD", "origin/HEAD")) in ("", commit):
        since = git("rev-list", "-1", f"--before={_last_night(datetime.now(UTC)).isoformat()}", "HEAD")
    if not since:
        return Changes(commit, "", (), ())
    others = git("ls-files", "--others", "--exclude-standard").split("\n")
    files = [path for path in (*git("diff", "--name-only", "--no-renames", since).split("\n"), *others) if path]
    lines = _lines(git("diff", "--unified=0", "--no-renames", since, "--", "tests"))
    lines |= {path: [(1, sys.maxsize)] for path in others}
    return Changes(commit, since, files, sorted(_reached(files)), lines)


def _lines(diff: str) -> dict[str, list[tuple[int, int]]]:
    """Return which lines of each file a diff without context changes, but for marks: they say when a test is run."""
    lines: dict[str, list[tuple[int, int]]] = {}
    for file in re.split(r"^diff --git ", diff, flags=re.MULTILINE)[1:]:
        head, *hunks = re.split(r"^@@ .*\+(\d+)(?:,(\d+))? @@.*\n", file, flags=re.MULTILINE)
        name = re.search(r"^\+\+\+ b/(.+)$", head, re.MULTILINE)
        if name:
            lines[name[1]] = [
                (int(begin), int(begin) + max(int(count or 1) - 1, 0))
                for begin, count, text in zip(hunks[::3], hunks[1::3], hunks[2::3], strict=True)
                if not all(map(_MARK.fullmatch, text.splitlines()))
            ]
    return lines


def _last_night(now: datetime) -> datetime:
    """Return when the newest nightly run began; .github/workflows/nightly.yml says when."""
    began = now.replace(hour=3, minute=17, second=0, microsecond=0)
    return began if began <= now else began - timedelta(days=1)


def _reached(files: Iterable[str]) -> set[str]:
    """Return the packages that changes of files reach, by the graph of all imports."""
    try:
        import grimp  # Loads a library in Rust, and workers need none.
    except ModuleNotFoundError:  # Only `--help` and the like come here without the tests' packages: it is all the same.
        return {path.stem for path in Path(__file__).parents[1].joinpath(_PACKAGE).glob("[!_]*")}

    graph = grimp.build_graph(_PACKAGE, cache_dir=None)
    # A whole package counts as changed: some of its files are data, or are run in an environment and never imported.
    paths = [PurePath(file) for file in files]
    changed = {f"{_PACKAGE}.{path.parts[1]}".removesuffix(".py") for path in paths if path.parts[:1] == (_PACKAGE,)}
    reached = {*changed}
    for package in changed & graph.modules:
        reached |= graph.find_downstream_modules(package, as_package=True)
    return {module.split(".")[1] for module in reached if "." in module}

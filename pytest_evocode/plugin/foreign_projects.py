"""Projects that are not the user's own, such as a clone of a benchmark: a session with tasks sees their tasks only.

Their ``addopts``, ``asyncio_mode`` or conftest.py are made for their own tests and the plugins that these need. pytest
would still take them, since it looks for settings from its arguments upwards. The user's own is what pytest is started
in and all above, and any project that speaks of this plugin in its settings or its conftest.py.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.names import TASK_FILE
from pytest_evocode.plugin.pytest_private import (
    forget_settings,
    leave_out_options,
    names_of_settings,
    replace_settings,
)

if TYPE_CHECKING:
    from pytest_evocode.plugin.session import EvocodeSession

_REPOSITORY = ".git"
_SETTINGS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""The files by which pytest knows a project."""
_CONFTEST = "conftest.py"
_STRICT = ("--strict", "--strict-config")
_OURS = b"evocode"


class ForeignProjects:
    """Which directories belong to projects that are not the user's own.

    Args:
        here: The directory that pytest is started in.
        arguments: The paths that it is called with, absolute.
    """

    def __init__(self, here: Path, arguments: Sequence[Path]) -> None:
        # A test module that is named is to be run, with all that its project has for it.
        named = [path for path in arguments if os.path.isfile(path) and path.name != TASK_FILE]
        self._own = frozenset(each for path in (here / TASK_FILE, *named) for each in path.parents)
        self._known: dict[Path, bool] = {}
        found = (self._outermost(path) for path in arguments)
        self.roots = tuple(dict.fromkeys(root for root in found if root is not None))
        """The projects that arguments are, or lie in."""

    def hold(self, directory: Path) -> bool:
        """Tell whether a directory is such a project, or lies in one."""
        if directory in self._own:
            return False
        if directory not in self._known:
            # Not by its settings: a part of the user's own project may have some, too.
            is_clone = _is_repository(directory) and not _speaks_of_us(directory)
            self._known[directory] = is_clone or directory in self.roots or self.hold(directory.parent)
        return self._known[directory]

    def add(self, clone: Path) -> None:
        """Take a directory for such a project, whatever it speaks of."""
        self._known[clone] = True

    def stand_in(self, directory: Path) -> Path:
        """Return where pytest is to look for conftest files in place of a directory that :meth:`hold` is true of."""
        above = (each / _CONFTEST for each in directory.parents if not self.hold(each))
        return next((path for path in above if path.is_file()), directory)

    def _outermost(self, path: Path) -> Path | None:
        around = (each for each in (*reversed(path.parents), path) if each not in self._own)
        return next((each for each in around if _is_project(each) and not _speaks_of_us(each)), None)


_PROJECTS = pytest.StashKey[ForeignProjects]()
_UNKNOWN = pytest.StashKey[list[str]]()


def foreign_projects(config: pytest.Config) -> ForeignProjects | None:
    """Return which projects are foreign to a session; None where it runs and checks no tasks."""
    return config.stash.get(_PROJECTS, None)


def keep_to_own(config: pytest.Config, args: list[str]) -> None:
    """Find the foreign projects of a session with tasks, and have it be as if pytest had not found their settings.

    Args:
        config: The configuration, before conftest files are loaded.
        args: The command line, from which options that such settings add are taken.
    """
    namespace, here = config.known_args_namespace, config.invocation_params.dir
    places = (os.path.abspath(here / argument.split("::")[0]) for argument in namespace.file_or_dir)
    paths = [Path(place) for place in places if os.path.exists(place)]
    config.stash[_PROJECTS] = projects = ForeignProjects(here, paths)
    found = config.inipath
    if found is not None and not namespace.inifilename and projects.hold(found.parent):
        around = Path(os.path.commonpath(paths))
        # pytest takes no settings from here for what lies elsewhere, and names tests by what is around them.
        is_elsewhere = not around.is_relative_to(here) and around != Path(around.root)
        root = around if around.is_dir() else around.parent
        replace_settings(config, args, root=root if is_elsewhere else None)


def leave_out_unknown(config: pytest.Config, args: list[str]) -> None:
    """Have a session with tasks begin without the options that pytest's ini file adds for plugins that are not here.

    To be called once all plugins have declared their options.
    """
    if not _is_strict(config):
        config.stash[_UNKNOWN] = leave_out_options(config, args)


class UnknownSettings:
    """Hooks by which settings that are for plugins that are not here end no session, and are told."""

    def __init__(self, session: EvocodeSession) -> None:
        self._config = session.config

    def pytest_report_header(self) -> list[str]:
        """Return what is in pytest's ini file without effect."""
        unknown = [*sorted(names_of_settings(self._config)[0]), *self._config.stash.get(_UNKNOWN, [])]
        if not unknown or _is_strict(self._config):
            return []
        return [f"evocode: {self._config.inipath}: {', '.join(unknown)}: of no plugin that is here, and without effect"]

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Forget the settings before pytest looks for them, which it does when all conftest files are loaded."""
        result = yield
        if not _is_strict(self._config):
            forget_settings(self._config, names_of_settings(self._config)[0])
        return result


def _is_strict(config: pytest.Config) -> bool:
    return any(argument in _STRICT for argument in config.invocation_params.args)


def _is_repository(directory: Path) -> bool:
    return os.path.exists(directory / _REPOSITORY)


def _is_project(directory: Path) -> bool:
    return _is_repository(directory) or any(os.path.isfile(directory / name) for name in _SETTINGS)


def _speaks_of_us(directory: Path) -> bool:
    for name in (*_SETTINGS, _CONFTEST):
        try:
            if _OURS in (directory / name).read_bytes():
                return True
        except OSError:
            continue
    return False

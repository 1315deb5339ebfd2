"""The files of a task directory: checks that they are complete and finds those of each round, with few system calls."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.compose_file import COMPOSE_FILES, ComposeFile
from pytest_evocode.tasks.config_text import Keys
from pytest_evocode.tasks.model import EnvironmentConfig, StepConfig, TaskConfig, VerifierConfig
from pytest_evocode.tasks.problems import Problem
from pytest_evocode.tasks.text_files import CRLF, decoded, is_crlf, unreadable


@dataclass(frozen=True, slots=True)
class SuiteEnvironment:
    """An environment for one suite alone, in which nothing of the agent's is but the declared artifacts."""

    config: EnvironmentConfig
    """``[verifier.environment]`` of the step, else of the task, else ``[environment]``; with the image that counts."""
    context: Path | None
    """The directory of the Dockerfile that the image is built from, where that is not the task's ``environment/``."""
    brings_tests: bool
    """Whether the image is the verifier's own: such an image has ``/tests``, and no tests are put there."""
    own_variables: bool
    """Whether ``config.env`` is the verifier's, and not that of the environment in which the agent works."""


def is_separate(config: TaskConfig, step: StepConfig | None) -> bool:
    """Tell whether a round's suite has an environment for itself.

    That is what the step says, else the task; one that declares an environment says "separate".
    """
    said = (_said(each) for each in (step.verifier if step is not None else None, config.verifier) if each is not None)
    return next((mode for mode in said if mode is not None), "shared") == "separate"


def _said(verifier: VerifierConfig) -> str | None:
    if verifier.environment_mode is not None:
        return verifier.environment_mode
    return "separate" if verifier.environment is not None else None


def suite_environment(directory: Path, config: TaskConfig, step: StepConfig | None) -> SuiteEnvironment | None:
    """Return the environment that a round's ``test.sh`` has for itself; None where it has none.

    The image is the first of: ``docker_image`` of the step, a Dockerfile in the step's ``tests/``, ``docker_image`` of
    the task's ``[verifier.environment]``, a Dockerfile in the task's ``tests/``, and the image of ``[environment]``.
    """
    if not is_separate(config, step):
        return None
    of_task = config.verifier.environment
    of_step = step.verifier.environment if step is not None else None
    own = of_step or of_task
    settings = own or config.environment
    if own is not None and "build_timeout_sec" not in own.model_fields_set:
        settings = settings.model_copy(update={"build_timeout_sec": config.environment.build_timeout_sec})
    places = [(of_step, f"steps/{step.name}/tests")] if step is not None else []
    for environment, place in [*places, (of_task, "tests")]:
        image = environment.docker_image if environment is not None else None
        built = image is None and os.path.isfile(f"{directory}/{place}/Dockerfile")
        if image is not None or built:
            update = {"docker_image": image}
            return SuiteEnvironment(settings.model_copy(update=update), directory / place, True, own is not None)
    update = {"docker_image": config.environment.docker_image}
    return SuiteEnvironment(settings.model_copy(update=update), None, False, own is not None)


SINGLE_ROUND = "round-1"


@dataclass(frozen=True, slots=True)
class RoundFiles:
    """The files of one round; everything that is named exists.

    Most paths below the directory are made only when asked for, because a session may have thousands of rounds.
    """

    name: str
    directory: Path
    has_own_solution: bool
    has_workdir: bool
    has_tests: bool
    """Whether the round has tests of its own."""
    has_script: bool
    """Whether a ``test.sh`` verifies the round, and not a native suite."""
    shared_tests: Path | None
    shared_solution: Path | None = None
    """The task's solution, for a round that has no directory for one; None where there is none."""
    suite_environment: SuiteEnvironment | None = None
    """The environment that the suite has for itself; None where it runs beside what the agent left."""

    @property
    def solution(self) -> Path | None:
        """The directory that has ``solve.sh``, the round's own before the task's; None without a solution."""
        return self.directory / "solution" if self.has_own_solution else self.shared_solution

    @property
    def has_solution(self) -> bool:
        """Whether there is a solution, be it the task's."""
        return self.has_own_solution or self.shared_solution is not None


def find_files(
    directory: Path, config: TaskConfig, composed: ComposeFile | None = None
) -> tuple[list[RoundFiles], list[Problem]]:
    """Return the files of each round in order, and everything that is wrong with the task's directories.

    Raises:
        TaskError: A directory cannot be read.
    """
    finder = _Finder(directory, config)
    by_compose = composed is not None and composed.has_main_image
    finder.check_environment(by_compose or config.environment.docker_image is not None)
    finder.check_steps({step.name for step in config.steps})
    steps = [finder.step(index, step) for index, step in enumerate(config.steps)]
    return steps or [finder.single()], finder.problems


def no_environment(directory: Path) -> str:
    """Return what is wrong with a task that can be looked at, but not run."""
    path = directory / "environment" / "Dockerfile"
    return f"no environment to run in; create {path} or set docker_image in [environment]"


class _Finder:
    def __init__(self, directory: Path, config: TaskConfig) -> None:
        self.directory = directory
        self.config = config
        self.root = os.fspath(directory)
        self.steps_directory = directory / "steps"
        self.problems: list[Problem] = []
        self.steps: set[str] = set()
        self.shared_suite = self._has_script(f"{self.root}/tests/test.sh")
        self.native_tests = False
        """Whether there is a native test in the rounds so far."""
        self.shared_tests: Path | None = None
        if self.shared_suite or _is_directory(f"{self.root}/tests"):
            self.shared_tests = directory / "tests"
        self.shared_solution: Path | None = None
        if config.steps and self._has_script(f"{self.root}/solution/solve.sh"):
            self.shared_solution = directory / "solution"

    def check_environment(self, has_image: bool) -> None:
        compose = [name for name in COMPOSE_FILES if _stat(f"{self.root}/environment/{name}", follow=False)]
        if len(compose) > 1:
            message = f"{' and '.join(compose)} are both compose files; keep one of them"
            self.problems.append(Problem(message, path=self.directory / "environment" / compose[0]))
        if not has_image and not _is_file(f"{self.root}/environment/Dockerfile"):
            self.problems.append(Problem(no_environment(self.directory), unread=()))

    def check_steps(self, listed: set[str]) -> None:
        path = f"{self.root}/steps"
        self.steps = {name for name in _directories(path) if name in listed or not name.startswith((".", "__"))}
        for name in sorted(self.steps - listed):
            message = f'steps/{name}/ has no entry; add [[steps]] with name = "{name}" or remove the directory'
            self.problems.append(Problem(message))

    def step(self, index: int, step: StepConfig) -> RoundFiles:
        name = step.name
        directory = self.steps_directory / name
        root = f"{self.root}/steps/{name}"
        keys: Keys = ("steps", index, "name")
        if name not in self.steps:
            self.problems.append(Problem(f"there is no directory for this step; create {directory}", keys))
            return RoundFiles(name, directory, False, False, False, False, None)
        has_suite = self._has_script(f"{root}/tests/test.sh")
        has_tests = has_suite or _is_directory(f"{root}/tests")
        has_workdir = self._has_workdir(f"{root}/workdir", keys)
        has_script, apart = self._find_suite(has_suite, root, keys, step)
        has_solution = self._check_round(root, keys)
        shared = self.shared_tests, None if _is_directory(f"{root}/solution") else self.shared_solution
        return RoundFiles(name, directory, has_solution, has_workdir, has_tests, has_script, *shared, apart)

    def single(self) -> RoundFiles:
        has_script, apart = self._find_suite(False, self.root, (), None)
        has_solution = self._check_round(self.root, ())
        return RoundFiles(
            SINGLE_ROUND, self.directory, has_solution, False, False, has_script, self.shared_tests, None, apart
        )

    def _check_round(self, root: str, keys: Keys) -> bool:
        """Check the instruction and return whether there is a solution; without one, only the oracle cannot play."""
        self._check_instruction(f"{root}/instruction.md", keys)
        return self._has_script(f"{root}/solution/solve.sh")

    def _has_script(self, path: str) -> bool:
        """Return whether there is a script, and take note of one that bash cannot run or that is not UTF-8."""
        found = _stat(path)
        if found is None or not stat.S_ISREG(found.st_mode):
            return False
        content = _read(path, found.st_size)
        if is_crlf(content):
            self.problems.append(Problem(CRLF, path=Path(path), line=1))
        self._decode(content, path)
        return True

    def _decode(self, content: bytes, path: str) -> str | None:
        """Return the text of a file; take note of one that is not UTF-8, and return None for it."""
        try:
            return decoded(content, path)
        except TaskError as error:
            self.problems.append(Problem(error.message, path=error.path, line=error.line))
            return None

    def _find_suite(
        self, has_suite: bool, root: str, keys: Keys, step: StepConfig | None
    ) -> tuple[bool, SuiteEnvironment | None]:
        """Return whether a script verifies a round, and the environment that it has for itself."""
        apart = suite_environment(self.directory, self.config, step)
        if has_suite or self.shared_suite:
            return True, apart
        # The round's own tests, those of an earlier round, or those that all rounds share.
        self.native_tests = self.native_tests or any(map(_holds_tests, (f"{root}/tests", f"{self.root}/tests")))
        if apart is not None and apart.brings_tests and (apart.config.docker_image is None or not self.native_tests):
            return True, apart  # The image has the test.sh.
        if not self.native_tests:
            message = f"nothing verifies the round; write {root}/tests/test.sh, or {root}/tests/test_*.py for pytest"
            self.problems.append(Problem(message, keys))
        return False, None

    def _check_instruction(self, path: str, keys: Keys) -> None:
        found = _stat(path)
        if found is None:
            directory = os.path.dirname(path)
            near = get_close_matches("instruction.md", _names(directory), n=1, cutoff=0.8)
            instead = f", or rename {near[0]} there" if near else ""
            self.problems.append(Problem(f"the round has no instruction; create {path}{instead}", keys))
        elif not stat.S_ISREG(found.st_mode):
            self.problems.append(Problem(f"{path} must be a file", keys))
        else:
            text = self._decode(_read(path, found.st_size), path)
            if text is not None and not text.strip():
                self.problems.append(Problem(f"{path} is empty; write the request to the agent", keys))

    def _has_workdir(self, path: str, keys: Keys) -> bool:
        found = _stat(path)
        if found is not None and not stat.S_ISDIR(found.st_mode):
            self.problems.append(Problem(f"{path} must be a directory", keys))
        elif found is not None:
            self._has_script(f"{path}/setup.sh")
        return found is not None


def _stat(path: str, *, follow: bool = True) -> os.stat_result | None:
    try:
        return os.stat(path, follow_symlinks=follow)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable(path, error) from error


def _is_file(path: str) -> bool:
    found = _stat(path)
    return found is not None and stat.S_ISREG(found.st_mode)


def _is_directory(path: str) -> bool:
    found = _stat(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def _names(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def _directories(path: str) -> frozenset[str]:
    try:
        with os.scandir(path) as entries:
            return frozenset(entry.name for entry in entries if entry.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    except OSError as error:
        raise unreadable(path, error) from error


def _holds_tests(path: str) -> bool:
    return any(is_test_module(name) for _, _, files in os.walk(path) for name in files)


def is_test_module(name: str) -> bool:
    """Return whether a native suite collects the tests in a file of this name.

    >>> is_test_module("test_cli.py"), is_test_module("cli_test.py")
    (True, False)
    """
    return name.startswith("test_") and name.endswith(".py")


def _read(path: str, size: int) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY)  # Without what io does for it: there may be thousands of rounds.
        try:
            return os.read(file, size)
        finally:
            os.close(file)
    except OSError as error:
        raise unreadable(path, error) from error

"""Makes the toolbox: pytest in a form that an image's own Python runs, once for each kind of Python.

And finds where a task's native suites run with it.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.metadata
import json
import logging
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.environments.choice import bare_system
from pytest_evocode.errors import EnvironmentUnavailable, NoPython
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.verifier.in_container.memory import OWN
from pytest_evocode.verifier.in_container.start import READY

logger = logging.getLogger(__name__)

OLDEST_PYTHON = (3, 10)
PROGRAM = "suite.pyc"
"""The file that is run; its directory has nothing else but what it reads."""

# What pytest consists of but for its colours, on all Pythons that an image may have: some are for 3.10.
_DISTRIBUTIONS = (
    "pytest", "pluggy", "iniconfig", "packaging", "pytest-json-report", "pytest-timeout", "exceptiongroup", "tomli",
    "typing_extensions",
)  # fmt: skip
_MODULES = Path(__file__).with_name("in_container")
_IN_CONTAINER = "pytest_evocode/verifier/in_container"
# It is written for a Python of any age, and -I is left out because old ones do not know it.
_PROBE = (
    "import sys; "
    "print([sys.executable, list(sys.version_info[:3]), sys.implementation.cache_tag] if sys.version_info > (3, 6) "
    "else ['', list(sys.version_info[:3]), ''])"
)
_SOURCES, _MADE = "/tmp/evocode-toolbox", "/tmp/evocode-toolbox.made"
_MAKE = f"""
import marshal, os, py_compile
modules = {{}}
for place, _, files in os.walk({_SOURCES!r}):
    for name in files:
        path = os.path.join(place, name)
        shown = os.path.relpath(path, {_SOURCES!r})
        with open(path, "rb") as file:
            modules[shown] = marshal.dumps(compile(file.read(), "{OWN}/" + shown, "exec", dont_inherit=True))
os.mkdir({_MADE!r})
with open("{_MADE}/modules", "wb") as file:
    marshal.dump(modules, file)
start = "{_SOURCES}/{_IN_CONTAINER}/start.py"
py_compile.compile(start, "{_MADE}/{PROGRAM}", "{OWN}/{PROGRAM}", doraise=True)
"""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """Runs native suites in the environments of one image."""

    python: str
    """The image's Python: an absolute path."""
    directory: Path
    """The directory on the host that holds :data:`PROGRAM` and what it reads."""


def find_toolbox(engine: Engine, task: Task) -> Toolbox:
    """Find or make the toolbox for a task's image, in an environment where no agent has been.

    Raises TaskError when the image has no Python that can run a suite, and EnvironmentFault.
    """
    toolboxes = cache_directory() / "toolboxes"
    image = hashlib.sha256(f"{engine.name}\0{engine.image_key(task)}\0{_versions()}".encode()).hexdigest()[:32]
    recorded = toolboxes / f"{image}.json"
    if not recorded.exists():
        toolboxes.mkdir(exist_ok=True)
        with FileLock(toolboxes / f"{image}.lock"):
            if not recorded.exists():
                write_atomically(recorded, json.dumps(_find_or_make(engine, task, toolboxes)))
    python, directory = json.loads(recorded.read_text())
    return Toolbox(python, toolboxes / directory)


def _find_or_make(engine: Engine, task: Task, toolboxes: Path) -> tuple[str, str]:
    """Return the image's Python, and the name of the toolbox directory for all Pythons of its kind."""
    environment = engine.create(task.alone(), env={}, network="no-network")
    try:
        environment.start()
        python, kind = _find_python(environment, task)
        name = f"{kind}-{hashlib.sha256(_versions().encode()).hexdigest()[:16]}"
        if not (toolboxes / name).exists():
            with FileLock(toolboxes / f"{name}.lock"):  # Other images have a Python of that kind, too.
                if not (toolboxes / name).exists():
                    _make(environment, task, python, toolboxes / name)
        environment.upload([toolboxes / name], OWN)
        result = environment.exec([python, "-I", "-B", f"{OWN}/{PROGRAM}", READY], cwd="/", timeout=60)
        if not result.ok:
            raise _unfit(task, python, result.output)
    finally:
        environment.stop()
    return python, name


def _make(environment: Environment, task: Task, python: str, directory: Path) -> None:
    logger.info("%s: making a toolbox for %s, %s", task.name, python, directory.name)
    with tempfile.TemporaryDirectory(dir=directory.parent) as name:
        sources, made = Path(name, "sources"), Path(name, "made")
        for relative, path in _modules():
            place = sources / relative
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        environment.upload([sources], _SOURCES, writable=True)
        result = environment.exec([python, "-I", "-c", _MAKE], user="0", cwd="/", timeout=120)
        environment.download(_MADE, made)
        if not (result.ok and (made / PROGRAM).is_file()):
            raise _unfit(task, python, result.output)
        made.rename(directory)


def _find_python(environment: Environment, task: Task) -> tuple[str, str]:
    """Return the absolute path of the image's Python and its kind.

    Raises NoPython where there is none, or only one that is too old.
    """
    for name in ("python3", "python"):
        result = environment.exec([name, "-c", _PROBE], cwd="/", timeout=60)
        try:
            executable, version, kind = ast.literal_eval(result.output.splitlines()[-1])
        except (IndexError, ValueError, SyntaxError):
            continue  # Not there, or something else of that name.
        if tuple(version) < OLDEST_PYTHON:
            raise NoPython(
                f"the image's {name} is Python {'.'.join(map(str, version))}, and a native suite needs 3.10 or newer; "
                "install a newer one, or write test.sh",
                _image_of(task),
            )
        return str(executable), str(kind)
    raise NoPython(
        "the image has no Python, which a native suite needs; install python3 (3.10 or newer), or write test.sh. "
        f"python said: {result.output.strip()[-500:]}",
        _image_of(task),
    )


def _unfit(task: Task, python: str, output: str) -> NoPython:
    return NoPython(
        f"the image's Python, {python}, cannot run pytest, which a native suite needs; install a whole Python, or "
        f"write test.sh. It said:\n{output.strip()[-2000:]}",
        _image_of(task),
    )


def _image_of(task: Task) -> Path:
    return task.dockerfile or task.file


@functools.cache
def _versions() -> str:
    own = [path.read_text() for path in sorted(_MODULES.glob("*.py"))]
    return json.dumps([*own, _MAKE, *(importlib.metadata.version(name) for name in _DISTRIBUTIONS)])


def _modules() -> Iterator[tuple[str, Path]]:
    """Yield the toolbox's modules: the path of each in it, and on the host."""
    for path in _MODULES.glob("*.py"):
        yield f"{_IN_CONTAINER}/{path.name}", path
    for name in _DISTRIBUTIONS:
        for file in importlib.metadata.files(name) or ():
            if file.suffix == ".py" and ".." not in file.parts:
                yield str(file), Path(str(file.locate()))


@dataclass(frozen=True, slots=True)
class SuiteHome:
    """Where a task's native suites run."""

    engine: Engine
    task: Task
    """The task, with the environment that its suites run in."""
    toolbox: Toolbox


def find_suite_home(engine: Engine, task: Task) -> SuiteHome | None:
    """Return where a task's native suites run; None where it has none.

    Where all of them are ``clean`` that is the task's image. Where they run apart it is the image that
    ``[verifier.environment]`` names, else the task's own as built, else the system of this machine in a sandbox, where
    the task's image has no Python that can run pytest.

    Raises:
        NoPython: None of these can run a suite.
        EnvironmentFault: The engine failed.
    """
    native = [round_ for round_ in task.rounds if not round_.has_script]
    if not any(round_.verify_in == "separate" for round_ in native):
        return SuiteHome(engine, task, find_toolbox(engine, task)) if native else None
    named = task.config.verifier.environment
    if named is not None:
        task = replace(task, config=task.config.model_copy(update={"environment": named}))
    try:
        return SuiteHome(engine, task, find_toolbox(engine, task))
    except NoPython as error:
        if named is not None:
            raise
        without = error
    try:
        engine, task = bare_system(task.alone())
    except EnvironmentUnavailable as error:
        raise NoPython(
            f"{without.message}\nOr have the suite run in a sandbox beside it, which cannot be had here: {error}",
            without.path,
        ) from None
    logger.info("%s: its suites run in a sandbox with the system of this machine", task.name)
    return SuiteHome(engine, task, find_toolbox(engine, task))

"""A round to verify, and ways to run its suite in a fork of a real sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.environments.task_environment import VERIFIER_DIRECTORIES
from pytest_evocode.tasks import load_task
from pytest_evocode.trial.suites.left_forks import collect_artifacts
from pytest_evocode.verifier import SuiteRun, SuiteSettings, find_toolbox, run_suite
from tests.environments.conftest import start_engine

FORK = '[metadata.evocode]\nverify_in = "clean"\n'
RunSuite = Callable[..., SuiteRun]


class RunNative(Protocol):
    """Runs the native suite of the last round, or of round ``at``, after ``workspace``, a shell script, was run.

    ``files`` are texts by path: ``round-1/test_cli.py`` among the tests of a round, ``tests/journals.py`` among those
    that all share. ``toml`` goes into task.toml before, ``step`` behind each [[steps]] entry; all else is the
    :class:`~pytest_evocode.verifier.SuiteSettings`'s.
    """

    def __call__(
        self,
        files: Mapping[str, str],
        *,
        rounds: Sequence[str] = ...,
        at: str | None = None,
        workspace: str = "",
        toml: str = "",
        step: str = "",
        **settings: Any,
    ) -> SuiteRun: ...


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave to the night what takes a while, and is the same in Docker as in the sandbox."""
    name = item.nodeid.rpartition("tests/verifier/")[2]
    in_docker = item.get_closest_marker("docker") is not None
    if in_docker and name.startswith("test_native_features.py::") and "test_everything_passes" not in name:
        item.add_marker("nightly")  # Each worker would run the whole suite for them.


@pytest.fixture(params=["sandbox", pytest.param("docker", marks=pytest.mark.docker)], scope="module")
def both(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Both engines in turn."""
    engine = start_engine(request.param)
    yield engine
    engine.close()


@pytest.fixture
def native(engine: Engine, tmp_path: Path) -> RunNative:
    """See :class:`RunNative`."""

    def run(files: Mapping[str, str], **how: Any) -> SuiteRun:
        return run_native_suite(engine, tmp_path / "task", files, **how)

    return run


def run_native_suite(
    engine: Engine,
    directory: Path,
    files: Mapping[str, str],
    *,
    rounds: Sequence[str] = ("round-1", "round-2"),
    at: str | None = None,
    workspace: str = "",
    toml: str = "",
    step: str = "",
    image: str = "",
    apart: bool = False,
    **settings: Any,
) -> SuiteRun:
    """See :class:`RunNative`; the task is written into ``directory``, and ``image`` is what more its Dockerfile has.

    The suite runs in the fork, where its tests may look at the workspace from their own process, or ``apart``.
    """
    texts = {
        "task.toml": "\n".join(
            [toml, "" if apart else FORK, *(f'[[steps]]\nname = "{name}"\n{step}' for name in rounds)]
        ),
        "environment/Dockerfile": f"FROM python:3.11-slim-bookworm\nWORKDIR /app\n{image}\n",
        **{f"steps/{name}/instruction.md": "Write the program.\n" for name in rounds},
    }
    for path, text in files.items():
        first, _, rest = path.partition("/")
        texts[path if first == "tests" else f"steps/{first}/tests/{rest}"] = text
    for path, text in texts.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text, encoding="utf-8")
    task = load_task(directory)
    round_ = next(each for each in task.rounds if each.name == (at or rounds[-1]))
    environment = engine.create(task, env={}, network=None)
    try:
        environment.start()
        if workspace:
            worked = environment.exec(workspace)
            assert worked.ok, worked.output
        snapshot = environment.snapshot()
        fork = environment.fork(snapshot, network=None)
        verifier = engine.create(task, env={}, network="no-network") if apart else None
        try:
            fork.start()
            if verifier is not None:
                verifier.start()
            else:
                fork.remove(VERIFIER_DIRECTORIES)
                fork.make_directories(VERIFIER_DIRECTORIES)
            how = {"env": {}, "timeout": round_.verifier_timeout, "toolbox": find_toolbox(engine, task), **settings}
            return run_suite(fork, task, round_, SuiteSettings(**how), verifier=verifier)
        finally:
            if verifier is not None:
                verifier.stop()
            fork.stop()
            snapshot.discard()
    finally:
        environment.stop()


@pytest.fixture
def suite(engine: Engine, tmp_path: Path) -> RunSuite:
    """Run ``test.sh`` after ``workspace`` (a shell script) was run where an agent would have worked.

    ``toml`` goes into task.toml before, ``step`` behind the one [[steps]] entry; ``tests`` and ``shared`` are more
    files of the round's and of the task's own tests.
    """

    def run(
        test_sh: str,
        *,
        workspace: str = "true",
        toml: str = "",
        step: str = "",
        tests: Mapping[str, str] | None = None,
        shared: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        artifacts: Path | None = None,
    ) -> SuiteRun:
        files = {
            "task.toml": f'{toml}\n[[steps]]\nname = "round-1"\n{step}\n',
            "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n",
            "steps/round-1/instruction.md": "Write the program.\n",
            "steps/round-1/tests/test.sh": test_sh,
            **{f"steps/round-1/tests/{name}": text for name, text in (tests or {}).items()},
            **{f"tests/{name}": text for name, text in (shared or {}).items()},
        }
        directory = tmp_path / "task"
        for name, text in files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text, encoding="utf-8")
        task = load_task(directory)
        round_ = task.rounds[0]
        environment = engine.create(task, env={"FROM_TASK": "task"}, network=None)
        try:
            environment.start()
            worked = environment.exec(workspace)
            assert worked.ok, worked.output
            snapshot = environment.snapshot()
            fork = environment.fork(snapshot, network=None)
            try:
                fork.start()
                fork.remove(VERIFIER_DIRECTORIES)
                fork.make_directories(VERIFIER_DIRECTORIES)
                settings = SuiteSettings(env=env or {}, timeout=round_.verifier_timeout)
                run = run_suite(fork, task, round_, settings)
                return run if artifacts is None else replace(run, left_out=collect_artifacts(fork, round_, artifacts))
            finally:
                fork.stop()
                snapshot.discard()
        finally:
            environment.stop()

    return run

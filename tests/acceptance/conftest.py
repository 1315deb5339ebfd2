"""Fixtures of whole sessions: tiny tasks, pytest that runs them, and somebody at a terminal."""

from __future__ import annotations

import functools
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.models import import_sdks
from tests.acceptance.sessions import AtTerminal, Checked, CheckTasks, RunTasks, Session
from tests.acceptance.tasks import WriteNative, WriteTask, native_writer, task_writer
from tests.inner_sessions import UNUSED


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of one test alone, empty at first; other tests have the one that all share."""
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def write_task(pytester: pytest.Pytester) -> WriteTask:
    """See :class:`WriteTask`."""
    return task_writer(pytester.path)


@pytest.fixture
def write_native(pytester: pytest.Pytester) -> WriteNative:
    """See :class:`WriteNative`."""
    return native_writer(pytester.path)


@pytest.fixture
def run_tasks(pytester: pytest.Pytester) -> RunTasks:
    """See :class:`RunTasks`."""

    def run(
        *arguments: str,
        agent: str | None = "oracle",
        env: str | None = "sandbox",
        subprocess: bool = False,
        replay: bool = True,
    ) -> Session:
        ours = [f"--evocode-agent={agent}"] if agent else []
        ours += [f"--evocode-env={env}"] if env else []
        ours += ["--evocode-replay"] if agent and replay else []
        start = pytester.runpytest_subprocess if subprocess else pytester.runpytest_inprocess
        return Session(start("-W", "error", *UNUSED, *ours, *arguments), pytester.path)

    return run


@pytest.fixture
def play_tasks(run_tasks: RunTasks) -> RunTasks:
    """As ``run_tasks``, for sessions that may begin with states that earlier ones kept."""
    return functools.partial(run_tasks, replay=False)


@pytest.fixture(scope="session")
def model_sdks() -> None:
    """The SDKs of models, imported once: pytester forgets what a test imports, and the next had second copies.

    Not when tests are collected: they take seconds, and few workers have a test that needs them.
    """
    import_sdks()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a bucket of a server that speaks S3, whose address and keys are in variables."""
    from moto.server import ThreadedMotoServer  # Only with tests that need it: it takes a second.

    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-nobody-0001")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "open-sesame-0002")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/attempts", method="PUT")).close()
    yield "s3://attempts/of-a-run"
    running.stop()


@pytest.fixture
def person(pytester: pytest.Pytester) -> Iterator[AtTerminal]:
    """See :class:`AtTerminal`."""
    with AtTerminal(pytester.path) as somebody:
        yield somebody
        if somebody.session is not None and somebody.session.poll() is None:
            somebody.session.kill()
            somebody.session.wait()


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests, so that the image of the tiny tasks is built once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _environment(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(shared_cache))
    monkeypatch.setenv("COLUMNS", "160")  # Wide enough for whole messages in summaries.
    for name in ("CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def check_tasks(run_tasks: RunTasks) -> CheckTasks:
    """See :class:`CheckTasks`."""

    def check(*arguments: str, env: str = "sandbox", subprocess: bool = False, anew: bool = True) -> Checked:
        tasks = [] if any(argument.startswith("tasks") for argument in arguments) else ["tasks/a"]
        options = ["--evocode-check", "--json-report", "-Wdefault::pytest.PytestWarning"]
        # Tests share a cache, and their tasks are alike.
        options += ["--cache-clear"] if anew and "--lf" not in arguments else []
        return Checked(run_tasks(*options, *arguments, *tasks, agent=None, env=env, subprocess=subprocess))

    return check

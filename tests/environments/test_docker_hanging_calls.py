"""An engine that does not answer costs a session a moment where it cleans up, and an error with a name elsewhere."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pytest_evocode.cli.kept import clean_command
from pytest_evocode.environments.docker import client as client_module
from pytest_evocode.environments.docker.calls import discard, faults
from pytest_evocode.environments.docker.engine import ENGINE, OWNER, DockerEngine, connect
from pytest_evocode.environments.docker.snapshots import DockerSnapshot
from pytest_evocode.environments.owners import Owner
from pytest_evocode.environments.removals import Removals
from pytest_evocode.errors import EnvironmentFault
from tests.environments.fake_engine import FakeEngine, fake_engine
from tests.terminals import HANGS
from tests.waiting import wait_until

# The SDK does not close a socket that could not be connected; `fake` collects it, so that no later test is told of it.
pytestmark = [pytest.mark.turns(2), pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

STUCK = "0123456789ab" * 5 + "cdef"
DEAD = replace(Owner.this(), started=1)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    """An engine alone, which this process has by DOCKER_HOST."""
    monkeypatch.setattr(Removals, "patience", 0.3)
    monkeypatch.setattr(client_module, "_REMOVAL_TIMEOUT", 10_000)
    with fake_engine() as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.url)
        yield engine
    gc.collect()


def container(name: str, **labels: str) -> dict[str, Any]:
    return {"Id": name, "Names": [f"/name-of-{name[:3]}"], "ImageID": "i", "Labels": {OWNER: str(DEAD), **labels}}


def test_a_container_that_is_not_deleted_stops_no_session_and_is_named(fake: FakeEngine) -> None:
    of_somebody = container("own") | {"Labels": {OWNER: str(Owner.this())}}
    fake.lies("GET /containers/json", [container(STUCK), container("other"), of_somebody])
    fake.lies("DELETE /containers/other", None, 204)
    fake.hangs(f"DELETE /containers/{STUCK}")
    engine = DockerEngine()
    wait_until(lambda: fake.hanging and "DELETE /containers/other" in fake.calls)
    engine.close()
    assert fake.hanging == [f"DELETE /containers/{STUCK}"]  # Nobody asked again, either.
    wait_until(lambda: engine.left_behind == ["container 0123456789ab"])
    assert "DELETE /containers/own" not in fake.calls


def test_lists_that_do_not_come_stop_no_session(fake: FakeEngine) -> None:
    fake.hangs("GET /containers/json")
    engine = DockerEngine()
    wait_until(lambda: fake.hanging)
    engine.close()
    assert fake.hanging
    assert engine.left_behind == ["what sessions left"]


def test_an_image_that_is_not_deleted_stops_no_close(fake: FakeEngine) -> None:
    engine = DockerEngine()
    labels = {OWNER: str(Owner.this()), ENGINE: engine._own[ENGINE]}
    fake.lies("GET /images/json", [{"Id": "i", "RepoTags": ["evocode-snapshot:1"], "Labels": labels}])
    fake.hangs("DELETE /images/.*")
    DockerSnapshot(engine._client, "evocode-snapshot:0", 0).discard()
    engine.close()
    wait_until(lambda: engine.left_behind == ["image evocode-snapshot:0", "image evocode-snapshot:1"])
    wait_until(lambda: len(fake.hanging) == 2)


class Changing(dict[str, str]):
    """Variables that another thread changes while somebody reads them all."""

    def items(self) -> Any:
        raise KeyError("PYTEST_CURRENT_TEST")


def test_calls_read_no_variable_that_others_may_change_meanwhile(
    fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", "other.test")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/ca.pem")
    with contextlib.closing(connect()) as client:
        assert (client.proxies["https"], client.verify) == ("http://proxy.test:3128", "/ca.pem")
        monkeypatch.setattr(os, "environ", Changing(os.environ))
        assert client.containers() == []
        assert client.proxies["https"] == "http://proxy.test:3128"


def test_after_one_wait_in_vain_nobody_waits_until_that_is_gone(
    fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with contextlib.closing(connect()) as client:
        fake.hangs("DELETE /containers/a")
        discard(client, "container", "a")
        monkeypatch.setattr(Removals, "patience", 10_000)
        fake.hangs("DELETE /containers/b")
        discard(client, "container", "b")  # It would not return in time.
        assert sorted(client.removals.left) == ["container a", "container b"]


def test_what_another_session_removes_is_waited_for(fake: FakeEngine) -> None:
    fake.fails("DELETE /containers/a", "removal of container a is already in progress", 409)
    fake.lies("POST /containers/a/wait", {"StatusCode": 0})
    with contextlib.closing(connect()) as client:
        discard(client, "container", "a")
        assert client.removals.left == {}
        assert fake.calls[-1] == "POST /containers/a/wait"


def test_a_removal_that_fails_fails_no_session(fake: FakeEngine) -> None:
    fake.fails("DELETE /volumes/v", "volume is in use")
    with contextlib.closing(connect()) as client:
        discard(client, "volume", "v")
        assert client.removals.left == {
            "volume v": "Docker failed while removing the volume v: volume is in use",
        }


@pytest.mark.parametrize("deleting", [False, True])
def test_a_call_without_an_answer_is_named_with_its_container(
    fake: FakeEngine, monkeypatch: pytest.MonkeyPatch, deleting: bool
) -> None:
    monkeypatch.setattr(client_module, "_REMOVAL_TIMEOUT" if deleting else "_API_TIMEOUT", 0.2)
    fake.hangs("(GET|DELETE) /containers/abc.*")
    with contextlib.closing(connect()) as client, pytest.raises(EnvironmentFault) as raised, faults("looking"):
        client.remove_container("abc") if deleting else client.inspect_container("abc")
    call = "DELETE /v1.44/containers/abc" if deleting else "GET /v1.44/containers/abc/json"
    assert str(raised.value) == f"Docker failed while looking: {call} had no answer within 0.2 s"


def test_a_call_that_is_cut_is_named(fake: FakeEngine) -> None:
    with contextlib.closing(connect()) as client:
        fake.cut()
        with pytest.raises(EnvironmentFault, match=r"GET /v1\.44/info: "), faults("looking"):
            client.info()


def test_clean_says_what_it_waits_for_and_fails_with_the_reason(
    fake: FakeEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path))  # It removes nothing that other tests have kept.

    def saying(text: str, *, err: bool = False) -> None:
        said.append(text)
        if text.startswith("waiting for container"):
            fake.release()

    said: list[str] = []
    monkeypatch.setattr("pytest_evocode.cli.kept.echo", saying)
    monkeypatch.setattr("pytest_evocode.cli.kept._SOON", 0.01)
    fake.lies("GET /containers/json", [container(STUCK)])
    fake.hangs(f"DELETE /containers/{STUCK}")
    result = CliRunner().invoke(clean_command, catch_exceptions=False)
    why = f"Docker failed while removing the container {STUCK}: released"
    assert said == [
        "waiting for container name-of-012 to be removed",
        f"could not remove container name-of-012: {why}",
    ]
    assert result.exit_code == 1


def test_a_process_ends_while_its_engine_still_hangs(fake: FakeEngine) -> None:
    fake.lies("GET /containers/json", [container(STUCK)])
    fake.hangs(f"DELETE /containers/{STUCK}")
    script = (
        "from pytest_evocode.environments import choose_engine, removals\n"
        "from pytest_evocode.environments.docker import client\n"
        "removals.Removals.patience, client._REMOVAL_TIMEOUT = 0.1, 10_000\n"
        "engine, _ = choose_engine('docker'); engine.close()"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=HANGS)

"""Programs inside reach a server of the session while it is served to them, with every network, and never later."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.environments.sandbox.environment import SandboxEnvironment
from pytest_evocode.tasks import Allowlist, Network, Task
from tests.environments.conftest import BASE
from tests.environments.egress.outside import Outside

if TYPE_CHECKING:
    from pytest_evocode.environments.docker.engine import DockerEngine
    from tests.environments.conftest import MakeEnvironment, MakeTask

NETWORKS: tuple[Network, ...] = ("no-network", "public", Allowlist.of(["good.test"]))
#: Asks by GET, and with a size by POST for what it was sent.
ASK = """\
import sys, urllib.request as u
data = b"x" * int(sys.argv[2]) if sys.argv[2:] else None
try: print(u.urlopen(sys.argv[1], data=data, timeout=20).read().decode()[:60])
except (OSError, u.http.client.HTTPException) as e: print("unreached:", e)
"""
#: Is connected, says so, and waits for the connection's end.
HOLD = """\
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
while s.recv(1000): open("/tmp/held", "w").close()
open("/tmp/ended", "w").close()
"""


class UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The Unix socket of an HTTP server."""
    path = tmp_path_factory.mktemp("s") / "server"
    with UnixServer(str(path), Outside) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield path
        server.shutdown()
        thread.join()


def ask(environment: Environment, url: str, *size: int) -> str:
    argv = ["python3", "-c", ASK, url, *map(str, size)]
    return environment.exec(argv, user="nobody", timeout=60).output.strip()


def reached(environment: Environment, url: str) -> bool:
    found = ask(environment, f"{url}/it")
    assert found.startswith(("/it 127.0.0.1:", "unreached: ")), found
    return found.startswith("/it")


@pytest.mark.matrix
@pytest.mark.parametrize("network", NETWORKS, ids=["none", "public", "listed"])
def test_it_is_reached_with_every_network_while_it_is_served_and_from_no_fork(
    make_environment: MakeEnvironment, path: Path, network: Network
) -> None:
    environment = make_environment(network=network)
    with environment.serve(path) as url:
        assert reached(environment, url)
        assert ask(environment, f"{url}/", 3_000_000) == "got 3000000"
        assert ask(environment, f"{url}/?size=3000000").startswith("/?size=3000000 127.0.0.1:")
        snapshot = environment.snapshot()
        fork = environment.fork(snapshot, network=network)
        try:
            fork.start()
            # All public sandboxes have the loopback of the host.
            assert reached(fork, url) is (network == "public" and isinstance(environment, SandboxEnvironment))
            assert reached(environment, url)
            in_first_turn = url
        finally:
            fork.stop()
            snapshot.discard()
    assert not reached(environment, url)
    with environment.serve(path) as url:
        assert url == in_first_turn
        assert reached(environment, url)
    assert not reached(environment, url)


@pytest.mark.matrix
@pytest.mark.parametrize("network", NETWORKS, ids=["none", "public", "listed"])
def test_it_outlives_what_is_killed_and_started_anew(
    make_environment: MakeEnvironment, path: Path, network: Network
) -> None:
    environment = make_environment(network=network)
    assert hasattr(environment, "_restart") or hasattr(environment, "_relaunch")
    begin_anew = getattr(environment, "_restart", None) or environment._relaunch  # type: ignore[attr-defined]
    with environment.serve(path) as url:
        environment.exec("kill -9 -1", user="0")
        assert reached(environment, url)
        environment.kill_processes()
        assert reached(environment, url)
        begin_anew()
        assert reached(environment, url)
    begin_anew()
    assert not reached(environment, url)
    with environment.serve(path) as url:
        assert reached(environment, url)


@pytest.mark.matrix
def test_what_is_left_running_has_neither_its_connection_nor_its_port(
    make_environment: MakeEnvironment, path: Path
) -> None:
    environment = make_environment(network="no-network")
    with environment.serve(path) as url:
        port = url.rpartition(":")[2]
        environment.exec(f"cat >/tmp/hold.py <<'E'\n{HOLD}E\npython3 /tmp/hold.py {port} >/dev/null 2>&1 &")
        wait_for(environment, "/tmp/held")
        assert environment.file_status("/tmp/ended") is None
    wait_for(environment, "/tmp/ended")
    take = f"import socket; s = socket.socket(); s.bind(('127.0.0.1', {port}))"
    assert "Address already in use" in environment.exec(["python3", "-c", take]).output


def wait_for(environment: Environment, file: str) -> None:
    assert environment.exec(f"until [ -e {file} ]; do sleep 0.05; done", timeout=30).ok


# Docker.


@pytest.mark.docker
def test_python_carries_it_where_there_is_no_perl_and_nothing_is_left_of_it(
    docker: DockerEngine, make_task: MakeTask, path: Path
) -> None:
    environment = docker.create(make_task(f"FROM {BASE}\nRUN rm /usr/bin/perl*\n"), env={}, network="no-network")
    environment.start()
    with environment.serve(path) as url:
        assert ask(environment, f"{url}/", 2_000_000) == "got 2000000"
        assert len(containers(docker)) == 2
    environment.stop()
    assert containers(docker) == []


def containers(docker: DockerEngine) -> list[str]:
    label = f"evocode.engine={docker._own['evocode.engine']}"
    return [each["Id"] for each in docker._client.containers(all=True, filters={"label": label})]


COMPOSE = f"services:\n  main: {{}}\n  beside: {{image: {BASE}, command: [sleep, infinity]}}\n"


@pytest.mark.docker
@pytest.mark.parametrize("network", NETWORKS, ids=["none", "public", "listed"])
def test_main_alone_of_the_services_reaches_it(
    docker: DockerEngine, make_task: MakeTask, path: Path, network: Network
) -> None:
    task: Task = make_task(files={"docker-compose.yaml": COMPOSE})
    environment = docker.create(task, env={}, network=network)
    try:
        environment.start()
        with environment.serve(path) as url:
            assert reached(environment, url)
            port = url.rpartition(":")[2]
            command = f"python3 -c 'import socket; socket.create_connection((\"main\", {port}), 3)'"
            assert "Error" in environment.exec_in("beside", command, timeout=30).output
        assert not reached(environment, url)
    finally:
        environment.stop()
    assert containers(docker) == []


def test_an_engine_serves_it_for_many_environments_at_once(engine: Engine, plain_task: Task, path: Path) -> None:
    environments = [engine.create(plain_task, env={}, network="no-network") for _ in range(3)]
    try:
        for environment in environments:
            environment.start()
        first, second, third = environments
        with first.serve(path) as one, second.serve(path) as other:
            assert reached(first, one)
            assert reached(second, other)
            assert not reached(third, one)
        assert not reached(second, other)
    finally:
        for environment in environments:
            environment.stop()

"""An environment with an allowlist reaches what is listed, by the proxy, and nothing else by any way."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.environments.egress import EgressGate
from pytest_evocode.environments.sandbox.environment import SandboxEnvironment
from pytest_evocode.tasks import Allowlist, Network, Task
from tests.environments.conftest import BASE
from tests.environments.egress import escapes
from tests.environments.egress.outside import HOSTS, LISTED, resolve, served
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pytest_evocode.environments.docker.engine import DockerEngine
    from pytest_evocode.environments.sandbox.engine import SandboxEngine
    from tests.environments.conftest import MakeEnvironment, MakeTask

LIST = Allowlist.of(HOSTS)
FETCH = (
    "import sys, urllib.request as u\n"
    "try: print(len(u.urlopen(sys.argv[1], timeout=20).read()))\n"
    "except u.HTTPError as e: print(e.code)\n"
    "except OSError as e: print(e)"
)


def gate_of(environment: Environment) -> EgressGate:
    assert environment.egress is not None
    return environment.egress


def fetch(environment: Environment, url: str) -> str:
    """What Python's own library gets inside, as programs do that know nothing of an allowlist: a length or a status."""
    return environment.exec(["python3", "-c", FETCH, url], timeout=60).output.strip()


@dataclass
class Host:
    """What listens at all addresses of this machine, and who came."""

    tcp: int
    udp: int
    own: list[str]
    visits: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with socket.create_server(("", 0)) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("", 0))
        found = Host(tcp.getsockname()[1], udp.getsockname()[1], _own_addresses())
        done = threading.Event()

        def watch() -> None:
            tcp.settimeout(0.1)
            udp.settimeout(0.1)
            while not done.is_set():
                for what in (tcp, udp):
                    try:
                        found.visits.append(str(what.accept()[1] if what is tcp else what.recvfrom(512)[1]))
                    except TimeoutError:
                        continue

        thread = threading.Thread(target=watch)
        thread.start()
        yield found
        done.set()
        thread.join()


def _own_addresses() -> list[str]:
    """The addresses of this machine's interfaces, its bridges' among them, without the loopback's."""
    lines = Path("/proc/net/fib_trie").read_text().splitlines()
    pairs = itertools.pairwise(lines)
    found = {line.split()[-1] for line, below in pairs if "host LOCAL" in below}
    return sorted(address for address in found if not address.startswith("127."))


@pytest.fixture(scope="module")
def outside() -> Iterator[int]:
    with served(LISTED) as port:
        yield port


@pytest.fixture(scope="module")
def known_names(engine: Engine) -> None:
    """The engine's proxy knows the names of the tests."""
    assert hasattr(engine, "egress_proxy")
    proxy = engine.egress_proxy()
    proxy.resolve = resolve


@pytest.fixture(scope="module")
def guarded(engine: Engine, plain_task: Task, known_names: None) -> Iterator[Environment]:
    """An environment with an allowlist, for tests that leave nothing behind."""
    environment = engine.create(plain_task, env={}, network=LIST)
    environment.start()
    yield environment
    environment.stop()


@pytest.mark.matrix
def test_what_is_listed_is_reached(guarded: Environment, outside: int) -> None:
    for host in ("good.test", "a.wild.test", LISTED):
        assert fetch(guarded, f"http://{host}:{outside}/?size=2000000").startswith("20000")
    assert fetch(guarded, f"http://evil.test:{outside}/") == "403"
    (denied,) = gate_of(guarded).take_denied("agent")
    assert str(denied) == f"network: the agent was denied evil.test:{outside} once: the name is not listed"


@pytest.mark.matrix
def test_programs_find_the_proxy_by_their_variables(guarded: Environment) -> None:
    names = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
    for name in names:
        assert guarded.exec(["printenv", name]).output == "http://127.0.0.1:3128\n"
    assert "localhost" in guarded.exec(["getent", "hosts", "localhost"]).output
    assert guarded.exec(["printenv", "no_proxy", "NO_PROXY"]).output == "localhost,127.0.0.1,::1\n" * 2


def test_no_attempt_to_leave_by_another_way_succeeds(guarded: Environment, host: Host) -> None:
    script = Path(escapes.__file__).read_text()
    arguments = [json.dumps(host.own), str(host.tcp), str(host.udp)]
    result = guarded.exec(["python3", "-c", script, *arguments], user="0", timeout=240)
    found: dict[str, Any] = json.loads(result.output)
    assert found.pop("interfaces") == ["lo"]
    assert found.pop("routes") == []
    assert found.pop("proxy origin") == "HTTP/1.1 400 "
    wrong = {
        what: came
        for what, came in found.items()
        if not came.startswith("HTTP/1.1 403 " if what.startswith("proxy ") else "refused: ")
    }
    assert wrong == {}
    assert host.visits == []
    denied = {each.host for each in gate_of(guarded).take_denied("agent")}
    assert denied >= {"169.254.169.254", "127.0.0.1", "localhost", "evil.test", "[::1]", *host.own}


@pytest.mark.matrix
def test_the_proxy_outlives_what_an_agent_can_kill(guarded: Environment, outside: int) -> None:
    assert guarded.exec("kill -9 -1; exit 3", user="0").exit_code is not None
    assert fetch(guarded, f"http://good.test:{outside}/") != "403"
    guarded.kill_processes()
    assert guarded.exec(["sleep", "60"], timeout=0.2).timed_out
    assert int(fetch(guarded, f"http://good.test:{outside}/?size=7")) > 7


@pytest.mark.matrix
def test_it_is_there_again_after_everything_was_started_anew(make_environment: MakeEnvironment, outside: int) -> None:
    environment = make_environment(network=LIST)
    assert hasattr(environment, "_restart") or hasattr(environment, "_relaunch")
    begin_anew = getattr(environment, "_restart", None) or environment._relaunch  # type: ignore[attr-defined]
    begin_anew()
    assert int(fetch(environment, f"http://good.test:{outside}/?size=7")) > 7


@pytest.mark.matrix
def test_a_fork_has_a_list_of_its_own_or_no_network_at_all(guarded: Environment, outside: int) -> None:
    snapshot = guarded.snapshot()
    networks: tuple[Network, ...] = (Allowlist.of(["a.wild.test", LISTED]), "no-network")
    forks = [guarded.fork(snapshot, network=network) for network in networks]
    try:
        for fork in forks:
            fork.start()
        listed, closed = forks
        assert fetch(listed, f"http://a.wild.test:{outside}/?size=9").isdigit()
        assert fetch(listed, f"http://good.test:{outside}/") == "403"
        assert [each.host for each in gate_of(listed).take_denied("verifier")] == ["good.test"]
        assert gate_of(guarded).take_denied("agent") == ()
        assert closed.exec("env | grep -i proxy").output == ""
        assert "refused" in closed.exec("echo > /dev/tcp/127.0.0.1/3128").output
        assert closed.egress is None
    finally:
        for fork in forks:
            fork.stop()
        snapshot.discard()


@pytest.mark.matrix
def test_ports_inside_are_reached_as_ever(guarded: Environment) -> None:
    serve = "import socket; s = socket.create_server(('127.0.0.1', 8123)); c = s.accept()[0]; c.sendall(b'inside')"
    guarded.exec(f'python3 -c "{serve}" > /dev/null 2>&1 &')
    for _ in range(100):
        try:
            connection = guarded.connect(8123, timeout=10)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    with connection:
        assert connection.recv(100) == b"inside"


@pytest.mark.matrix
def test_nothing_is_left_of_it_once_it_has_stopped(engine: Engine, plain_task: Task, known_names: None) -> None:
    environment = engine.create(plain_task, env={}, network=LIST)
    before = set(_listening())
    environment.start()
    assert gate_of(environment)
    assert bool(set(_listening()) - before) is isinstance(environment, SandboxEnvironment)
    environment.stop()
    environment.stop()
    assert set(_listening()) <= before


def _listening() -> list[str]:
    """This process' sockets that listen, in whatever network; other processes make and close some at any time."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{name}")
            if target.startswith("socket:"):
                with socket.socket(fileno=os.dup(int(name))) as own:
                    if own.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                        found.append(target)
    return found


# Docker.


def _containers(docker: DockerEngine, owner: str) -> list[Any]:
    found: list[Any] = docker._client.containers(all=True, filters={"label": f"evocode.engine={owner}"})
    return found


@pytest.mark.docker
@pytest.mark.nightly
def test_another_container_is_out_of_reach(docker: DockerEngine, plain_task: Task, outside: int) -> None:
    docker.egress_proxy().resolve = resolve
    other = docker.create(plain_task, env={}, network="public")
    guarded = docker.create(plain_task, env={}, network=LIST)
    try:
        other.start()
        guarded.start()
        address = other.exec(["hostname", "-i"]).output.strip()
        other.exec("python3 -m http.server 8000 > /dev/null 2>&1 &")
        assert (
            "unreachable" in fetch(guarded, f"http://{address}:8000/")
            or fetch(guarded, f"http://{address}:8000/") == "403"
        )
        direct = "import socket, sys; socket.create_connection((sys.argv[1], 8000), 5)"
        assert "Network is unreachable" in guarded.exec(["python3", "-c", direct, address]).output
    finally:
        guarded.stop()
        other.stop()


@pytest.mark.docker
@pytest.mark.nightly
def test_containers_of_a_killed_session_are_removed_by_the_next(docker: DockerEngine, plain_task: Task) -> None:
    from pytest_evocode.environments.docker.engine import DockerEngine as Engine

    script = (
        "import signal, sys; from pathlib import Path\n"
        "from pytest_evocode.environments.docker.engine import DockerEngine\n"
        "from pytest_evocode.tasks import Allowlist, load_task\n"
        "engine = DockerEngine()\n"
        "e = engine.create(load_task(Path(sys.argv[1])), env={}, network=Allowlist.of(['good.test'])); e.start()\n"
        "print(engine._own['evocode.engine'], flush=True); signal.pause()"
    )
    argv = [sys.executable, "-c", script, str(plain_task.directory)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdout is not None
        owner = session.stdout.readline().strip()
        assert len(_containers(docker, owner)) == 2
        session.kill()
    Engine().close()
    wait_until(lambda: not _containers(docker, owner))


@pytest.mark.docker
def test_python_carries_connections_where_there_is_no_perl(
    docker: DockerEngine, make_task: MakeTask, outside: int
) -> None:
    docker.egress_proxy().resolve = resolve
    task = make_task(f"FROM {BASE}\nRUN rm /usr/bin/perl*\n")
    environment = docker.create(task, env={}, network=LIST)
    try:
        environment.start()
        assert fetch(environment, f"http://good.test:{outside}/?size=3000000").startswith("30000")
        upload = f"import urllib.request as u; print(u.urlopen('http://good.test:{outside}/', b'x' * 2000000).read())"
        assert environment.exec(["python3", "-c", upload], timeout=60).output == "b'got 2000000'\n"
    finally:
        environment.stop()


@pytest.mark.docker
def test_an_image_without_both_is_refused_with_what_to_do(docker: DockerEngine, make_task: MakeTask) -> None:
    from pytest_evocode.errors import EnvironmentFault

    remove = "RUN rm -f /usr/bin/perl* /usr/local/bin/python* /usr/bin/python*"
    task = make_task(f"FROM {BASE}\n{remove}\n")
    environment = docker.create(task, env={}, network=LIST)
    with pytest.raises(EnvironmentFault, match="neither perl nor python3, and one of them has to; install it in"):
        environment.start()
    environment.stop()
    assert _containers(docker, docker._own["evocode.engine"]) == []


# Sandboxes.


@pytest.mark.matrix
def test_connections_of_a_sandbox_end_with_it(sandbox_engine: SandboxEngine, plain_task: Task) -> None:
    sandbox_engine.egress_proxy().resolve = resolve
    with socket.create_server((LISTED, 0)) as server:
        environment = sandbox_engine.create(plain_task, env={}, network=LIST)
        environment.start()
        port = server.getsockname()[1]
        hold = (
            "import socket, time; s = socket.create_connection(('127.0.0.1', 3128));"
            f" s.sendall(b'CONNECT good.test:{port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); time.sleep(600)"
        )
        environment.exec(f'python3 -c "{hold}" > /dev/null 2>&1 &')
        server.settimeout(30)
        taken, _ = server.accept()
        with taken:
            environment.stop()
            taken.settimeout(20)
            assert taken.recv(10) == b""

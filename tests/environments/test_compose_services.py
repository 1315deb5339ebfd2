"""The services of a compose file: who reaches whom, what forks have of them, and that nothing is left."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Environment
from pytest_evocode.environments.docker.compose.making import ComposeEnvironment
from pytest_evocode.environments.docker.engine import DockerEngine, find_docker_leftovers
from pytest_evocode.errors import NeedsDocker, TaskError
from pytest_evocode.tasks import Allowlist, Network, Task
from tests.environments.conftest import BASE, start_engine
from tests.environments.egress import escapes
from tests.environments.egress.outside import HOSTS, LISTED, resolve, served
from tests.environments.test_allowlists import Host, host  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from tests.environments.conftest import MakeTask

pytestmark = pytest.mark.docker

#: Keeps what it is sent: below /data, which may be a volume, /kept, which is none, and /state.
SERVER = """\
import http.server, pathlib, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, body, status=200):
        self.send_response(status); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        path = pathlib.Path(self.path)
        self.answer(path.read_bytes()) if path.is_file() else self.answer(b"none", 404)
    def do_PUT(self):
        path = pathlib.Path(self.path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
        except OSError as error: self.answer(str(error).encode(), 500)
        else: self.answer(b"stored")
    def log_message(self, form, *words): print(form % words, flush=True)
print("listens as", *sys.argv[1:], flush=True)
http.server.ThreadingHTTPServer(("", 80), Handler).serve_forever()
"""
CLIENT = """\
import sys, urllib.request as u
method, url, *data = sys.argv[1:]
request = u.Request(url, method=method, data=data[0].encode() if data else None)
try: print(u.urlopen(request, timeout=20).read().decode())
except u.HTTPError as e: print(e.code, e.read().decode())
except OSError as e: print("unreached:", e)
"""
COMPOSE = """\
services:
  main:
    volumes: ["handed:/handed"]
    depends_on: {db: {condition: service_healthy}, once: {condition: service_completed_successfully}}
  once:
    image: python:3.11-slim-bookworm
    command: ["sh", "-c", "echo made > /handed/by-once"]
    volumes: ["handed:/handed"]
  db: &server
    image: python:3.11-slim-bookworm
    command: [python, /server.py, "${WHO}"]
    volumes: ["./server.py:/server.py:ro", "data:/data", "/anonymous"]
    healthcheck: {test: [CMD, python, -c, "import socket; socket.create_connection(('localhost', 80))"], interval: 1s}
  plain:
    <<: *server
    volumes: ["./server.py:/server.py:ro"]
  fixed:
    <<: *server
    read_only: true
    volumes: ["./server.py:/server.py:ro", "/data"]
  reset:
    <<: *server
    volumes: ["./server.py:/server.py:ro", "/data"]
  index:
    <<: *server
    volumes: ["./server.py:/server.py:ro", "/data"]
volumes: {data: {}, handed: {}}
"""
#: One service, where it does not matter what there are else.
SMALL = """\
services:
  main: {depends_on: {db: {condition: service_healthy}}}
  db:
    image: python:3.11-slim-bookworm
    command: [python, /server.py, "${WHO}"]
    volumes: ["./server.py:/server.py:ro", "/data"]
    healthcheck: {test: [CMD, python, -c, "import socket; socket.create_connection(('localhost', 80))"], interval: 1s}
"""
TOML = '[metadata.evocode.sidecars]\nreset = "image"\nindex = "shared"\n'


def call(environment: Environment, method: str, url: str, *data: str, client: str = CLIENT) -> str:
    """What a program of ``main`` is answered."""
    return environment.exec(["python3", "-c", client, method, url, *data], timeout=60).output.strip()


def composed(engine: DockerEngine, task: Task, network: Network | None = None) -> ComposeEnvironment:
    environment = engine.create(task, env={"WHO": "db"}, network=network)
    assert isinstance(environment, ComposeEnvironment)
    environment.start()
    return environment


@pytest.fixture(scope="module")
def task(make_task: MakeTask) -> Task:
    return make_task(
        files={"docker-compose.yaml": COMPOSE, "server.py": SERVER, "Dockerfile": f"FROM {BASE}\n"}, toml=TOML
    )


@pytest.fixture(scope="module")
def small_task(make_task: MakeTask) -> Task:
    """A task with one service."""
    return make_task(files={"docker-compose.yaml": SMALL, "server.py": SERVER, "Dockerfile": f"FROM {BASE}\n"})


@pytest.fixture(scope="module")
def running(docker: DockerEngine, task: Task) -> Iterator[ComposeEnvironment]:
    environment = composed(docker, task)
    yield environment
    environment.stop()


@pytest.mark.nightly  # By day tests/acceptance/test_compose_tasks.py has a service that suites and agents reach.
def test_services_are_reached_by_their_names_and_tell_how_they_are(running: ComposeEnvironment) -> None:
    assert call(running, "PUT", "http://db/data/a", "1") == "stored"
    assert call(running, "GET", "http://db/data/a") == "1"
    assert running.exec(["cat", "/handed/by-once"]).output == "made\n"
    states = running.service_states()
    found = {name: (each["state"], each["exit_code"]) for name, each in states.items()}
    assert found.pop("once") == ("exited", 0)
    assert found == dict.fromkeys(("db", "plain", "fixed", "reset", "index"), ("running", None))
    assert running.service_log("db").decode().startswith("listens as db\n")
    assert running.exec_in("db", "cat /data/a; exit 3", timeout=30).output == "1"
    assert running.exec_in("db", "echo on; sleep 60", timeout=1).timed_out
    assert running.exec_in("db", "test -e /data/a", timeout=30).ok


@pytest.mark.nightly
def test_a_fork_has_what_each_service_is_to_have_of_the_agents(running: ComposeEnvironment) -> None:
    for service in ("db", "plain", "reset", "index"):
        for path in ("/data/x", "/kept/x"):
            assert call(running, "PUT", f"http://{service}{path}", "old") == "stored"
    assert call(running, "PUT", "http://fixed/data/sub/x", "old") == "stored"
    running.exec(["sh", "-c", "echo old > /handed/x"])
    snapshot = running.snapshot()
    call(running, "PUT", "http://db/data/x", "new")
    running.exec(["sh", "-c", "echo new > /handed/x"])
    fork = running.fork(snapshot, network=None)
    try:
        fork.start()
        held = {
            service: [call(fork, "GET", f"http://{service}{path}") for path in ("/data/x", "/kept/x")]
            for service in ("db", "plain", "reset", "index")
        }
        assert held == {
            "db": ["old", "old"], "plain": ["old", "old"], "reset": ["404 none"] * 2, "index": ["404 none"] * 2,
        }  # fmt: skip
        assert fork.exec(["cat", "/handed/x"]).output == "old\n"
        assert call(fork, "GET", "http://fixed/data/sub/x") == "old"
        for path in ("/data/y", "/kept/y"):  # It is one for all forks.
            assert "Read-only file system" in call(fork, "PUT", f"http://index{path}", "1")
        call(fork, "PUT", "http://db/data/x", "of the fork")
        assert call(running, "GET", "http://db/data/x") == "new"
    finally:
        fork.stop()
        snapshot.discard()


@pytest.mark.nightly
def test_forks_of_one_snapshot_have_nothing_of_one_another(docker: DockerEngine, small_task: Task) -> None:
    environment = composed(docker, small_task)
    call(environment, "PUT", "http://db/data/x", "old")
    snapshot = environment.snapshot()
    forks = [environment.fork(snapshot, network=None) for _ in range(2)]
    try:
        for fork in forks:
            fork.start()
        call(forks[0], "PUT", "http://db/data/x", "of the fork")
        assert call(forks[1], "GET", "http://db/data/x") == "old"
    finally:
        for each in (*forks, environment):
            each.stop()
        snapshot.discard()


@pytest.mark.nightly
def test_a_clean_fork_has_the_services_with_what_they_held(running: ComposeEnvironment) -> None:
    call(running, "PUT", "http://db/data/clean", "1")
    running.exec("mkdir -p /app && echo 1 > /app/kept && echo 1 > /gone")
    snapshot = running.snapshot()
    fork = running.fork(snapshot, network=None, only=("/app",))
    try:
        fork.start()
        assert fork.exec("cat /app/kept; ls /gone").output.startswith("1\nls:")
        assert call(fork, "GET", "http://db/data/clean") == "1"
    finally:
        fork.stop()
        snapshot.discard()


@pytest.mark.parametrize("place", ["/srv/handed:ro", "/app/handed:ro", "/app/handed", "/app"])
def test_a_clean_fork_has_what_a_service_shares_with_main(
    docker: DockerEngine, make_task: MakeTask, place: str
) -> None:
    compose = f"""\
services:
  main: {{volumes: ["handed:{place}"]}}
  db:
    image: {BASE}
    command: [sleep, "600"]
    volumes: ["handed:/data"]
volumes: {{handed: {{}}}}
"""
    dockerfile = f"FROM {BASE}\nRUN mkdir -p /app && touch /app/of-the-image\n"
    environment = composed(docker, make_task(files={"docker-compose.yaml": compose, "Dockerfile": dockerfile}))
    path = place.removesuffix(":ro")
    environment.exec("rm -f /app/of-the-image; echo work > /app/work")
    environment.exec_in("db", "echo 1 > /data/said", timeout=30)
    snapshot = environment.snapshot()
    fork = environment.fork(snapshot, network=None, only=("/app",), exact=("/srv", path))
    try:
        fork.start()
        assert fork.exec(f"cat {path}/said /app/work; ls -A /app").output.splitlines()[:2] == ["1", "work"]
        assert not fork.exec("ls /app/of-the-image").ok
    finally:
        fork.stop()
        environment.stop()
        snapshot.discard()


@pytest.mark.nightly
def test_a_volume_that_only_the_image_declares_comes_along_with_its_owner(
    docker: DockerEngine, make_task: MakeTask
) -> None:
    compose = """\
services:
  db: &service
    build: ./db
    command: [sleep, "600"]
    deploy: {resources: {limits: {cpus: "1"}}}
  index: *service
"""
    dockerfile = f"FROM {BASE}\nRUN mkdir /v && touch /v/a /v/b && chown 7:8 /v\nVOLUME /v\n"
    files = {"docker-compose.yaml": compose, "db/Dockerfile": dockerfile, "Dockerfile": f"FROM {BASE}\n"}
    environment = composed(docker, make_task(files=files, toml='[metadata.evocode.sidecars]\nindex = "shared"\n'))
    environment.exec_in("db", "rm /v/a; touch /v/c", timeout=30)
    snapshot = environment.snapshot()
    fork = environment.fork(snapshot, network=None)
    try:
        fork.start()
        assert isinstance(fork, ComposeEnvironment)
        assert fork.exec_in("db", "stat -c %u:%g /v; ls /v", timeout=30).output == "7:8\nb\nc\n"
        (shared,) = docker._client.containers(
            filters={"label": "com.docker.compose.service=index", "network": fork._services.networks["default"]}
        )
        run = docker._client.exec_create(shared["Id"], ["touch", "/v/x"])
        assert b"Read-only file system" in docker._client.exec_start(run["Id"])
    finally:
        fork.stop()
        environment.stop()
        snapshot.discard()


@pytest.mark.nightly
def test_services_are_no_way_out_where_the_task_gives_none(
    docker: DockerEngine,
    small_task: Task,
    host: Host,  # noqa: F811
) -> None:
    environment = composed(docker, small_task, "no-network")
    try:
        assert call(environment, "PUT", "http://db/data/a", "1") == "stored"
        assert_no_way_out(environment, host)
    finally:
        environment.stop()


@pytest.mark.nightly
def test_services_are_no_way_out_beside_a_list_of_names(
    docker: DockerEngine,
    small_task: Task,
    host: Host,  # noqa: F811
) -> None:
    docker.egress_proxy().resolve = resolve
    environment = composed(docker, small_task, Allowlist.of(HOSTS))
    try:
        assert call(environment, "PUT", "http://db/data/a", "1") == "stored"
        script = Path(escapes.__file__).read_text()
        arguments = ["python3", "-c", script, json.dumps(host.own), str(host.tcp), str(host.udp)]
        found = json.loads(environment.exec(arguments, user="0", timeout=240).output)
        direct = {what: came for what, came in found.items() if not what.startswith("proxy ")}
        direct = {what: came for what, came in direct.items() if isinstance(came, str)}
        assert {what: came for what, came in direct.items() if not came.startswith("refused: ")} == {}
        assert_no_way_out(environment, host)
        assert environment.egress is not None
        with served(LISTED) as port:
            assert call(environment, "GET", f"http://good.test:{port}/").startswith("/ good.test")
            assert call(environment, "GET", f"http://evil.test:{port}/").startswith("403")
    finally:
        environment.stop()


def assert_no_way_out(environment: ComposeEnvironment, host: Host) -> None:  # noqa: F811
    """Neither ``main`` nor its service reaches this machine, or learns of a name."""
    # Packets are lost, so each takes its whole time; who comes later is seen by what listens all the same.
    client = CLIENT.replace("timeout=20", "timeout=2")
    urls = [f"http://{address}:{host.tcp}/" for address in host.own[:2]]
    names = "import socket\ntry: print(socket.getaddrinfo('good.test', 80))\nexcept OSError as e: print('refused')"
    lines = [f"python3 - GET {url} <<'E'\n{client}E\n" for url in urls]
    lines.append(f'RES_OPTIONS="timeout:2 attempts:1" python3 -c "{names}"')
    with ThreadPoolExecutor(5) as pool:
        of_main = [pool.submit(call, environment, "GET", url, client=client) for url in urls]
        of_db = [pool.submit(environment.exec_in, "db", line, timeout=60) for line in lines]
    for reached in of_main:
        assert reached.result().startswith(("unreached", "403"))
    *reaching, named = [each.result().output for each in of_db]
    assert all("unreached" in output for output in reaching), reaching
    assert named == "refused\n"
    assert host.visits == []


def test_a_service_that_never_gets_ready_is_told_with_what_it_printed(
    docker: DockerEngine, make_task: MakeTask
) -> None:
    compose = """\
services:
  main:
    depends_on:
      db: {condition: service_healthy}
  db:
    image: python:3.11-slim-bookworm
    command: [sh, -c, "echo no disk; exit 4"]
    healthcheck: {test: "true"}
"""
    before = everything_of(docker)
    environment = docker.create(make_task(files={"docker-compose.yaml": compose}), env={}, network=None)
    with pytest.raises(TaskError, match=r"(?s)yaml:4: .*the service db has ended; it printed:\nno disk"):
        environment.start()
    environment.stop()
    assert everything_of(docker) == before


@pytest.mark.parametrize(
    ("said", "command", "interval"),
    [
        ("interval: 2s", "sh -c 'test -e /ready'", 2.0),
        ("disable: true", None, None),
        ("test: [CMD, 'true']", "true", 30.0),
    ],
)
@pytest.mark.matrix
def test_what_the_file_says_of_health_goes_before_the_images_healthcheck(
    docker: DockerEngine, make_task: MakeTask, said: str, command: str | None, interval: float | None
) -> None:
    compose = f"services:\n  main:\n    healthcheck: {{{said}}}\n"
    task = make_task(f"FROM {BASE}\nHEALTHCHECK CMD test -e /ready\n", files={"docker-compose.yaml": compose})
    check = task.config.environment.healthcheck or docker.create(task, env={}, network=None).healthcheck
    assert (check and check.command, check and check.interval_sec) == (command, interval)


def everything_of(engine: DockerEngine) -> dict[str, int]:
    """How much there is of an engine of this kind."""
    client, label = engine._client, {"label": f"evocode.engine={engine._own['evocode.engine']}"}
    return {
        "containers": len(client.containers(all=True, filters=label)),
        "networks": len(client.networks(filters=label)),
        "volumes": len(client.volumes(filters=label)["Volumes"] or ()),
    }


@pytest.mark.nightly
def test_nothing_is_left_of_services(task: Task) -> None:
    engine = DockerEngine()
    environment = composed(engine, task)
    snapshot = environment.snapshot()
    fork = environment.fork(snapshot, network=None)
    fork.start()
    assert everything_of(engine)["volumes"] > 0
    environment.stop()
    fork.stop()
    snapshot.discard()
    assert everything_of(engine) == {"containers": 0, "networks": 0, "volumes": 0}
    composed(engine, task)
    engine.close()
    other = DockerEngine()
    other._own = engine._own
    assert everything_of(other) == {"containers": 0, "networks": 0, "volumes": 0}
    other.close()


@pytest.mark.nightly
def test_what_a_killed_session_left_is_removed_by_the_next(task: Task, docker: DockerEngine) -> None:
    script = (
        "import signal, sys; from pathlib import Path\n"
        "from pytest_evocode.environments.docker.engine import DockerEngine\n"
        "from pytest_evocode.tasks import load_task\n"
        "engine = DockerEngine(); e = engine.create(load_task(Path(sys.argv[1])), env={'WHO': ''}, network=None)\n"
        "e.start(); print(engine._own['evocode.engine'], flush=True); signal.pause()"
    )
    arguments = [sys.executable, "-c", script, str(task.directory)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdout is not None
        owner = session.stdout.readline().strip()
        session.kill()
    client, label = docker._client, {"label": f"evocode.engine={owner}"}
    assert client.volumes(filters=label)["Volumes"]
    found = find_docker_leftovers(client)
    assert {kind for kind, entries in found.items() if entries} >= {"container", "network", "volume"}
    DockerEngine().close()
    for _ in range(600):  # An engine of another test may have begun to remove them.
        if not client.containers(all=True, filters=label) and not client.volumes(filters=label)["Volumes"]:
            break
        threading.Event().wait(0.1)
    assert not client.volumes(filters=label)["Volumes"]
    assert not client.networks(filters=label)


def test_the_sandbox_refuses_a_compose_file_by_its_name(task: Task) -> None:
    engine = start_engine("sandbox")
    try:
        with pytest.raises(NeedsDocker, match=r"docker-compose\.yaml:1: this task needs Docker: .*services"):
            engine.create(task, env={}, network=None)
    finally:
        engine.close()

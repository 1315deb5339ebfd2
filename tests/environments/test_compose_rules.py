"""What compose files may not say: everything that reaches the host, with the line in the file."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments.docker.compose.making import program_of
from pytest_evocode.environments.docker.compose.project import plain, read_project
from pytest_evocode.environments.entry_points import EntryPoint
from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.compose_file import read_compose_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.environments.conftest import MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.docker]  # For its command line.

REFUSED = [
    ("volumes: ['/:/host']", "is outside of"),
    ("volumes: ['/var/run/docker.sock:/s']", "is outside of"),
    ("volumes: ['../tests:/tests']", "is outside of"),
    ("volumes: ['~/.ssh:/ssh']", "there is no"),
    ("volumes: ['./link:/x']", "is outside of"),
    ("volumes: ['./nothing:/x']", "there is no"),
    ("privileged: true", "reaches the host"),
    ("volumes: [{type: bind, source: ., target: /x, bind: {propagation: shared}}]", "reaches the host"),
    ("volumes: [{type: image, source: python, target: /x}]", "mount of the type image"),
    ("volumes_from: ['container:x']", "volumes_from"),
    ("devices: ['/dev/kmsg:/dev/kmsg']", "not supported"),
    ("device_cgroup_rules: ['c 1:3 mr']", "not supported"),
    ("gpus: all", "not supported"),
    ("deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}", "reaches the host"),
    ("deploy: {replicas: 2}", "one container"),
    ("cap_add: [SYS_ADMIN]", "more than the engine gives"),
    ("cap_add: [ALL]", "more than the engine gives"),
    ("cap_add: [CAP_NET_ADMIN]", "more than the engine gives"),
    ("security_opt: ['seccomp:unconfined']", "only no-new-privileges"),
    ("security_opt: ['apparmor=unconfined']", "only no-new-privileges"),
    ("network_mode: host", "not supported"),
    ("network_mode: 'container:x'", "not supported"),
    ("pid: host", "not supported"),
    ("ipc: host", "reaches the host"),
    ("uts: host", "not supported"),
    ("userns_mode: host", "not supported"),
    ("cgroup: host", "not supported"),
    ("cgroup_parent: /x", "not supported"),
    ("runtime: x", "not supported"),
    ("use_api_socket: true", "not supported"),
    ("provider: {type: x}", "not supported"),
    ("credential_spec: {file: x.json}", "not supported"),
    ("post_start: [{command: x}]", "not supported"),
    ("pre_stop: [{command: x}]", "not supported"),
    ("external_links: [x]", "not supported"),
    ("extra_hosts: ['h:host-gateway']", "reaches the host"),
    ("sysctls: {kernel.msgmax: 1}", "only those of the network"),
    ("env_file: ../secret.env", "is outside of"),
    ("env_file: [{path: /etc/environment}]", "is outside of"),
    ("volumes: [{type: tmpfs, target: /x, tmpfs: {mode: 511}}]", "only its size"),
    ("label_file: ./link", "is outside of"),
    ("build: ..", "is outside of"),
    ("build: 'https://example.org/x.git'", "is outside of"),
    ("build: {context: ., dockerfile: ../../x}", "is outside of"),
    ("build: {context: ., additional_contexts: {x: /}}", "not supported"),
    ("build: {context: ., ssh: [default]}", "not supported"),
    ("build: {context: ., network: host}", "not supported"),
    ("build: {context: ., privileged: true}", "not supported"),
    ("build: {context: ., args: ['A=${TOKEN}']}", "TOKEN is not set"),
    ("environment: [TOKEN]", "TOKEN is not set"),
    ("environment: {A: '${TOKEN}'}", "TOKEN is not set"),
    ("environment: {A: '${TOKEN:?give one}'}", "give one"),
    ("depends_on: [main]", "main is started last"),
    ("networks: {default: {ipv4_address: 10.0.0.1}}", "not supported"),
]


def compose(make_task: MakeTask, service: str, more: str = "") -> Mapping[str, object]:
    text = f"services:\n  main: {{}}\n  db:\n    image: python\n    {service}\n{textwrap.dedent(more)}"
    task = make_task(files={"docker-compose.yaml": text})
    (task.environment_directory / "link").symlink_to("/etc/passwd")
    from pytest_evocode.tasks import load_task

    project = read_project(load_task(task.directory), {"GIVEN": "$1"})
    return project.sidecars["db"].settings


@pytest.mark.parametrize(("service", "why"), REFUSED, ids=[each[0] for each in REFUSED])
@pytest.mark.matrix("why")
def test_what_reaches_the_host_is_refused_with_its_line(make_task: MakeTask, service: str, why: str) -> None:
    with pytest.raises(TaskError, match=why) as caught:
        compose(make_task, service)
    assert caught.value.path.name == "docker-compose.yaml"
    if "give one" not in why:
        assert caught.value.line == 5


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("volumes: {data: {driver_opts: {type: none, o: bind, device: /}}}", "volumes.data.driver_opts: not supported"),
        ("volumes: {data: {external: true}}", "volumes.data.external: not supported"),
        ("networks: {default: {external: true, name: bridge}}", "networks.default.external: not supported"),
        ("networks: {default: {driver: host}}", "'host' is not supported"),
        ("networks: {default: {driver_opts: {a: b}}}", "not supported"),
        ("networks: {default: {ipam: {config: [{subnet: 10.1.0.0/16}]}}}", "no address can be fixed"),
        ("secrets: {s: {file: /etc/shadow}}", "is outside of"),
        ("configs: {s: {file: ../task.toml}}", "is outside of"),
        ("secrets: {s: {environment: TOKEN}}", "TOKEN is not set"),
    ],
)
def test_the_other_tables_reach_nothing_either(make_task: MakeTask, more: str, why: str) -> None:
    named = next((kind for kind in ("secrets", "configs") if more.startswith(kind)), "")
    service = {"": "volumes: ['data:/d']" if "data" in more else "init: true"}.get(named, f"{named}: [s]")
    with pytest.raises(TaskError, match=why):
        compose(make_task, service, more)


@pytest.mark.parametrize("given", ["uid", "gid"])
def test_files_of_the_task_belong_to_root(make_task: MakeTask, given: str) -> None:
    with pytest.raises(TaskError, match=rf"services\.db\.secrets\.0\.{given}: files of the task belong to root"):
        compose(make_task, f"secrets: [{{source: s, {given}: '1000'}}]", "secrets: {s: {environment: GIVEN}}")


@pytest.mark.parametrize(
    ("mounts", "refused"),
    [
        ("volumes: ['data:/logs/verifier']", "/logs/verifier"),
        ("volumes: ['data:/logs']", "/logs/verifier"),
        ("volumes: ['data:/tests/data/']", "/tests"),
        ("tmpfs: ['/tests:size=1m']", "/tests"),
        ("volumes: [{type: tmpfs, target: /solution}]", "/solution"),
        ("volumes: ['data:/logs/artifacts', 'own:/logs/verifier']", None),
    ],
)
@pytest.mark.matrix("refused")
def test_no_service_writes_where_suites_keep_their_files(make_task: MakeTask, mounts: str, refused: str | None) -> None:
    other = "db: {image: python, volumes: ['data:/d']}"
    text = f"services:\n  main:\n    {mounts}\n  {other}\nvolumes: {{data: {{}}, own: {{}}}}\n"
    task = make_task(files={"docker-compose.yaml": text})
    if refused is None:
        assert read_project(task, {}).shared_volumes.keys() == {"/logs/artifacts"}
        return
    with pytest.raises(TaskError, match=f"{refused} is for suites alone") as caught:
        read_project(task, {})
    assert caught.value.line == 3


def test_a_tmpfs_has_its_size_and_a_link_to_a_file_is_that_file(make_task: MakeTask) -> None:
    text = "services:\n  db: {image: python, volumes: [{type: tmpfs, target: /x, tmpfs: {size: 1m}}, './link:/file']}\n"
    task = make_task(files={"docker-compose.yaml": text, "data": "x"})
    (task.environment_directory / "link").symlink_to("data")
    db = read_project(task, {}).sidecars["db"]
    assert db.settings["tmpfs"] == ["/x:size=1048576"]
    assert [each.source for each in db.copies] == [(task.environment_directory / "data").resolve()]


@pytest.mark.parametrize(
    ("said", "runs"),
    [
        ("", ("/entry",)),
        ("command: sleep infinity", ("/entry",)),
        ("command: serve", ("sh", "-c", "exec /entry serve", "main")),
        ("entrypoint: []", None),
        ("entrypoint: [sleep, infinity]", None),
        ("entrypoint: [own, x]", ("sh", "-c", "exec own x", "main")),
    ],
)
def test_an_entry_point_in_the_file_takes_the_place_of_the_images(
    make_task: MakeTask, said: str, runs: tuple[str, ...] | None
) -> None:
    text = f"services:\n  main:\n    working_dir: /own\n    {said}\n"
    main = read_project(make_task(files={"docker-compose.yaml": text}), {}).main
    entered = program_of(main, {"Entrypoint": ["/entry"], "WorkingDir": "/"}, EntryPoint(("/entry",), "/"))
    assert (entered.argv if entered is not None else None) == runs
    assert entered is None or runs == ("/entry",) or entered.cwd == "/own"


def test_anchors_and_extensions_do_not_get_around_the_rules(make_task: MakeTask) -> None:
    text = "x-all: &all {privileged: true}\nservices:\n  db:\n    <<: *all\n    image: python\n"
    with pytest.raises(TaskError, match=r"services\.db\.privileged: it reaches the host"):
        read_project(make_task(files={"docker-compose.yaml": text}), {})
    files = {
        "docker-compose.yaml": "include: [more.yaml]\nservices:\n  db: {extends: {file: base.yaml, service: b}}\n",
        "more.yaml": "services: {web: {image: python}}\n",
        "base.yaml": "services: {b: {image: python, pid: host}}\n",
    }
    with pytest.raises(TaskError, match=r"services\.db\.pid: not supported"):
        read_project(make_task(files=files), {})


def test_variables_of_this_machine_reach_no_compose_file(make_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    monkeypatch.setenv("COMPOSE_PROFILES", "more")
    with pytest.raises(TaskError, match=r'declare it there as TOKEN = "\$\{TOKEN\}"'):
        compose(make_task, "command: ['${TOKEN}']")
    for variable in ("PATH", "HOME", "DOCKER_HOST"):
        with pytest.raises(TaskError, match=f"{variable} is not set"):
            compose(make_task, f"command: ['${{{variable}}}']")


def test_declared_variables_defaults_and_those_of_the_tasks_own_env_file_are_filled_in(make_task: MakeTask) -> None:
    text = """\
services:
  db:
    image: python
    environment: {A: "${GIVEN}", B: "${OTHER:-default}", C: "${OWN}", D: "a$$b"}
    env_file: more.env
"""
    files = {"docker-compose.yaml": text, ".env": "OWN=own\n", "more.env": "E=${GIVEN}\n"}
    project = read_project(make_task(files=files), {"GIVEN": "given"})
    assert project.sidecars["db"].settings["environment"] == {
        "A": "given", "B": "default", "C": "own", "D": "a$$b", "E": "given",
    }  # fmt: skip


def test_no_variable_of_a_task_says_what_docker_compose_runs_on_this_machine(
    make_task: MakeTask, tmp_path: Path
) -> None:
    text = 'services:\n  db: {image: python, environment: {A: "${GIVEN}", B: "${DOCKER_CONFIG}"}}\n'
    task = make_task(
        files={"docker-compose.yaml": text, "cli-plugins/docker-compose": f"#!/bin/sh\n: > {tmp_path}/run"}
    )
    (task.environment_directory / "cli-plugins/docker-compose").chmod(0o755)
    given = {"GIVEN": "1", "DOCKER_CONFIG": str(task.environment_directory), "LD_PRELOAD": "./x.so", "A=1\nB": "2"}
    project = read_project(task, given)
    assert not list(tmp_path.iterdir())
    assert project.sidecars["db"].settings["environment"]["A"] == "1"


def test_values_of_variables_arrive_as_they_are(make_task: MakeTask) -> None:
    values = ["a$b", "'\"", "end\\", "$${GIVEN}", "one\ntwo", "# x", " x ", "", "\\0134\\n", "`id`"]
    used = ", ".join(f'A{number}: "${{GIVEN_{number}}}"' for number in range(len(values)))
    text = f"services:\n  db: {{image: python, environment: {{{used}}}}}\n"
    given = {f"GIVEN_{number}": value for number, value in enumerate(values)}
    arrived = read_project(make_task(files={"docker-compose.yaml": text}), given).sidecars["db"].settings["environment"]
    assert [plain(arrived[f"A{number}"]) for number in range(len(values))] == values


def test_the_env_file_beside_an_included_file_is_one_of_the_task(make_task: MakeTask) -> None:
    files = {
        "docker-compose.yaml": "services: {}\n",
        "more/compose.yaml": 'services: {web: {image: python, environment: {A: "${THIS_MACHINES:-}"}}}\n',
    }
    task = make_task(files=files)
    (task.directory / "elsewhere").write_text("THIS_MACHINES=secret\n")
    (task.environment_directory / "more/.env").symlink_to("../../elsewhere")
    compose = task.environment_directory / "docker-compose.yaml"
    compose.write_text("include: [more/compose.yaml]\n")
    with pytest.raises(TaskError, match="leads out of the task"):
        read_compose_file(compose)


def test_services_come_after_those_that_they_wait_for(make_task: MakeTask) -> None:
    text = """\
services:
  web: {image: python, depends_on: [cache, db]}
  cache: {image: python, depends_on: {db: {condition: service_healthy}}}
  db: {image: python}
"""
    project = read_project(make_task(files={"docker-compose.yaml": text}), {})
    assert list(project.sidecars) == ["db", "cache", "web"]
    circle = "services: {a: {image: x, depends_on: [b]}, b: {image: x, depends_on: [a]}}"
    with pytest.raises(TaskError, match="cycle"):
        read_project(make_task(files={"docker-compose.yaml": circle}), {})


def test_harbors_directories_of_logs_are_those_that_are_there_anyway(make_task: MakeTask) -> None:
    text = """\
services:
  main:
    volumes: ["${HOST_VERIFIER_LOGS_PATH}:${ENV_VERIFIER_LOGS_PATH}", "./data:/data:ro"]
    deploy: {resources: {limits: {cpus: "${CPUS}", memory: "${MEMORY}"}}}
"""
    main = read_project(make_task(files={"docker-compose.yaml": text, "data": "x"}), {}).main
    assert [each.target for each in main.copies] == ["/data"]
    assert main.volumes == []

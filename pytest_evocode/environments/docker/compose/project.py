"""A compose file as ``docker compose`` resolves it, with nothing in it that reaches the host."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from pytest_evocode.environments.docker.compose.rules import LOGS_MARK, Rules
from pytest_evocode.errors import EnvironmentFault, TaskError
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.compose_file import MAIN, ComposeFile
from pytest_evocode.tasks.model import SidecarStart

_TIMEOUT = 120.0  # seconds for `docker compose` to read a file, or to make containers
_UNSET = re.compile(r'The \\?"(?P<name>[^"\\]+)\\?" variable is not set')
_OF_ENGINE = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "HOME", "PATH")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The names that a compose file can refer to."""
_NO_REMOTES = {"COMPOSE_EXPERIMENTAL_GIT_REMOTE": "false", "COMPOSE_EXPERIMENTAL_OCI_REMOTE": "false"}
"""Of an included file, no name that also is that of a repository is fetched."""
_DROPPED = {
    *("build", "ports", "expose", "container_name", "logging", "labels", "annotations", "depends_on", "networks"),
    *("profiles", "attach", "scale", "env_file", "configs", "secrets", "volumes", "pull_policy"),
}


@dataclass(frozen=True, slots=True)
class CopiedFiles:
    """Files of the task that a service finds at a path: what Docker would mount from the host is copied here."""

    source: Path | bytes | None
    """None makes a directory."""
    target: str
    mode: int | None = None


@dataclass(frozen=True, slots=True)
class VolumeMount:
    """A volume at a path of a service."""

    target: str
    name: str | None = None
    """Its name in the compose file; None for an anonymous one."""
    read_only: bool = False

    def key(self, service: str) -> str:
        """Return what tells the volume from all others of the project, given a service that mounts it."""
        return self.name or f"{service}:{self.target}"


@dataclass(frozen=True, slots=True)
class Service:
    """One service."""

    name: str
    settings: Mapping[str, Any]
    """What ``docker compose`` is to make a container of, without what is below."""
    image: str | None
    """A finished image; None where one is built."""
    build: Mapping[str, Any] | None
    depends_on: Mapping[str, str]
    """The conditions by the services that it waits for."""
    networks: Mapping[str, Sequence[str]]
    """Its names in each network."""
    volumes: Sequence[VolumeMount] = ()
    copies: Sequence[CopiedFiles] = ()
    start: SidecarStart | None = None
    """How it is started in forks, where the task says so."""


@dataclass(frozen=True, slots=True)
class ComposeProject:
    """The services of a task."""

    file: ComposeFile
    main: Service
    sidecars: Mapping[str, Service]
    """In an order in which each comes after those that it waits for."""
    networks: Sequence[str]
    internal: frozenset[str] = field(default_factory=frozenset)
    """The networks that the file itself gives no way out."""

    @property
    def shared_volumes(self) -> Mapping[str, VolumeMount]:
        """The volumes that ``main`` shares with other services, by their paths in ``main``."""
        others = {mount.name for each in self.sidecars.values() for mount in each.volumes}
        return {mount.target: mount for mount in self.main.volumes if mount.name is not None and mount.name in others}

    @property
    def names(self) -> tuple[str, ...]:
        """All names by which services are reached."""
        found = (name for each in self.sidecars.values() for names in each.networks.values() for name in names)
        return tuple(dict.fromkeys(found))


def read_project(task: Task, env: Mapping[str, str]) -> ComposeProject:
    """Have ``docker compose`` resolve a task's compose file, and check what comes of it.

    Args:
        task: One with a compose file.
        env: The task's variables, resolved: the only ones that the file can refer to, besides those of Harbor.

    Raises:
        TaskError: The file says what cannot be, or refers to a variable that is not declared.
        EnvironmentFault: ``docker compose`` cannot be run.
    """
    file = task.compose
    assert file is not None
    rules = Rules(file)
    model = _resolve(file, {**_variables_of_harbor(task), **env}, rules)
    rules.check(model)
    _fill_in(file, model, env, rules)
    starts = task.config.metadata.evocode.sidecars
    services = {name: _service(name, each, model, starts.get(name)) for name, each in model["services"].items()}
    main = services.pop(MAIN, None) or Service(MAIN, {}, None, None, {}, {"default": (MAIN,)})
    if unknown := sorted(starts.keys() - services.keys()):
        raise TaskError(f'metadata.evocode.sidecars: no service is called "{unknown[0]}"', task.file)
    of_main = {each.name for each in main.volumes} - {None}
    for each in services.values():
        if each.start == "shared" and not of_main.isdisjoint(mount.name for mount in each.volumes):
            message = f'{each.name} cannot be "shared", because main has a volume of it; say "snapshot"'
            raise TaskError(f"metadata.evocode.sidecars: {message}", task.file)
    # A volume that nobody else has is as good as a directory, which snapshots have as they have all others.
    others = {mount.name for each in services.values() for mount in each.volumes}
    own = [CopiedFiles(None, each.target) for each in main.volumes if each.name is None or each.name not in others]
    main = replace(main, copies=(*main.copies, *own))
    networks = dict.fromkeys(network for each in (main, *services.values()) for network in each.networks)
    internal = {name for name, each in (model.get("networks") or {}).items() if (each or {}).get("internal")}
    order = TopologicalSorter({name: each.depends_on for name, each in services.items()}).static_order()
    ordered = {name: services[name] for name in order}  # Compose refuses those that wait for each other.
    return ComposeProject(file, main, ordered, tuple(networks), frozenset(internal))


def read_images(file: ComposeFile) -> list[tuple[str | None, Mapping[str, Any] | None]]:
    """Return the images and builds of the services beside ``main``, with variables as they are written.

    A file without variables is checked here already; what is wrong with another one is told when it is resolved.
    """
    done = _read_by_compose(file, {}, "--no-interpolate")
    if done.returncode != 0:
        return []
    model = json.loads(done.stdout)
    if "$" not in done.stdout:
        Rules(file).check(model)
    services: dict[str, Any] = model.get("services") or {}
    found = [(each.get("image"), each.get("build")) for name, each in services.items() if name != MAIN]
    root = file.path.parent.resolve()
    return [
        (image, build)
        for image, build in found
        if build is None or Path(build["context"]).resolve().is_relative_to(root)
    ]


def run_compose(
    arguments: Sequence[str], env: Mapping[str, str], cwd: Path, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run ``docker compose`` with no other variables than are given; raises EnvironmentFault where it cannot be."""
    docker = shutil.which("docker")
    if docker is None:
        raise EnvironmentFault("no 'docker' command on PATH, which reads compose files; install Docker's command line")
    try:
        return subprocess.run(
            [docker, "compose", "--ansi=never", *arguments],
            env=dict(env),
            cwd=cwd,
            capture_output=True,
            text=True,
            errors="replace",
            input=given,
            timeout=_TIMEOUT,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentFault(f"docker compose {arguments[-1]} did not end within {_TIMEOUT:g} s") from None


def engine_variables() -> dict[str, str]:
    """Return the variables by which Docker's command line finds the engine."""
    return {name: value for name in _OF_ENGINE if (value := os.environ.get(name))}


def _read_by_compose(file: ComposeFile, env: Mapping[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    # A file need not say what main is made from, so another one before it does.
    where = ["--project-name", "evocode", "--project-directory", str(file.path.parent)]
    dotenv = file.path.parent / ".env"
    given = ["--env-file", str(dotenv)] if dotenv.is_file() else []
    base = json.dumps({"services": {MAIN: {"image": "evocode-main"}}})
    with _as_env_file(env) as variables:
        arguments = [*where, *given, "--env-file", variables, "--file", "-", "--file", str(file.path)]
        arguments += ["config", *options, "--format", "json"]
        config = os.environ.get("DOCKER_CONFIG") or os.path.expanduser("~/.docker")
        return run_compose(arguments, {"DOCKER_CONFIG": config, **_NO_REMOTES}, file.path.parent, base)


@contextlib.contextmanager
def _as_env_file(env: Mapping[str, str]) -> Iterator[str]:
    """Yield the path of a file in memory with variables.

    They are the task's: as variables of the command itself they could name a program for it to run on the host, as
    DOCKER_CONFIG and LD_PRELOAD do.
    """
    with open(os.memfd_create("evocode-variables"), "wb") as written:
        lines = (f"{name}={_quoted(value)}\n" for name, value in env.items() if _NAME.fullmatch(name))
        written.write("".join(lines).encode())
        written.flush()
        yield f"/proc/{os.getpid()}/fd/{written.fileno()}"


def _quoted(value: str) -> str:
    r"""Return a value as ``docker compose`` reads it from a file of variables.

    >>> print(_quoted('5$ "a"'))
    "5\$ \"a\""
    """
    # A backslash before the last quotation mark would be taken to belong to that one.
    escapes = {"\\": r"\0134", '"': r"\"", "$": r"\$", "\n": r"\n", "\r": r"\r"}
    return '"' + "".join(escapes.get(each, each) for each in value) + '"'


def _resolve(file: ComposeFile, env: Mapping[str, str], rules: Rules) -> dict[str, Any]:
    done = _read_by_compose(file, env)
    if done.returncode != 0:
        last = [line for line in done.stderr.splitlines() if "level=warning" not in line]
        if "unknown command" in done.stderr or "is not a docker command" in done.stderr:
            raise EnvironmentFault("'docker compose' cannot be run; install Docker's Compose plugin")
        message = " ".join(last).strip() or f"docker compose ended with exit code {done.returncode}"
        raise TaskError(f"docker compose refuses it: {message}", file.path)
    for found in _UNSET.finditer(done.stderr):
        raise TaskError(rules.missing(found["name"]), file.path, file.line_of(found["name"]))
    model: dict[str, Any] = json.loads(done.stdout)
    return model


def _variables_of_harbor(task: Task) -> dict[str, str]:
    """Return what Harbor fills in, as far as it means something here."""
    wanted = task.config.environment
    image = wanted.docker_image or "evocode-main"
    return {
        "CONTEXT_DIR": str(task.environment_directory),
        "MAIN_IMAGE_NAME": image,
        "PREBUILT_IMAGE_NAME": image,
        "TEST_DIR": "/tests",
        "CPUS": f"{wanted.cpus or 1:g}",
        "MEMORY": f"{wanted.memory_mb or 2048}M",
        "ENV_VERIFIER_LOGS_PATH": "/logs/verifier",
        "ENV_AGENT_LOGS_PATH": "/logs/agent",
        "ENV_ARTIFACTS_PATH": "/logs/artifacts",
        "HOST_VERIFIER_LOGS_PATH": f"{LOGS_MARK}verifier",
        "HOST_AGENT_LOGS_PATH": f"{LOGS_MARK}agent",
        "HOST_ARTIFACTS_PATH": f"{LOGS_MARK}artifacts",
    }


def _fill_in(file: ComposeFile, model: Mapping[str, Any], env: Mapping[str, str], rules: Rules) -> None:
    """Put the contents of configs and secrets that are variables into their place."""
    for kind in ("configs", "secrets"):
        for name, entry in (model.get(kind) or {}).items():
            if (variable := entry.get("environment")) is not None:
                if variable not in env:
                    raise file.error(rules.missing(variable), kind, name, "environment")
                entry["content"] = env[variable].replace("$", "$$")


def _service(name: str, found: Mapping[str, Any], model: Mapping[str, Any], start: SidecarStart | None) -> Service:
    container_name = [found["container_name"]] if found.get("container_name") else []
    networks = {
        network: tuple(dict.fromkeys([name, *container_name, *((settings or {}).get("aliases") or ())]))
        for network, settings in (found.get("networks") or {}).items()
    }
    mounts, copies, tmpfs = [], list(_given_files(found, model)), list(found.get("tmpfs") or ())
    for each in found.get("volumes") or ():
        if each["type"] == "volume":
            mounts.append(VolumeMount(each["target"], each.get("source"), bool(each.get("read_only"))))
        elif each["type"] == "tmpfs":
            size = (each.get("tmpfs") or {}).get("size")
            tmpfs.append(f"{each['target']}:size={size}" if size else each["target"])
        elif not each["source"].startswith(LOGS_MARK):
            copies.append(CopiedFiles(Path(each["source"]).resolve(), each["target"]))
    settings = {key: value for key, value in found.items() if key not in _DROPPED and not key.startswith("x-")}
    if tmpfs:
        settings["tmpfs"] = tmpfs
    depends = {
        other: each.get("condition", "service_started") for other, each in (found.get("depends_on") or {}).items()
    }
    build = found.get("build")
    image = None if build else found.get("image")
    return Service(name, settings, image, build, depends, networks, mounts, copies, start)


def _given_files(found: Mapping[str, Any], model: Mapping[str, Any]) -> list[CopiedFiles]:
    """Return the configs and secrets of a service."""
    copies = []
    for kind, place in (("configs", "/"), ("secrets", "/run/secrets/")):
        for entry in found.get(kind) or ():
            source = (model.get(kind) or {}).get(entry["source"]) or {}
            target = entry.get("target") or entry["source"]
            target = target if target.startswith("/") else place + target
            mode = int(str(entry["mode"]), 8) if entry.get("mode") else 0o444
            if "file" in source:
                copies.append(CopiedFiles(Path(source["file"]).resolve(), target, mode))
            else:
                text = plain(source.get("content") or "")
                copies.append(CopiedFiles(text.encode(), target, mode))
    return copies


def plain(value: str) -> str:
    """Return a text of a resolved compose file as it is meant; there, a dollar sign is written twice."""
    return value.replace("$$", "$")


def is_idle(words: Sequence[str]) -> bool:
    """Tell whether a command does nothing but keep a container alive.

    >>> is_idle(["sh", "-c", "sleep infinity"]), is_idle(["python", "app.py"]), is_idle(["sh", "-c", "app; sleep 9"])
    (True, False, False)
    """
    if not words:
        return True
    shell = r"((/bin/)?(ba)?sh -c )?(exec )?"
    idle = r"sleep (infinity|inf|\d+[smhd]?)|tail -[fF] /dev/null|cat|bash|sh"
    return re.fullmatch(f"{shell}({idle})", " ".join(words)) is not None

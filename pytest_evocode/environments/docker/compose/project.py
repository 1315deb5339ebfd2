"""A compose file as ``docker compose`` resolves it, with nothing in it that reaches the host or that no fork could get.

The rules go by the file as ``docker compose config`` resolves it, so that no spelling gets around them: only what is
known here to be harmless passes.
"""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from pytest_evocode.errors import EnvironmentFault, TaskError
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.compose_file import MAIN, ComposeFile
from pytest_evocode.tasks.model import SidecarStart

LOGS_MARK = "/evocode/logs/"
"""The beginning of the paths that stand for Harbor's directories of logs on the host."""

_BOTH = {
    *("build", "image", "command", "entrypoint", "environment", "working_dir", "user", "volumes", "tmpfs"),
    *("depends_on", "networks", "hostname", "healthcheck", "configs", "secrets", "deploy", "pull_policy"),
    *("shm_size", "ulimits", "cap_drop", "cap_add", "security_opt", "extra_hosts", "sysctls", "group_add"),
    *("mem_limit", "memswap_limit", "mem_reservation", "cpus", "pids_limit", "cpu_shares", "platform", "scale"),
    # Without effect here, and harmless.
    *("container_name", "ports", "expose", "restart", "labels", "annotations", "logging", "tty", "stdin_open", "init"),
    *("stop_signal", "stop_grace_period", "attach", "profiles", "env_file", "privileged", "ipc", "read_only"),
}
_SIDECAR = {
    *("cpu_count", "cpu_percent", "cpu_period", "cpu_quota", "cpuset", "dns_opt", "dns_search", "domainname"),
    *("mem_swappiness", "oom_kill_disable", "oom_score_adj"),
}
_NOT_OF_MAIN = {"mem_reservation", "memswap_limit", "cpu_shares", "read_only", "platform", "configs", "secrets"}
_CAPABILITIES = (
    "AUDIT_WRITE|CHOWN|DAC_OVERRIDE|FOWNER|FSETID|KILL|MKNOD|NET_BIND_SERVICE|NET_RAW|"
    "SETFCAP|SETGID|SETPCAP|SETUID|SYS_CHROOT"
)
Place = tuple[str | int, ...]
_KEYS = {
    "": {"name", "services", "networks", "volumes", "configs", "secrets", "version"},
    "networks.*": {"name", "driver", "internal", "labels", "attachable", "ipam"},
    "volumes.*": {"name", "driver", "labels"},
    "configs|secrets.*": {"name", "file", "content", "environment"},
    "services.*.build": {"context", "dockerfile", "args", "target", "labels", "pull", "no_cache"},
    "services.*.volumes.*": {"type", "source", "target", "read_only", "volume", "bind", "tmpfs", "consistency"},
    "services.*.networks.*": {"aliases", "priority", "gw_priority", "interface_name"},
}
"""Where tables are, and the keys that each of them may have."""
_OF_SUITES = ("/tests", "/solution", "/logs/verifier")
_HOST_WHY = "it reaches the host, or other attempts; remove it"
_ONE_WHY = "a service has one container; remove the number"
_VALUES = (
    ("networks.*.driver", "bridge|default", "{!r} is not supported; remove it"),
    ("networks.*.ipam", "(?!)", "attempts run side by side, so no address can be fixed"),
    ("volumes.*.driver", "local", "{!r} is not supported; remove it"),
    ("services.*.privileged", "False", _HOST_WHY),
    ("services.*.ipc", "private", _HOST_WHY),
    ("services.*.cap_add", rf"(?i)(CAP_)?({_CAPABILITIES})", "{} is more than the engine gives; remove it"),
    ("services.*.security_opt", r"no-new-privileges([:=]true)?", "{}: only no-new-privileges:true may be set"),
    ("services.*.sysctls", r"net\..*", "{}: only those of the network may be set"),
    ("services.*.extra_hosts", r"(?!.*host-gateway).*", _HOST_WHY),
    ("services.*.scale", "1", _ONE_WHY),
    ("services.*.deploy/replicas", "1", _ONE_WHY),
    ("services.*.deploy.resources.reservations.devices", "(?!)", _HOST_WHY),
    ("services.*.configs|secrets.*.uid|gid", "0", "files of the task belong to root; remove it"),
    ("services.*.volumes.*/tmpfs", "size", "of a tmpfs only its size can be set; remove the rest"),
    ("services.*.volumes.*/type", "volume|bind|tmpfs", "a mount of the type {} is not supported"),
    ("services.*.volumes.*/volume", "nocopy", "not supported; mount the whole volume"),
    ("services.*.volumes.*/bind", "create_host_path|selinux", _HOST_WHY),
)
"""Where values are, what each in a list, and each key of a table, has to be, and what is said where one is not.

Behind a slash is what the message does not name.
"""


def _at(value: Any, pattern: str, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield what there is at the places of a pattern, in which a star stands for every key and index."""
    if value is None or not pattern:
        yield from () if value is None else [(place, value)]
        return
    key, _, rest = pattern.replace("/", ".").partition(".")
    inside: Iterable[tuple[str | int, Any]]
    if key == "*":
        inside = value.items() if isinstance(value, Mapping) else enumerate(value)
    else:
        inside = ((each, value.get(each)) for each in key.split("|"))
    for each, inner in inside:
        yield from _at(inner, rest, (*place, each))


class Rules:
    """Checks one resolved compose file; every method raises :class:`TaskError` with the line in the file."""

    def __init__(self, file: ComposeFile) -> None:
        self._file = file
        self._root = file.path.parent.resolve()

    def check(self, model: Mapping[str, Any]) -> None:
        """Check all of it."""
        services = model.get("services") or {}
        for name, service in services.items():
            known = _BOTH - _NOT_OF_MAIN if name == MAIN else _BOTH | _SIDECAR
            self._only(service, known, "services", name)
        for pattern, keys in _KEYS.items():
            for place, table in _at(model, pattern):
                self._only(table, keys, *place)
        for pattern, wanted, why in _VALUES:
            shown = pattern.partition("/")[0].count(".") + 1
            for place, given in _at(model, pattern):
                for value in given if isinstance(given, list | dict) else [given]:
                    if value is not None and not re.fullmatch(wanted, str(value)):
                        raise self._error(why.format(value), *place[:shown])
        self._set(model)
        self._paths(model)
        self._depends(model)
        self._places_of_suites(services)

    def _set(self, model: Mapping[str, Any]) -> None:
        for pattern in ("services.*.environment", "services.*.build.args"):
            for place, table in _at(model, pattern):
                # Without variables that are filled in, compose leaves a list as it is written.
                unset = sorted(key for key, value in table.items() if value is None) if isinstance(table, dict) else ()
                if unset:
                    raise self._error(self.missing(unset[0]), *place, unset[0])

    def _paths(self, model: Mapping[str, Any]) -> None:
        for place, path in _at(model, "configs|secrets.*.file"):
            self.inside(path, *place)
        for place, build in _at(model, "services.*.build"):
            context = self.inside(build["context"], *place, "context")
            self.inside(str(context / build.get("dockerfile", "Dockerfile")), *place, "dockerfile")
        for place, volume in _at(model, "services.*.volumes.*"):
            if volume["type"] != "bind" or (place[1] == MAIN and volume["source"].startswith(LOGS_MARK)):
                continue
            if not self.inside(volume["source"], *place).exists():
                raise self._error(f"there is no {volume['source']}; correct the path", *place)

    def _depends(self, model: Mapping[str, Any]) -> None:
        for place, depends in _at(model, "services.*.depends_on"):
            for other in depends:
                if other == MAIN:
                    raise self._error("main is started last, so nothing can wait for it; remove it", *place, other)
                if other not in model["services"]:
                    raise self._error("there is no such service; correct its name", *place, other)

    def _places_of_suites(self, services: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuse what another service could write in the directories of suites, and what hides them."""
        main = services.get(MAIN) or {}
        others = [volume for name, each in services.items() if name != MAIN for volume in each.get("volumes") or ()]
        written = {volume.get("source") for volume in others if volume["type"] == "volume"} - {None}
        found = [("tmpfs", index, each.partition(":")[0]) for index, each in enumerate(main.get("tmpfs") or ())]
        for index, volume in enumerate(main.get("volumes") or ()):
            if volume["type"] == "tmpfs" or (volume["type"] == "volume" and volume.get("source") in written):
                found.append(("volumes", index, volume["target"]))
        for key, index, target in found:
            if (directory := _of_suites(target)) is not None:
                raise self._error(f"{directory} is for suites alone; remove it", "services", MAIN, key, index)

    def inside(self, path: str, *place: str | int) -> Path:
        """Return what a path leads to, which has to be in the directory of the compose file."""
        resolved = Path(path).resolve()
        if "://" in path or path.startswith("git@") or not resolved.is_relative_to(self._root):
            raise self._error(f"{path} is outside of {self._root}; copy what is needed into it", *place)
        return resolved

    def missing(self, name: str) -> str:
        """Return what is to be said of a variable that the task does not declare."""
        return (
            f"{name} is not set: a compose file gets the variables of [environment.env] in task.toml and no others; "
            f'declare it there as {name} = "${{{name}}}", or give a default: ${{{name}:-value}}'
        )

    def _only(self, table: Mapping[str, Any], known: Iterable[str], *place: str | int) -> None:
        for key, value in table.items():
            if key not in known and not key.startswith("x-") and value not in (None, [], {}):
                raise self._error("not supported; remove it", *place, key)

    def _error(self, message: str, *place: str | int) -> TaskError:
        return self._file.error(message, *place)


def _of_suites(target: str) -> str | None:
    """Return the directory of suites or solutions that is in a mount, or has it; None without one."""
    path = posixpath.normpath(target).rstrip("/") + "/"
    return next((each for each in _OF_SUITES if f"{each}/".startswith(path) or path.startswith(f"{each}/")), None)


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

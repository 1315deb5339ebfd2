"""What a compose file may not say: whatever reaches the host, or that no fork could be given.

The rules go by the file as ``docker compose config`` resolves it, so that no spelling gets around them: only what is
known here to be harmless passes.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.compose_file import MAIN, ComposeFile

LOGS_MARK = "/evocode/logs/"
"""The beginning of the paths that stand for Harbor's directories of logs on the host."""

_TOP = {"name", "services", "networks", "volumes", "configs", "secrets", "version"}
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
_BUILD = {"context", "dockerfile", "args", "target", "labels", "pull", "no_cache"}
_VOLUME = {"type", "source", "target", "read_only", "volume", "bind", "tmpfs", "consistency"}
_NETWORK = {"aliases", "priority", "gw_priority", "interface_name"}
_ONE_WHY = "a service has one container; remove the number"
_OF_SUITES = ("/tests", "/solution", "/logs/verifier")
_HOST_WHY = "it reaches the host, or other attempts; remove it"
_VALUES = (
    ("privileged", r"False", _HOST_WHY),
    ("ipc", r"private", _HOST_WHY),
    ("cap_add", rf"(?i)(CAP_)?({_CAPABILITIES})", "{} is more than the engine gives; remove it"),
    ("security_opt", r"no-new-privileges([:=]true)?", "{}: only no-new-privileges:true may be set"),
    ("sysctls", r"net\..*", "{}: only those of the network may be set"),
    ("extra_hosts", r"(?!.*host-gateway).*", _HOST_WHY),
    ("scale", r"1", _ONE_WHY),
)
"""Keys of a service, what each of their values has to be, and what is said where one is not."""


class Rules:
    """Checks one resolved compose file; every method raises :class:`TaskError` with the line in the file."""

    def __init__(self, file: ComposeFile) -> None:
        self._file = file
        self._root = file.path.parent.resolve()

    def check(self, model: Mapping[str, Any]) -> None:
        """Check all of it."""
        self._only(model, _TOP, ())
        for name, network in (model.get("networks") or {}).items():
            self._only(
                network or {}, {"name", "driver", "internal", "labels", "attachable", "ipam"}, ("networks", name)
            )
            self._is(network, "driver", {"bridge", "default"}, ("networks", name))
            if (network or {}).get("ipam"):
                raise self._error("attempts run side by side, so no address can be fixed", "networks", name, "ipam")
        for name, volume in (model.get("volumes") or {}).items():
            self._only(volume or {}, {"name", "driver", "labels"}, ("volumes", name))
            self._is(volume, "driver", {"local"}, ("volumes", name))
        for kind in ("configs", "secrets"):
            for name, entry in (model.get(kind) or {}).items():
                self._only(entry, {"name", "file", "content", "environment"}, (kind, name))
                if "file" in entry:
                    self.inside(entry["file"], kind, name, "file")
        services = model.get("services") or {}
        for name, service in services.items():
            self._service(name, service, services.keys())
        self._places_of_suites(services)

    def _service(self, name: str, service: Mapping[str, Any], names: Iterable[str]) -> None:
        place = ("services", name)
        known = _BOTH - _NOT_OF_MAIN if name == MAIN else _BOTH | _SIDECAR
        self._only({key: value for key, value in service.items() if value not in (None, [], {})}, known, place)
        for key, wanted, why in _VALUES:
            given = service.get(key)
            for value in given if isinstance(given, list | dict) else [given]:
                if value is not None and not re.fullmatch(wanted, str(value)):
                    raise self._error(why.format(value), *place, key)
        if (service.get("deploy") or {}).get("replicas") not in (None, 1):
            raise self._error(_ONE_WHY, *place, "deploy")
        resources = (service.get("deploy") or {}).get("resources") or {}
        if "devices" in (resources.get("reservations") or {}):
            raise self._error(_HOST_WHY, *place, "deploy", "resources", "reservations", "devices")
        if unset := sorted(key for key, value in (service.get("environment") or {}).items() if value is None):
            raise self._error(self.missing(unset[0]), *place, "environment", unset[0])
        self._build(service.get("build"), place)
        self._volumes(service.get("volumes") or (), name, place)
        self._depends(service.get("depends_on") or {}, name, names)
        for kind in ("configs", "secrets"):
            for index, given in enumerate(service.get(kind) or ()):
                if owner := next((key for key in ("uid", "gid") if given.get(key) not in (None, "0")), None):
                    raise self._error("files of the task belong to root; remove it", *place, kind, index, owner)
        for network, settings in (service.get("networks") or {}).items():
            self._only(settings or {}, _NETWORK, (*place, "networks", network))

    def _build(self, build: Mapping[str, Any] | None, place: tuple[str, ...]) -> None:
        if build is None:
            return
        self._only({key: value for key, value in build.items() if value}, _BUILD, (*place, "build"))
        context = self.inside(build["context"], *place, "build", "context")
        self.inside(str(context / build.get("dockerfile", "Dockerfile")), *place, "build", "dockerfile")
        if unset := sorted(key for key, value in (build.get("args") or {}).items() if value is None):
            raise self._error(self.missing(unset[0]), *place, "build", "args", unset[0])

    def _volumes(self, volumes: Iterable[Mapping[str, Any]], name: str, place: tuple[str, ...]) -> None:
        for index, volume in enumerate(volumes):
            here: tuple[str | int, ...] = (*place, "volumes", index)
            self._only(volume, _VOLUME, here)
            if (volume.get("tmpfs") or {}).keys() - {"size"}:
                raise self._error("of a tmpfs only its size can be set; remove the rest", *here)
            if volume["type"] not in ("volume", "bind", "tmpfs"):
                raise self._error(f"a mount of the type {volume['type']} is not supported", *here)
            if (volume.get("volume") or {}).keys() - {"nocopy"}:
                raise self._error("not supported; mount the whole volume", *here)
            if (volume.get("bind") or {}).keys() - {"create_host_path", "selinux"}:
                raise self._error(_HOST_WHY, *here)
            of_harbor = name == MAIN and volume["source"].startswith(LOGS_MARK) if volume["type"] == "bind" else True
            if not of_harbor and not self.inside(volume["source"], *here).exists():
                raise self._error(f"there is no {volume['source']}; correct the path", *here)

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

    def _depends(self, depends: Iterable[str], name: str, names: Iterable[str]) -> None:
        for other in depends:
            here = ("services", name, "depends_on", other)
            if other == MAIN:
                raise self._error("main is started last, so nothing can wait for it; remove it", *here)
            if other not in names:
                raise self._error("there is no such service; correct its name", *here)

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

    def _only(self, table: Mapping[str, Any], known: Iterable[str], place: tuple[str | int, ...]) -> None:
        for key in table:
            if key not in known and not key.startswith("x-"):
                raise self._error("not supported; remove it", *place, key)

    def _is(self, table: Mapping[str, Any] | None, key: str, known: set[str], place: tuple[str, ...]) -> None:
        value = (table or {}).get(key)
        if value is not None and value not in known:
            raise self._error(f"{value!r} is not supported; remove it", *place, key)

    def _error(self, message: str, *place: str | int) -> TaskError:
        return self._file.error(message, *place)


def _of_suites(target: str) -> str | None:
    """Return the directory of suites or solutions that is in a mount, or has it; None without one."""
    path = posixpath.normpath(target).rstrip("/") + "/"
    return next((each for each in _OF_SUITES if f"{each}/".startswith(path) or path.startswith(f"{each}/")), None)

"""Environments of tasks with a compose file: what they do with services, their images, and what it says of ``main``."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_evocode.environments.docker.calls import faults
from pytest_evocode.environments.docker.compose.network import ComposeNetwork, ComposeSnapshot
from pytest_evocode.environments.docker.compose.project import Service, is_idle, plain, read_images, read_project
from pytest_evocode.environments.docker.compose.services import ServicesPlan, with_files
from pytest_evocode.environments.docker.container_settings import ContainerSettings, health_of
from pytest_evocode.environments.docker.environment import DockerEnvironment
from pytest_evocode.environments.docker.execs import EngineCommand, run_by_engine
from pytest_evocode.environments.docker.files import ContainerFiles
from pytest_evocode.environments.docker.images import DockerImages
from pytest_evocode.environments.docker.snapshots import DockerSnapshot
from pytest_evocode.environments.engines import BuildWish
from pytest_evocode.environments.entry_points import EntryPoint
from pytest_evocode.environments.programs import CappedOutput, Command, ExecResult, User
from pytest_evocode.environments.protocol import Files
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Network, Task
from pytest_evocode.tasks.compose_file import MAIN, MainBuild


class ComposeEnvironment(DockerEnvironment):
    """A :class:`~pytest_evocode.environments.protocol.Environment` of Docker containers."""

    @property
    def _services(self) -> ComposeNetwork:
        assert isinstance(self._network, ComposeNetwork)
        return self._network

    def exec_in(self, service: str, command: str, *, user: User | None = None, timeout: float) -> ExecResult:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        container = self._services.container_of(service)
        started = time.monotonic()
        output = CappedOutput()
        line = EngineCommand(("sh", "-c", command), "" if user is None else str(user), {}, "", started + timeout)

        def restart() -> None:
            with faults(f"starting the service {service} again"):
                self._client.restart(container, timeout=0)

        exit_code, timed_out = run_by_engine(self._client, container, line, output, restart)
        return ExecResult(None if timed_out else exit_code, output.text(), timed_out, time.monotonic() - started)

    def files_of(self, service: str | None) -> Files:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        if service in (None, MAIN):
            return self
        return ContainerFiles(self._client, self._services.container_of(str(service)))

    def service_states(self) -> Mapping[str, Mapping[str, Any]]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        return self._services.states()

    def service_log(self, service: str) -> bytes:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        return self._services.log(service)

    def keep(self, name: str, command: Command, conceal: Callable[[str], str]) -> str:
        """Keep the container of ``main``, without its services and networks."""
        with faults("keeping a container"):
            for network in self._services.networks.values() if self.egress is None else ():
                self._client.disconnect_container_from_network(self._id, network, force=True)
        return super().keep(name, command, conceal)


def ensure_images(images: DockerImages, task: Task, wish: BuildWish) -> bool:
    """Build or pull the images of a task's services that do not depend on variables; return whether any was made.

    The others are made with the environment, which has the variables.
    """
    if task.compose is None:
        return False
    made = False
    for image, build in read_images(task.compose):
        if "$" not in f"{image}{build}":
            made |= images.build(_image_task(task, image, build), None, wish)
    return made


def compose_environment(
    images: DockerImages,
    task: Task,
    settings: ContainerSettings,
    image: Mapping[str, Any],
    *,
    network: Network | None,
    snapshot: DockerSnapshot | None,
    memory: int,
) -> ComposeEnvironment:
    """Return an environment of a task with a compose file, not started.

    Args:
        images: The engine's images.
        task: The task.
        settings: What its container would have without the file.
        image: The engine's description of the image of ``main``.
        network: As for :meth:`~pytest_evocode.environments.engines.Engine.create`.
        snapshot: The same.
        memory: Bytes for each service that sets no limit.

    Raises:
        TaskError: The file cannot be used.
        BuildError: An image cannot be built.
    """
    project = read_project(task, settings.env)
    found = {
        name: str(images.ensure(_image_task(task, each.image, each.build))["Id"])
        for name, each in project.sidecars.items()
    }
    sidecars = dict(project.sidecars)
    for name, each in project.sidecars.items():
        sidecars[name] = replace(each, settings=_bounded(each.settings, memory, settings.processes))
        if each.copies and (each.start == "shared" or each.settings.get("read_only")):
            found[name] = with_files(settings.client, found[name], each.copies, settings.labels)
            sidecars[name] = replace(sidecars[name], copies=())
    project = replace(project, sidecars=sidecars)
    if snapshot is not None and not isinstance(snapshot, ComposeSnapshot):
        raise EnvironmentFault("this state was kept without the services of the task's compose file; begin anew")
    plan = ServicesPlan(settings.client, project, found, settings.labels, closed=False)
    config = image.get("Config") or {}
    workdir = task.config.environment.workdir or project.main.settings.get("working_dir") or config.get("WorkingDir")
    settings = _with_main(settings, project.main, project.shared_volumes.keys(), task, config)
    return ComposeEnvironment(
        settings,
        snapshot.image if snapshot is not None else str(image["Id"]),
        workdir=workdir or "/",
        network=network,
        volumes=snapshot.volumes if snapshot is not None else None,
        own_network=ComposeNetwork(settings, network, plan, snapshot=snapshot),
    )


def _with_main(
    settings: ContainerSettings, main: Service, shared: Collection[str], task: Task, config: Mapping[str, Any]
) -> ContainerSettings:
    """Return the settings of a container with what a compose file says of ``main``; task.toml goes before it."""
    said, wanted = main.settings, task.config.environment
    bounds = {**_limits_of(said)}
    bounds |= {key: said[name] for name, key in (("cpus", "cpus"), ("mem_limit", "memory")) if name in said}
    env = {name: plain(str(value)) for name, value in (said.get("environment") or {}).items()}
    return replace(
        settings,
        volumes=tuple(path for path in settings.volumes if path not in shared),
        user=str(said.get("user") or settings.user),
        env={**env, **settings.env},
        cpus=float(bounds["cpus"]) if wanted.cpus is None and "cpus" in bounds else settings.cpus,
        memory=int(bounds["memory"]) if wanted.memory_mb is None and "memory" in bounds else settings.memory,
        processes=int(said.get("pids_limit") or 0) or settings.processes,
        entry_point=program_of(main, config, settings.entry_point),
        healthcheck=health_of(said.get("healthcheck"), {"Config": config}),
    )


def _bounded(settings: Mapping[str, Any], memory: int, processes: int | None) -> Mapping[str, Any]:
    """Return the settings of a service, with limits where it sets none."""
    if limits := _limits_of(settings):  # Compose refuses other limits beside those.
        limits = {"memory": str(memory), "pids": processes, **limits}
        resources = {**settings["deploy"]["resources"], "limits": limits}
        return {**settings, "deploy": {**settings["deploy"], "resources": resources}}
    of_memory = {} if settings.get("mem_limit") else {"mem_limit": str(memory), "memswap_limit": str(memory)}
    return {"pids_limit": processes, **settings, **of_memory}


def _limits_of(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the limits that a service sets by ``deploy``."""
    return ((settings.get("deploy") or {}).get("resources") or {}).get("limits") or {}


def program_of(main: Service, config: Mapping[str, Any], of_image: EntryPoint | None) -> EntryPoint | None:
    """Return what ``main`` runs, by its compose file and image; None where that only keeps its container alive."""
    entrypoint, command = main.settings.get("entrypoint"), _words(main.settings.get("command"))
    if entrypoint is None and is_idle(command):
        return of_image
    # An entry point in the file takes the place of the image's, even if it is empty.
    words = [*(_words(entrypoint) if entrypoint is not None else config.get("Entrypoint") or ()), *command]
    if is_idle(words):
        return None
    # What is added to the arguments of an entry point is not to reach a program that does not expect it.
    line = shlex.join(words)
    cwd = main.settings.get("working_dir") or config.get("WorkingDir") or "/"
    return EntryPoint(("sh", "-c", f"exec {line}", "main"), cwd)


def _words(said: Any) -> list[str]:
    return [plain(word) for word in said or ()]


def _image_task(task: Task, image: str | None, build: Mapping[str, Any] | None) -> Task:
    """Return a task whose image is that of a service, for it to be built and kept like those of tasks."""
    named = task.config.environment.model_copy(update={"docker_image": None if build else image})
    config = task.config.model_copy(update={"environment": named})
    made = None if build is None else _main_build(build)
    return replace(task.alone(), config=config, build_context=None, main_build=made)


def _main_build(build: Mapping[str, Any]) -> MainBuild:
    context = Path(build["context"]).resolve()
    args = build.get("args") or {}
    # Compose lists them as they are written where it does not fill in variables.
    given = args.items() if isinstance(args, Mapping) else (each.partition("=")[::2] for each in args)
    options = [option for name, value in given for option in ("--build-arg", f"{name}={plain(str(value))}")]
    if build.get("target"):
        options += ["--target", plain(str(build["target"]))]
    return MainBuild(context, (context / build.get("dockerfile", "Dockerfile")).resolve(), tuple(options))

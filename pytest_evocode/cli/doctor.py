"""The command ``evocode doctor``: what works on this machine, and what to do about what does not."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_evocode.agents.tried import agent_kinds
from pytest_evocode.cli.printing import echo
from pytest_evocode.errors import EvocodeError
from pytest_evocode.report.tables import aligned

if TYPE_CHECKING:
    from pytest_evocode.environments import Engine

_AMPLE_DISK = 5 * 2**30  # bytes: some images, and what attempts at a few tasks write


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    works: bool
    told: str
    """What was found, in a few words."""
    remedy: str = ""
    """What to do where it does not work and is wanted."""
    is_engine: bool = False
    """Whether tasks can be run with this alone."""


@click.command("doctor")
def doctor_command() -> None:
    """Print what works on this machine, with remedies for what does not.

    Engines and the gateway are started for a moment. Keys are named, and neither printed nor tried. Exits with 0 where
    tasks can be run, in Docker or in the sandbox, and else with 1.
    """
    found = [*_engines(), *_limits(), _disk(), _gateway(), *_tools(), *_providers()]
    rows = aligned([(each.name, "yes" if each.works else "no", each.told) for each in found], left=(0, 1, 2))
    for row, each in zip(rows, found, strict=True):
        echo(row)
        if not each.works and each.remedy:
            echo(f"    {each.remedy}")
    can_run = any(each.works for each in found if each.is_engine)
    if not can_run:
        echo("\nTasks cannot be run here: neither Docker nor the sandbox works.")
    sys.exit(0 if can_run else 1)


def _engines() -> Iterator[Finding]:
    from pytest_evocode.environments.docker.engine import DockerEngine
    from pytest_evocode.environments.sandbox.engine import SandboxEngine

    start = "start Docker, or set DOCKER_HOST; the sandbox needs none"
    install = "pip install 'pytest-evocode[sandbox]', where that is what is missing; see docs/environments.md"
    yield _engine("docker", DockerEngine, start)
    if os.getuid() == 0:
        yield _engine("sandbox as root", lambda: SandboxEngine(rootless=False), install)
    yield _engine("sandbox without root", lambda: SandboxEngine(rootless=True), install)


def _engine(name: str, make: Callable[[], Engine], remedy: str) -> Finding:
    """Return whether an engine starts."""
    try:
        engine = make()
    except (EvocodeError, OSError) as error:
        return Finding(name, False, str(error), remedy, is_engine=True)
    told = engine.description
    engine.close()
    return Finding(name, True, told, is_engine=True)


def _limits() -> Iterator[Finding]:
    from pytest_evocode.environments.sandbox.cgroups import find_parents

    has_cgroups = bool(find_parents())
    yield Finding(
        "cgroups",
        has_cgroups,
        "the kernel keeps sandboxes to their limits" if has_cgroups else "sandboxes' limits are watched, not enforced",
        "run as root, or in a cgroup of your own: systemd-run --user --scope -p Delegate=yes pytest ...",
    )
    user = str(os.getuid())
    ranges = [line.split(":")[0] for line in _text(Path("/etc/subuid")).splitlines()]
    has_range = bool({user, _user_name()} & set(ranges))
    yield Finding(
        "subuids",
        has_range,
        "a range in /etc/subuid" if has_range else "none; only rootless Docker and Podman need some",
        f"usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {_user_name() or user}",
    )


def _disk() -> Finding:
    from pytest_evocode.environments.cache import cache_directory

    try:
        cache = cache_directory()
    except EvocodeError as error:
        return Finding("disk", False, str(error), "set EVOCODE_CACHE to a directory that you may write to")
    free = shutil.disk_usage(cache).free
    told = f"{free / 2**30:.1f} GiB free for images and sandboxes in {cache}"
    return Finding(
        "disk", free >= _AMPLE_DISK, told, "run evocode clean, or set EVOCODE_CACHE to where there is more room"
    )


def _gateway() -> Finding:
    from pytest_evocode.gateway import Gateway

    gateway = Gateway()
    try:
        return Finding("gateway", gateway.port > 0, "agents' programs reach their models through it")
    except (OSError, EvocodeError) as error:
        return Finding("gateway", False, str(error), "set TMPDIR to a directory that you may write to")
    finally:
        gateway.close()


def _tools() -> Iterator[Finding]:
    wants = (
        ("docker", "building images in Docker"),
        ("git", "--evocode-dataset"),
        ("npm", "the newest versions of CLIs"),
    )
    for name, wanted in wants:
        path = shutil.which(name)
        told = path or f"none; {wanted} needs it"
        yield Finding(f"command {name}", path is not None, told, f"install the command {name}")
    there = [kind.executable for kind in agent_kinds() if kind.executable and shutil.which(kind.executable)]
    told = ", ".join(there) or "none, and none is needed: agents' programs are installed in environments"
    yield Finding("CLIs on PATH", bool(there), told)


def _providers() -> Iterator[Finding]:
    from pytest_evocode.llm.model_options import ModelOptions
    from pytest_evocode.llm.providers import PROVIDERS

    for provider in PROVIDERS.values():
        names = [*provider.key_variables, *filter(None, [provider.token_variable])]
        given = [name for name in names if os.environ.get(name)]
        told = f"{' and '.join(given)} given" if given else ""
        # Whether a platform knows who asks, only its SDK can tell.
        if all(_is_there(module) for module in (provider.sdk, *provider.packages)):
            try:
                missing = provider.missing(provider.access(ModelOptions()))
            except Exception as error:  # Whatever an SDK raises where its own configuration is broken.
                missing = f"{type(error).__name__}: {error}"
            yield Finding(
                f"{provider.name}/MODEL", not missing, told or ("not set up" if missing else "set up"), missing
            )
        else:
            extra = f"pip install 'pytest-evocode[{provider.name}]'"
            yield Finding(f"{provider.name}/MODEL", False, ", ".join(filter(None, (told, "no SDK"))), extra)


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # The package above.
        return False


def _user_name() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""

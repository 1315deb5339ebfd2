"""Sandbox images: the host's own system plus what a Dockerfile adds, replayed once per content."""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import hashlib
import json
import logging
import os
import platform
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from filelock import FileLock

from pytest_evocode.environments.protocol import ExecResult, Installation
from pytest_evocode.environments.sandbox.bubblewrap import SandboxSettings
from pytest_evocode.environments.sandbox.dockerfile import (
    CopyInstruction,
    DirectoryInstruction,
    ParsedDockerfile,
    RunInstruction,
    read_dockerfile,
)
from pytest_evocode.environments.sandbox.environment import PATH, SandboxEnvironment
from pytest_evocode.environments.sandbox.snapshots import remove_tree
from pytest_evocode.errors import BuildError, NeedsDocker
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.content_hash import hash_directory

logger = logging.getLogger(__name__)

#: Raised when an image of the same content would be built differently by this code.
_FORMAT = "2"
_INSTALLING = 900.0  # seconds

# What programs need to start, resolve names of services and check certificates; nothing about this machine's users.
_ETC_ALLOWED = (
    "alternatives", "ca-certificates", "ca-certificates.conf", "debian_version", "ethertypes", "fonts", "java-*",
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "magic", "mime.types", "nsswitch.conf", "os-release",
    "perl", "pki", "protocols", "python3*", "resolv.conf", "services", "ssl/certs", "ssl/openssl.cnf", "terminfo",
    "timezone",
)  # fmt: skip
_PASSWD = """root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"""
_GROUP = "root:x:0:\ndaemon:x:1:\ntty:x:5:\nstaff:x:50:\nusers:x:100:\nnogroup:x:65534:\n"
_DIRECTORIES = {
    "etc": 0o755, "home": 0o755, "media": 0o755, "mnt": 0o755, "opt": 0o755, "root": 0o700, "run": 0o755, "srv": 0o755,
    "tmp": 0o1777, "var/cache": 0o755, "var/lib": 0o755, "var/log": 0o755, "var/tmp": 0o1777, "usr": 0o755,
    "proc": 0o555, "dev": 0o755,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SandboxImage:
    """A built image: its layers, the lowest first, and what its Dockerfile set."""

    layers: tuple[Path, ...]
    env: dict[str, str]
    workdir: str
    user: str
    seconds: float
    """How long it took to build."""


def build_image(settings: SandboxSettings, cache: Path, task: Task) -> SandboxImage:
    """Find or build the task's image, under a lock that all sessions on this machine share.

    Raises:
        BuildError: It cannot be built here.
    """
    directory = _image_directory(settings, cache, task)
    assert task.dockerfile is not None
    timeout = task.config.environment.build_timeout_sec
    _make_once(settings, directory, partial(_build, settings, task.dockerfile, timeout))
    recorded = json.loads((directory / "image.json").read_text())
    return SandboxImage((directory / "base", directory / "added"), **recorded)


def with_installation(
    settings: SandboxSettings, image: SandboxImage, installation: Installation | None
) -> SandboxImage:
    """Return an image with an installation on top, which is made when there is none of the same content.

    Raises:
        BuildError: The installation fails.
    """
    if installation is None:
        return image
    built = image.layers[0].parent
    digest = hashlib.sha256(f"{built.name}\0{installation.script}".encode()).hexdigest()[:32]
    directory = built.parent / digest
    _make_once(settings, directory, partial(_install, settings, image, installation))
    return replace(image, layers=(*image.layers, directory / "added"))


def _install(settings: SandboxSettings, image: SandboxImage, installation: Installation, building: Path) -> None:
    logger.info("installing %s in %s", installation.name, building)
    env = {**image.env, "EVOCODE_ENGINE": "sandbox"}
    environment = SandboxEnvironment(settings, image.layers, workdir="/", user="0", env=env, network="public")
    try:
        environment.start()
        done = environment.exec(installation.script, timeout=_INSTALLING)
        if not done.ok:
            ending = f"did not end in {_INSTALLING:g} s" if done.timed_out else f"ended with exit code {done.exit_code}"
            raise BuildError(
                f"{installation.name} could not be installed in a sandbox, which has the system of this machine "
                f"({host_system()}): its script {ending}. Start Docker and run with --evocode-env=docker, or install "
                f"what is missing here. Its last lines were:\n{done.tail()}"
            )
        keep_as_layer(settings, environment, building / "added")
    finally:
        environment.stop()


def _image_directory(settings: SandboxSettings, cache: Path, task: Task) -> Path:
    """Return where the image of the task's environment is or will be, named by its contents."""
    if task.dockerfile is None:
        raise BuildError(
            f"{task.file}: this task needs Docker: docker_image names a finished image, and the "
            "sandbox can only replay a Dockerfile. Start Docker and run with --evocode-env=docker."
        )
    kind = "rootless" if settings.rootless else "root"
    digest = hash_directory(task.dockerfile.parent, _FORMAT, kind, host_system())
    return cache / "sandbox-images" / digest[:32]


def host_system() -> str:
    """Return the host's distribution, such as ``Debian GNU/Linux 12 (bookworm)``."""
    with contextlib.suppress(OSError):
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    return "Linux"


def _make_once(settings: SandboxSettings, directory: Path, fill: Callable[[Path], None]) -> None:
    """Make a directory of the cache under a lock that all sessions share, unless it exists; whole or not at all."""
    if directory.exists():
        return
    directory.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{directory}.lock"):
        if directory.exists():
            return
        building = Path(tempfile.mkdtemp(prefix=f"{directory.name}.", dir=directory.parent))
        try:
            fill(building)
            building.rename(directory)
        except BaseException:
            remove_tree(settings.launcher, building)
            raise


def _build(settings: SandboxSettings, dockerfile: Path, timeout: float, building: Path) -> None:
    logger.info("building the image of %s in %s", dockerfile, building)
    started = time.monotonic()
    replay = read_dockerfile(dockerfile)
    _check_promise(replay)
    lay_base(building / "base", replay)
    _replay(settings, replay, building, timeout)
    seconds = time.monotonic() - started
    image = {"env": replay.env, "workdir": replay.workdir, "user": replay.user, "seconds": seconds}
    (building / "image.json").write_text(json.dumps(image))
    logger.info("built the image of %s in %.1f s", dockerfile, seconds)


def _check_promise(replay: ParsedDockerfile) -> None:
    tool = replay.promised_tool
    if tool and not shutil.which(tool, path=PATH):
        why = f"FROM {replay.base} promises {tool}, and this system has none below /usr"
        raise NeedsDocker(replay.dockerfile, replay.base_line, why)


def lay_base(base: Path, replay: ParsedDockerfile) -> None:
    """Make the layer that stands for the base image: empty directories, and the allowed files of /etc."""
    root, usr = base / "root", base / "usr"
    for name, mode in _DIRECTORIES.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name).chmod(mode)
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        host = Path("/", name)
        if host.is_symlink():
            (root / name).symlink_to(os.readlink(host))
        elif host.is_dir():
            (root / name).mkdir()
    for pattern in _ETC_ALLOWED if replay.base else ():
        for found in sorted(glob.glob(f"/etc/{pattern}")):
            _copy_public(Path(found), root / found.lstrip("/"))
    (root / "etc/passwd").write_text(_PASSWD)
    (root / "etc/group").write_text(_GROUP)
    (root / "etc/hosts").write_text("127.0.0.1 localhost evocode\n::1 localhost\n")
    (root / "etc/hostname").write_text("evocode\n")
    (usr / "local" / "bin").mkdir(parents=True)
    # Images named python have `python`; Debian's own system has only `python3`.
    if replay.promised_tool == "python3" and not shutil.which("python", path=PATH):
        (usr / "local/bin/python").symlink_to(shutil.which("python3", path=PATH) or "/usr/bin/python3")


def _copy_public(source: Path, target: Path) -> None:
    """Copy what every user of this machine can read; links stay links, and dangling or locked ones are left out."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir() and not source.is_symlink():
        target.mkdir(exist_ok=True)
        for child in source.iterdir():
            _copy_public(child, target / child.name)
    elif source.is_symlink() and str(source.readlink()).startswith(("/etc", "/usr", "..")):
        target.symlink_to(source.readlink())
    elif source.is_file() and source.stat().st_mode & 0o004:
        shutil.copy(source, target)


def _replay(settings: SandboxSettings, replay: ParsedDockerfile, building: Path, timeout: float) -> None:
    """Execute the instructions in a sandbox whose top layer becomes the image's own layer."""
    deadline = time.monotonic() + timeout
    environment = SandboxEnvironment(settings, [building / "base"], workdir="/", user="0", env={}, network="public")
    try:
        environment.start()
        for step, workdir, user in replay.steps:
            match step:
                case DirectoryInstruction():
                    made = environment.exec(["mkdir", "-p", step.path], timeout=60)
                    _expect(made, replay.dockerfile, step.line, f"mkdir -p {step.path}")
                case RunInstruction():
                    left = max(0.1, deadline - time.monotonic())
                    ran = environment.exec(list(step.argv), cwd=workdir, user=user, env=step.env, timeout=left)
                    _expect(ran, replay.dockerfile, step.line, step.text, f"did not end in {timeout:g} s, the build's")
                case CopyInstruction():
                    _copy(replay.dockerfile, step, environment, rootless=settings.rootless)
        keep_as_layer(settings, environment, building / "added")
    finally:
        environment.stop()


def keep_as_layer(settings: SandboxSettings, environment: SandboxEnvironment, layer: Path) -> None:
    """Stop a sandbox, and keep what was written in it as a layer for others."""
    environment.remove(["/logs"])
    environment.end(keep_files=True)
    layer.mkdir()
    written = [str(environment.layers.top / name) for name in ("root", "usr")]
    settings.launcher.host_command(["mv", "--", *written, str(layer)])  # A rename would not do between two disks.
    remove_tree(settings.launcher, environment.layers.top)


def _expect(result: ExecResult, dockerfile: Path, line: int, what: str, late: str = "did not end in time") -> None:
    if not result.ok:
        ending = late if result.timed_out else f"ended with exit code {result.exit_code}"
        raise BuildError(
            f"{dockerfile}:{line}: replayed on {host_system()}, '{what}' {ending}. Correct it, or, where it needs its "
            f"own base image, start Docker and run with --evocode-env=docker. Its last lines were:\n{result.tail()}"
        )


def _copy(dockerfile: Path, copy: CopyInstruction, environment: SandboxEnvironment, *, rootless: bool) -> None:
    """Execute COPY or ADD by Docker's rules: the contents of a directory, and several sources only into a directory."""
    target = copy.target.rstrip("/") or "/"
    is_there = environment.exec(["test", "-d", target]).ok
    with tempfile.TemporaryDirectory() as staging_name:
        staging = Path(staging_name)
        into_directory = _stage(dockerfile, copy, staging, is_there or copy.target.endswith("/"))
        parent = target if into_directory else os.path.dirname(target)
        environment.upload([staging], parent)
        copied = [os.path.join(parent, name) for name in os.listdir(staging)]
    if into_directory and not is_there:
        copied.append(target)
    changes = []
    if copy.owner is not None and not rootless:  # A rootless sandbox has one user, who owns every file.
        group = copy.owner if copy.owner.isdigit() else ""
        changes.append(["chown", "-R", copy.owner if ":" in copy.owner else f"{copy.owner}:{group}"])
    if copy.mode is not None:
        changes.append(["chmod", "-R", f"{copy.mode:o}"])
    for change in changes if copied else ():
        _expect(environment.exec([*change, "--", *copied]), dockerfile, copy.line, " ".join(change))


def _stage(dockerfile: Path, copy: CopyInstruction, staging: Path, into_directory: bool) -> bool:
    """Lay out on the host what is to be copied, and return whether it goes into the target or is the target itself."""
    context = dockerfile.parent
    kept = _context_files(context)
    found = [path for source in copy.sources for path in _find(context, source, kept, dockerfile, copy.line)]
    into_directory = into_directory or len(found) > 1
    for path in found:
        if copy.extract and path.is_file() and tarfile.is_tarfile(path):
            _extract(path, staging, dockerfile, copy.line)
            into_directory = True
        elif path.is_dir():
            _copy_kept(path, staging, context, kept)
            into_directory = True
        else:
            shutil.copy2(path, staging / (path.name if into_directory else os.path.basename(copy.target)))
    return into_directory


def _extract(path: Path, staging: Path, dockerfile: Path, line: int) -> None:
    """Unpack a tar without following it out of the directory.

    Python's own filter for that is in 3.11.4 and later only.
    """
    inside = os.path.realpath(staging)
    try:
        with tarfile.open(path) as archive:
            archive.extraction_filter = lambda member, _: member
            for member in archive:
                member.name = member.name.lstrip("/")
                for name in (member.name, *([member.linkname] if member.islnk() else [])):
                    if os.path.commonpath([inside, os.path.realpath(os.path.join(inside, name))]) != inside:
                        raise tarfile.TarError(f"{name} leads out of the directory")
                if member.isreg() or member.isdir() or member.issym() or member.islnk():
                    archive.extract(member, inside)
    except (tarfile.TarError, OSError) as error:
        raise BuildError(f"{dockerfile}:{line}: {path.name} cannot be unpacked: {error}") from None


def _context_files(context: Path) -> set[str]:
    """Return the relative paths of the build context that .dockerignore leaves in."""
    ignore = context / ".dockerignore"
    if not ignore.is_file():
        return {path.relative_to(context).as_posix() for path in context.rglob("*")}
    from docker.utils.build import exclude_paths

    lines = [line.strip() for line in ignore.read_text().splitlines()]
    patterns = [line for line in lines if line and not line.startswith("#")]
    # The function keeps the Dockerfile and .dockerignore whatever the patterns say, for an engine that reads them.
    kept: set[str] = set(exclude_paths(str(context), patterns, dockerfile="no such file"))
    if any(fnmatch.fnmatch(".dockerignore", pattern.lstrip("/")) for pattern in patterns):
        kept.discard(".dockerignore")
    return kept


def _find(context: Path, source: str, kept: set[str], dockerfile: Path, line: int) -> list[Path]:
    clean = os.path.normpath(source.lstrip("/")) if source.lstrip("/") else "."
    if clean.startswith(".."):
        raise BuildError(f"{dockerfile}:{line}: {source} lies outside the build context {context}")
    if clean == ".":
        return [context]
    found = [Path(path) for path in sorted(glob.glob(str(context / clean)))]
    found = [path for path in found if path.relative_to(context).as_posix() in kept or _holds_any(path, context, kept)]
    if any(not path.resolve().is_relative_to(context.resolve()) for path in found):
        raise BuildError(f"{dockerfile}:{line}: {source} is a link out of the build context {context}")
    if not found:
        raise BuildError(f"{dockerfile}:{line}: {source} is not in the build context {context}")
    return found


def _holds_any(path: Path, context: Path, kept: set[str]) -> bool:
    below = f"{path.relative_to(context).as_posix()}/"
    return any(name.startswith(below) for name in kept)


def _copy_kept(source: Path, target: Path, context: Path, kept: set[str]) -> None:
    for directory, names, files in os.walk(source):
        here = Path(directory)
        for name in (*names, *files):
            path = here / name
            if path.relative_to(context).as_posix() not in kept:
                continue
            copied = target / path.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink():
                copied.symlink_to(path.readlink())
            elif path.is_dir():
                copied.mkdir(exist_ok=True)
            else:
                shutil.copy2(path, copied)

"""A sandbox's image is built once per content, whoever asks, and a failed build leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.environments.sandbox import bubblewrap
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.errors import BuildError
from pytest_evocode.tasks import Task
from tests.environments.test_overlay_layers import mount

if TYPE_CHECKING:
    from tests.environments.conftest import MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.slow]

FROM = "FROM python:3.11-slim-bookworm\n"
STAMP = f"{FROM}COPY . /context\nRUN date +%s.%N > /stamp\n"


def stamp(engine: Engine, task: Task) -> str:
    """When the task's image was built."""
    environment = engine.create(task, env={}, network=None)
    environment.start()
    try:
        return environment.exec(["cat", "/stamp"]).output
    finally:
        environment.stop()


@pytest.mark.matrix
def test_an_image_is_built_once_per_content(sandbox_engine: Engine, make_task: MakeTask) -> None:
    task = make_task(STAMP, files={"file": "text", "sub/file": "text"})
    first = stamp(sandbox_engine, task)
    assert stamp(sandbox_engine, task) == first
    assert stamp(sandbox_engine, make_task(STAMP, files={"file": "text", "sub/file": "text"})) == first
    seen = {first}
    context = task.environment_directory
    for change in (
        lambda: (context / "file").write_text("tex!"),
        lambda: (context / "file").chmod(0o755),
        lambda: (context / "sub" / "file").rename(context / "sub" / "other"),
        lambda: (context / "link").symlink_to("file"),
        lambda: (context / "empty").mkdir(),
        lambda: (context / "Dockerfile").write_text(f"{STAMP}ENV A=1\n"),
    ):
        change()
        seen.add(stamp(sandbox_engine, task))
    assert len(seen) == 7


@pytest.mark.matrix
def test_two_processes_build_an_image_once(sandbox_engine: Engine, make_task: MakeTask) -> None:
    task = make_task(f"{FROM}RUN sleep 0.3; date +%s.%N > /stamp\n")
    script = (
        "import sys; from pathlib import Path\n"
        "from pytest_evocode.environments.sandbox.engine import SandboxEngine\n"
        "from pytest_evocode.tasks import load_task\n"
        "engine = SandboxEngine(); e = engine.create(load_task(Path(sys.argv[1])), env={}, network=None); e.start()\n"
        "print(e.exec('cat /stamp').output, end=''); engine.close()"
    )
    argv = [sys.executable, "-c", script, str(task.directory)]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    stamps = [process.communicate(timeout=300)[0] for process in running]
    assert len(set(stamps)) == 1
    assert stamps[0].strip()


@pytest.mark.parametrize("text", ["RUN echo > /made; exit 1\n", "RUN true\nCOPY missing /x\n", "RUN true\nONBUILD x\n"])
@pytest.mark.matrix
def test_a_failed_build_leaves_nothing_behind(
    sandbox_engine: Engine, make_task: MakeTask, cache: Path, text: str
) -> None:
    def directories() -> set[Path]:
        found = [*cache.glob("sandbox-images/*"), *cache.glob("sandboxes/*/*")]
        return {path for path in found if path.is_dir()}

    before = directories()
    task = make_task(FROM + text)
    for _ in range(2):  # And the second try is a fresh one.
        with pytest.raises(BuildError):
            sandbox_engine.create(task, env={}, network=None)
    assert directories() == before


@pytest.fixture
def cache_on_overlay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache as a container has it, on a file system that carries no sandboxes' files."""
    for name in ("lower", "upper", "work", "cache"):
        (tmp_path / name).mkdir()
    mount(f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work", tmp_path / "cache")
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    yield tmp_path / "cache"
    subprocess.run(["umount", tmp_path / "cache"], check=True)


# A file of the image's, one of the host's, and a directory that was made anew.
REMOVING = "RUN rm /etc/hostname /usr/bin/printenv && rm -r /usr/share/perl5 && mkdir /usr/share/perl5\n"
REMOVED = ("/etc/hostname", "/usr/bin/printenv")
LOOK = (
    "ls /etc/hostname /usr/bin/printenv; ls /etc | grep -x hostname; ls /usr/bin | grep -x printenv; "
    "ls /usr/share/perl5"
)


@pytest.mark.parametrize("rootless", [False, True])
def test_what_a_dockerfile_removes_is_gone_where_the_cache_is_on_an_overlay(
    cache_on_overlay: Path, make_task: MakeTask, rootless: bool
) -> None:
    engine = SandboxEngine(rootless=rootless)
    try:
        environment = engine.create(make_task(f"{FROM}{REMOVING}WORKDIR /app\n"), env={}, network=None)
        assert all(cache_on_overlay in layer.parents for layer in environment.layers.below)
        environment.start()
        said = environment.exec(LOOK).output.splitlines()
        assert said == [f"ls: cannot access '{path}': No such file or directory" for path in REMOVED]
        assert environment.exec("touch /app/new").ok
        snapshot = environment.snapshot()
        assert snapshot.changed_paths(["/logs"]) == ["/app/new"]
        fork = environment.fork(snapshot, network=None, only=["/usr/share", "/etc", "/app"])
        fork.start()
        assert fork.exec(f"{LOOK}; ls /app").output.splitlines() == [*said, "new"]
        fork.stop()
        environment.stop()
    finally:
        engine.close()


def test_a_build_for_which_dev_shm_is_too_small_says_what_to_do(
    cache_on_overlay: Path, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "_AMPLE", 2**60)
    engine = SandboxEngine()
    try:
        assert "what sandboxes write is in /dev/shm, which has " in engine.description
        with pytest.raises(BuildError, match=r"There is no room: what sandboxes write is in /dev/shm, .* --shm-size"):
            engine.create(make_task(f"{FROM}RUN echo 'x: No space left on device'; exit 1\n"), env={}, network=None)
    finally:
        engine.close()


def test_an_image_is_built_where_cache_and_sandboxes_are_on_different_disks(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Path("/dev/shm/evocode-test-state")
    if Path("/dev/shm").stat().st_dev == Path(make_task().directory).stat().st_dev:
        pytest.skip("/dev/shm and the temporary directory are on one disk")
    engine = SandboxEngine()
    settings = engine._settings
    try:
        elsewhere.mkdir()
        monkeypatch.setattr(engine, "_settings", replace(settings, state=elsewhere))
        environment = engine.create(make_task(f"{FROM}RUN echo x > /x && rm /etc/hostname\n"), env={}, network=None)
        environment.start()
        assert environment.exec("test ! -e /etc/hostname && cat /x").output == "x\n"
        environment.stop()
    finally:
        monkeypatch.undo()
        engine.close()
        subprocess.run(["rm", "-rf", str(elsewhere)], check=True)

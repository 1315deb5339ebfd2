"""Images that the user gives: a sandbox runs with their root in place of the host's system."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from pytest_evocode.cli.kept import clean_command
from pytest_evocode.environments import BuildWish, Environment
from pytest_evocode.environments.choice import describe_images
from pytest_evocode.environments.docker import engine as docker_engine
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.environments.sandbox.given_images import machine, parse_given, read_image
from pytest_evocode.environments.sandbox.leftovers import DIRECTORIES, GIVEN, IMAGES
from pytest_evocode.errors import BuildError, Cancelled, EnvironmentFault, EnvironmentUnavailable, UsageError
from tests.environments.image_files import (
    ENTRY,
    directory,
    file,
    hard_link,
    layer,
    layout,
    link,
    saved,
    tiny_system,
    write_archive,
    write_directory,
)

if TYPE_CHECKING:
    from tests.environments.conftest import MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.slow]

NAME = "example.org/tiny:1"
CONFIG = {
    "Env": ["PATH=/opt/bin:/usr/bin:/bin", "GREETING=hello=you"],
    "WorkingDir": "/srv/work",
    "User": "worker:worker",
    "Entrypoint": ["sh", "-c"],
    "Shell": ["/bin/bash", "-o", "pipefail", "-c"],
    "Healthcheck": {"Test": ["CMD-SHELL", "test -e /ready"], "Interval": 2_000_000_000, "Retries": 7},
}


@pytest.fixture(params=[False, pytest.param(True, id="rootless")])
def rootless(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


Start = Callable[..., Environment]


@pytest.fixture
def start(make_task: MakeTask, rootless: bool) -> Iterator[Start]:
    """Starts a sandbox of a Dockerfile, in an engine that has images."""
    with contextlib.ExitStack() as stack:

        def begin(dockerfile: str | None, images: Mapping[str, Path], **task: Any) -> Environment:
            if not rootless and os.getuid() != 0:
                pytest.skip("only root's way is without a user namespace")
            try:
                engine = SandboxEngine(images=images, rootless=rootless)
            except EnvironmentUnavailable as error:
                pytest.skip(str(error))
            stack.callback(engine.close)
            environment = engine.create(make_task(dockerfile, **task), env={}, network=None)
            stack.callback(environment.stop)
            environment.start()
            return environment

        yield begin


def tiny(path: Path, *layers: bytes, config: Mapping[str, Any] = {}) -> Path:
    return write_directory(layout([((tiny_system(), *layers), config, None)]), path)


def output(environment: Environment, script: str) -> str:
    result = environment.exec(script)
    assert result.ok, result.output
    return result.output


# What runs in it.

FORMS: dict[str, Callable[[Path], Path]] = {
    "layout": lambda path: tiny(path / "layout", config=CONFIG),
    "archive of a layout": lambda path: write_archive(
        layout([((tiny_system(),), CONFIG, None)], pack=lambda tar: tar), path / "layout.tar"
    ),
    "docker save": lambda path: write_archive(saved([tiny_system()], CONFIG, NAME), path / "saved.tar"),
    "docker save, compressed": lambda path: write_archive(saved([tiny_system()], CONFIG, NAME), path / "saved.tar.gz"),
}


@pytest.mark.parametrize("form", FORMS)
def test_its_root_replaces_the_hosts_and_its_settings_are_inherited(form: str, start: Start, tmp_path: Path) -> None:
    environment = start(
        f"FROM {NAME}\nUSER root\nRUN [[ -o pipefail ]] && mkdir -p /srv/work && touch built\nUSER worker\n",
        {NAME: FORMS[form](tmp_path)},
    )
    assert output(environment, "cat /etc/os-release; ls /usr; pwd; ls; id -un; echo $GREETING $PATH $LANG") == (
        "ID=tiny\nbin\nlib\nlib64\n/srv/work\nbuilt\nworker\nhello=you /opt/bin:/usr/bin:/bin\n"
    )
    assert environment.entry_point is not None
    assert (environment.entry_point.argv, environment.entry_point.cwd) == (("sh", "-c"), "/srv/work")
    assert environment.healthcheck is not None
    assert (environment.healthcheck.retries, environment.healthcheck.interval_sec) == (7, 2.0)
    assert "sh -c 'test -e /ready'" in environment.healthcheck.command


def test_a_snapshot_its_forks_and_changes_are_of_that_root(start: Start, tmp_path: Path) -> None:
    environment = start(f"FROM {NAME}\nWORKDIR /work\n", {NAME: tiny(tmp_path / "layout")})
    output(environment, "rm /usr/bin/tail /etc/os-release; echo mine > /usr/mine; echo text > file")
    snapshot = environment.snapshot()
    assert [path for path in snapshot.changed_paths() if not path.startswith("/logs")] == [
        "/etc/os-release",
        "/usr/bin/tail",
        "/usr/mine",
        "/work/file",
    ]
    fork = environment.fork(snapshot, network=None, only=["/work"], exact=["/usr/mine"])
    fork.start()
    assert output(fork, "cat file /usr/mine /etc/os-release; ls /usr/bin/tail") == (
        "text\nmine\nID=tiny\n/usr/bin/tail\n"
    )
    fork.stop()


def test_what_is_removed_and_made_of_by_another_layer(start: Start, tmp_path: Path, rootless: bool) -> None:
    first = layer(
        directory("data"),
        *(file(f"data/{name}", name) for name in ("gone", "stays", "kept-in-place")),
        directory("opaque"),
        directory("opaque/deep"),
        file("opaque/deep/old", "old"),
        file("opaque/new", "lower"),
        link("to-data", "data"),
        file("becomes-a-directory"),
        directory("becomes-a-file"),
        file("becomes-a-file/inside"),
    )
    second = layer(
        file("data/.wh.gone"),
        file("data/.wh..wh.plnk"),
        file("opaque/new", "upper"),
        file("opaque/.wh..wh..opq"),
        file("to-data/through-a-link", "through"),
        directory("becomes-a-directory", mode=0o700),
        file("becomes-a-directory/inside", "inside"),
        file("becomes-a-file", "a file"),
        file("set-id", mode=0o4755, uid=1000, gid=1000),
        hard_link("usr/same", "set-id"),
        directory("theirs", mode=0o2750, uid=1000, gid=1000),
        {"name": "fifo", "type": tarfile.FIFOTYPE, "mode": 0o600},
        {"name": "device", "type": tarfile.CHRTYPE, "mode": 0o666, "devmajor": 1, "devminor": 3},
    )
    environment = start(f"FROM {NAME}\n", {NAME: tiny(tmp_path / "layout", first, second)})
    assert output(environment, "cd /data && ls && cat through-a-link; cd /opaque && find . | sort && cat new") == (
        "kept-in-place\nstays\nthrough-a-link\nthrough.\n./new\nupper"
    )
    assert output(
        environment, "cat /becomes-a-directory/inside /becomes-a-file; test -p /fifo && ! test -e /device"
    ) == ("insidea file")
    modes = output(environment, "stat -c '%a %u %Y' /set-id /usr/same /theirs /becomes-a-directory").splitlines()
    owner = 0 if rootless else 1000
    assert modes == [f"4755 {owner} 1700000000"] * 2 + [f"2750 {owner} 1700000000", "700 0 1700000000"]


def test_attributes_come_along_but_not_those_of_overlays(start: Start, tmp_path: Path) -> None:
    capability = bytes.fromhex("0100000200040000000000000000000000000000")
    headers = {
        "SCHILY.xattr.user.own": "value",
        "SCHILY.xattr.user.overlay.opaque": "y",
        "SCHILY.xattr.security.capability": capability.decode("utf-8", "surrogateescape"),
    }
    environment = start(
        f"FROM {NAME}\n", {NAME: tiny(tmp_path / "layout", layer(file("usr/marked", pax_headers=headers)))}
    )
    marked = environment.layers.below[0] / "usr/marked"  # type: ignore[attr-defined]
    found = os.listxattr(marked)
    if not found:
        pytest.skip("the file system of the cache has no attributes")
    assert {*found} - {"security.selinux"} == {"user.own", "security.capability"}
    assert os.getxattr(marked, "user.own") == b"value"


def test_bash_may_be_installed_by_the_dockerfile_and_is_missed_where_it_is_not(start: Start, tmp_path: Path) -> None:
    without = layer(file("usr/bin/.wh.bash"))
    images = {NAME: tiny(tmp_path / "layout", without)}
    with pytest.raises(Exception, match="a sandbox needs bash and finds none"):
        start(f"FROM {NAME}\nRUN echo built\n", images)
    program = Path(shutil.which("bash") or "").read_bytes()
    environment = start(
        f"FROM {NAME}\nCOPY --chmod=755 bash /usr/local/bin/\nRUN bash -c '[[ x ]]'\n", images, files={"bash": program}
    )
    assert output(environment, "[[ a == a ]] && echo $0") == "bash\n"


def test_a_finished_image_of_a_task(start: Start, tmp_path: Path) -> None:
    images = {NAME: tiny(tmp_path / "layout", config=CONFIG)}
    environment = start(None, images, toml=f'[environment]\ndocker_image = "{NAME}"\nworkdir = "/tmp"\n')
    assert output(environment, "cat /etc/os-release; id -un; pwd") == "ID=tiny\nworker\n/tmp\n"


# Once per content, and no longer than it is wanted.


def test_it_is_unpacked_once_per_content_and_is_part_of_the_images_key(make_task: MakeTask, tmp_path: Path) -> None:
    paths = [
        tiny(tmp_path / "one", config={"Env": ["A=1"]}),
        write_archive(saved([tiny_system()], {"Env": ["A=1"]}, NAME), tmp_path / "same.tar"),
        tiny(tmp_path / "other-settings", config={"Env": ["A=2"]}),
        tiny(tmp_path / "other-files", layer(file("more"))),
    ]
    cache = Path(os.environ["EVOCODE_CACHE"]) / IMAGES
    before = {*cache.glob(f"{GIVEN}*/")}
    task = make_task(f"FROM {NAME}\nRUN echo built > /built\n")
    keys, unpacked = [], []
    for path in paths:
        with contextlib.closing(SandboxEngine(images={NAME: path})) as engine:
            keys.append(engine.image_key(task))
            assert engine.versions[f"image {NAME}"].startswith("sha256:")
        unpacked.append(len({*cache.glob(f"{GIVEN}*/")} - before))
    assert keys[0] == keys[1]
    assert len({*keys}) == 3
    assert unpacked[1:] == [unpacked[0], unpacked[0], unpacked[0] + 1]
    with contextlib.closing(SandboxEngine(images={"example.org/unused": paths[0]})) as engine:
        stand_in = make_task("FROM python:3.11-slim-bookworm\n")
        with contextlib.closing(SandboxEngine()) as plain:
            assert engine.image_key(stand_in) == plain.image_key(stand_in)
        assert engine.description.startswith("1 image is given, and the host's ")
        assert "stands in for every other FROM image" in engine.description


def test_clean_removes_what_was_unpacked_and_it_is_unpacked_again(
    make_task: MakeTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_docker() -> None:
        raise EnvironmentUnavailable("not in this test")

    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(docker_engine, "connect", no_docker)
    images = tmp_path / "cache" / IMAGES
    given = {NAME: tiny(tmp_path / "layout")}
    task, stand_in = make_task(f"FROM {NAME}\nRUN echo built > /built\n"), make_task("FROM scratch\n")
    with contextlib.closing(SandboxEngine(images=given, rootless=True)) as engine:
        first = engine.image_key(task)
        engine.image_key(stand_in)
        assert "sandbox layer" not in CliRunner().invoke(clean_command, ["--dry-run"]).output
    (unpacked,) = images.glob(f"{GIVEN}*/")
    (current,) = images.glob(f"{DIRECTORIES}*/")
    for old in (f"{DIRECTORIES}{'0' * 20}", f"{'1' * 32}.killed"):
        (images / old).mkdir()
    printed = CliRunner().invoke(clean_command).output
    assert {line.rpartition("/")[2] for line in printed.splitlines() if "sandbox layer" in line} == {
        unpacked.name,
        f"{DIRECTORIES}{'0' * 20}",
        f"{'1' * 32}.killed",
    }
    assert not unpacked.exists()
    assert current.is_dir()
    with contextlib.closing(SandboxEngine(images=given, rootless=True)) as engine:
        environment = engine.create(task, env={}, network=None)
        environment.start()
        assert output(environment, "cat /etc/os-release /built") == "ID=tiny\nbuilt\n"
        assert engine.image_key(task) == first
        environment.stop()


# What is no image, and what is hostile.


def test_nothing_is_written_outside(start: Start, tmp_path: Path) -> None:
    canary = tmp_path / "outside"
    canary.mkdir()
    away = str(canary)
    up = "../" * 30
    hostile: list[ENTRY] = [
        file(f"{up}{away}/up", "bad"),
        file(f"{away}/absolute", "bad"),
        link("absolute", away),
        file("absolute/through", "bad"),
        link("relative", f"{up}{away}"),
        file("relative/through", "bad"),
        link("usr/lib/deep", f"{up}{away}"),
        file("usr/lib/deep/through", "bad"),
        file(".wh.relative"),
        file(f"{up}{away}/.wh.canary"),
        file("absolute/.wh..wh..opq"),
    ]
    (canary / "canary").write_text("alive")
    environment = start(f"FROM {NAME}\n", {NAME: tiny(tmp_path / "layout", layer(*hostile))})
    assert [path.name for path in canary.iterdir()] == ["canary"]
    assert not list(tmp_path.rglob("through"))
    assert output(environment, f"test ! -e /relative; ls {away}") == "absolute\nthrough\nup\n"


@pytest.mark.parametrize("name", ["../../etc/hosts", "/etc/hosts"])
def test_no_file_outside_of_a_layout_is_taken_for_a_layer(name: str, tmp_path: Path) -> None:
    files = saved([layer()], {}, NAME)
    files["manifest.json"] = files["manifest.json"].replace(b"config.json", name.encode())
    with pytest.raises(UsageError, match="leads out of it"):
        read_image(NAME, write_archive(files, tmp_path / "saved.tar"))


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "it has neither an index.json nor a manifest.json"),
        ({"index.json": b"{}"}, "its description has no 'manifests'"),
        ({"index.json": b"no json"}, "Expecting value"),
        (layout([]), "there is no image of Linux in it"),
        (layout([((), {}, "sparc")]), f"it is for linux/sparc, and this machine is linux/{machine()}"),
        (layout([((), {}, None), ((), {"Env": ["A=1"]}, None)], names=["a:1", "b:1"]), r"2 images in it \(a:1, b:1\)"),
        (layout([((), {"OnBuild": ["RUN x"]}, None)]), "ONBUILD"),
    ],
)
def test_a_path_that_is_no_image_is_named(files: Mapping[str, bytes], why: str, tmp_path: Path) -> None:
    (tmp_path / "image").mkdir()
    for path in (write_directory(files, tmp_path / "image"), write_archive(files, tmp_path / "image.tar")):
        with pytest.raises(UsageError, match=rf"the image {NAME}={path} cannot be used: .*{why}"):
            read_image(NAME, path)


def test_a_path_that_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    with pytest.raises(UsageError, match=r"text cannot be used: it is no tar; give the directory of an OCI layout"):
        SandboxEngine(images={NAME: tmp_path / "text"})
    with pytest.raises(UsageError, match=r"nothing cannot be used: No such file or directory; give"):
        SandboxEngine(images={NAME: tmp_path / "nothing"})


def test_of_several_images_it_is_that_of_the_name_or_of_this_machine(tmp_path: Path) -> None:
    other = ((), {"Env": ["OF=another"]}, "sparc" if machine() != "sparc" else "amd64")
    own = ((), {"Env": ["OF=own"]}, None)
    nested = write_directory(layout([other, own], nested=True), tmp_path / "nested")
    assert read_image(NAME, nested).config.env == {"OF": "own"}
    named = layout([own, ((), {"Env": ["OF=second"]}, None)], names=["first", "example.org/tiny:1"])
    assert read_image(NAME, write_directory(named, tmp_path / "named")).config.env == {"OF": "second"}
    tagged = layout([own, ((), {"Env": ["OF=second"]}, None)], names=["0", "1"])
    assert read_image(NAME, write_directory(tagged, tmp_path / "tagged")).config.env == {"OF": "second"}


def test_platforms_that_were_not_saved_are_passed_over(tmp_path: Path) -> None:
    files = layout([((), {}, "sparc"), ((), {"Env": ["OF=own"]}, None)], nested=True)
    for name in [each for each, contents in files.items() if b"sparc" in contents]:
        del files[name]
    assert read_image(NAME, write_directory(files, tmp_path / "layout")).config.env == {"OF": "own"}


def test_a_damaged_layer_is_named_and_leaves_nothing(make_task: MakeTask, tmp_path: Path) -> None:
    cache = Path(os.environ["EVOCODE_CACHE"]) / IMAGES
    before = {*cache.glob("*/")} if cache.exists() else set()
    path = tiny(tmp_path / "layout", layer(file("x", "original")))
    for blob in (path / "blobs/sha256").iterdir():
        if (contents := blob.read_bytes()).startswith(b"\x1f\x8b") and len(contents) < 1000:
            blob.write_bytes(gzip.compress(layer(file("x", "damaged!"))))
    damaged = pytest.raises(BuildError, match=r"the layer blobs/sha256/\w+ is damaged: its digest is not sha256:")
    with contextlib.closing(SandboxEngine(images={NAME: path})) as engine, damaged:
        engine.image_key(make_task(f"FROM {NAME}\nRUN echo damaged\n"))
    assert {*cache.glob("*/")} == before


def through_zstd(plain: bytes) -> bytes:
    if shutil.which("zstd") is None:
        pytest.skip("there is no zstd")
    return subprocess.run(["zstd", "-cq"], input=plain, capture_output=True, check=True).stdout


WAYS: dict[str, Callable[[bytes], bytes]] = {
    "bz2": bz2.compress,
    "xz": lambda plain: lzma.compress(plain, preset=0),
    "zstd": through_zstd,
    "cut": lambda plain: gzip.compress(plain)[:-20],
}


@pytest.mark.parametrize("pack", WAYS)
def test_layers_may_be_compressed_in_other_ways(pack: str, make_task: MakeTask, tmp_path: Path) -> None:
    files = layout([((layer(directory("usr"), file("usr/own", os.urandom(5000))),), {}, None)], pack=WAYS[pack])
    with contextlib.closing(SandboxEngine(images={NAME: write_directory(files, tmp_path / "layout")})) as engine:
        task = make_task(f"FROM {NAME}\nENV PACK={pack}\n")
        if pack == "cut":
            with pytest.raises(BuildError, match=r"layout: the layer blobs/\S+ of the image cannot be read: "):
                engine.image_key(task)
        else:
            assert engine.image_key(task)


def test_unpacking_ends_when_it_is_cancelled(make_task: MakeTask, tmp_path: Path) -> None:
    cache = Path(os.environ["EVOCODE_CACHE"]) / IMAGES
    before = {*cache.glob("*/")}
    path = tiny(tmp_path / "layout", layer(file("x", "cancelled")))
    wish = BuildWish()
    wish.cancelled.set()
    image = read_image(NAME, path)
    with contextlib.closing(SandboxEngine(images={NAME: path})) as engine, pytest.raises(Cancelled):
        engine.build(make_task(f"FROM {NAME}\nRUN echo cancelled\n"), None, wish)
    with pytest.raises(EnvironmentFault, match="not unpacked any more"), open(os.devnull, "wb") as output_:
        image.copy_layer(*image.layers[0], wish.cancelled, output_)
    assert {*cache.glob("*/")} == before


def test_an_image_that_makes_no_sense(make_task: MakeTask, tmp_path: Path) -> None:
    for number, (entry, why) in enumerate(
        [
            (file("usr"), "its /usr is no directory"),
            (hard_link("a", "missing"), "No such file"),
            (file(".wh.."), "hides"),
        ]
    ):
        path = write_directory(layout([((layer(entry),), {}, None)]), tmp_path / str(number))
        refused = pytest.raises(BuildError, match=rf"the image {path} cannot be unpacked: .*{why}")
        with contextlib.closing(SandboxEngine(images={NAME: path})) as engine, refused:
            engine.image_key(make_task(f"FROM {NAME}\nRUN echo {number}\n"))


# Names.


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("python:3.11", "docker.io/library/python:3.11"),
        ("index.docker.io/python", "python:latest"),
        ("someone/tool", "docker.io/someone/tool:latest"),
        ("localhost:5000/tool", "localhost:5000/tool:latest"),
        (f"tool@sha256:{'0' * 64}", f"docker.io/library/tool:1.2@sha256:{'0' * 64}"),
    ],
)
def test_names_are_those_that_docker_takes_for_the_same(
    given: str, written: str, make_task: MakeTask, tmp_path: Path
) -> None:
    path = tiny(tmp_path / "layout")
    with contextlib.closing(SandboxEngine(images={given: path})) as engine:
        task = make_task(f"ARG TAG={written}\nFROM --platform=$BUILDPLATFORM ${{TAG}} AS only\nRUN echo {given}\n")
        environment = engine.create(task, env={}, network=None)
        environment.start()
        assert output(environment, "cat /etc/os-release") == "ID=tiny\n"
        environment.stop()
        assert describe_images({given: path}, engine, [task.directory]) == ""
        assert describe_images({given: path, "other": path}, engine, [task.directory]) == (
            "no task here is built on other, which --evocode-image gives"
        )


@pytest.mark.parametrize("text", ["python", "=path", "python=", ""])
def test_a_name_without_a_path(text: str) -> None:
    with pytest.raises(UsageError, match="write it as NAME=PATH"):
        parse_given(text)


# The real thing.


@pytest.mark.docker
@pytest.mark.nightly
def test_an_image_that_docker_saved(make_task: MakeTask, tmp_path: Path) -> None:
    name = "python:3.11-slim-bookworm"
    path = tmp_path / "python.tar"
    saving = subprocess.run(["docker", "save", "--output", str(path), name], capture_output=True, text=True)
    if saving.returncode != 0:
        pytest.skip(f"Docker cannot save {name}: {saving.stderr.strip()}")
    look = (
        "python3 --version; command -v python3; stat -c '%a %u' /usr/bin/passwd; cat /etc/os-release; ls /etc /usr/bin"
    )
    of_docker = subprocess.run(
        ["docker", "run", "--rm", name, "bash", "-c", look], capture_output=True, text=True
    ).stdout
    with contextlib.closing(SandboxEngine(images={name: path})) as engine:
        environment = engine.create(make_task(f"FROM {name}\nRUN python3 -c 'print(1)' > /one\n"), env={}, network=None)
        environment.start()
        assert output(environment, "cat /one") == "1\n"
        assert {*output(environment, look).splitlines()} - {"resolv.conf"} == {*of_docker.splitlines()} - {
            "resolv.conf",
            "mtab",
        }
        environment.stop()

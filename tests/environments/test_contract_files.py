"""What every environment promises about files that go in and come out."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Environment, archive, read_environment_file
from pytest_evocode.errors import UnreadableFile

if TYPE_CHECKING:
    from tests.environments.conftest import MakeEnvironment, MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.matrix]

ODD_NAME = "Übung mit 'Anführung' & $dollar\n日本.txt"


def write(directory: Path, **files: str) -> Path:
    """A directory of files; ``__`` in a name is a slash."""
    for name, text in files.items():
        path = directory / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def tree(directory: Path) -> dict[str, str]:
    """The files below a directory by relative path."""
    return {p.relative_to(directory).as_posix(): p.read_text() for p in directory.rglob("*") if p.is_file()}


# Unpacking.


def test_a_tar_is_unpacked_as_it_is(environment: Environment) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as made:
        for name, kind, mode in (("place", tarfile.DIRTYPE, 0o750), ("place/file", tarfile.REGTYPE, 0o640)):
            info = tarfile.TarInfo(f"opt/{name}")
            info.type, info.mode, info.uid, info.gid, info.mtime = kind, mode, 1234, 4321, 1e9
            info.size = 5 if info.isreg() else 0
            made.addfile(info, io.BytesIO(b"whole"))
    assert environment.exec("mkdir -p /opt; : > /opt/place; ln -s /app/from-image /opt/other", user="0").ok
    stream.seek(0)
    environment.put_trees((), (), stream)
    shown = environment.exec("cd /opt && cat place/file && stat -c ' %a %Y' place/file && stat -c %a place", user="0")
    assert shown.output == "whole 640 1000000000\n750\n"
    owners = environment.exec("stat -c %u:%g /opt/place /opt/place/file", user="0").output.split()
    one_id = environment.exec("chown 1234:4321 /opt/place", user="0").exit_code != 0
    assert owners == (["0:0"] * 2 if one_id else ["1234:4321"] * 2)


# Upload.


def test_later_directories_of_an_upload_win(environment: Environment, tmp_path: Path) -> None:
    below = write(tmp_path / "below", a="below", b="below", sub__c="below", sub__d="below")
    above = write(tmp_path / "above", b="above", sub__c="above", new="above")
    environment.upload([below, above], "/opt/laid/over")
    assert environment.exec("cd /opt/laid/over && grep -H . a b new sub/c sub/d").output.splitlines() == [
        "a:below", "b:above", "new:above", "sub/c:above", "sub/d:below"
    ]  # fmt: skip


def test_a_file_may_cover_a_directory_of_an_earlier_source(environment: Environment, tmp_path: Path) -> None:
    below = write(tmp_path / "below", thing__inner="below", keep="below")
    environment.upload([below, write(tmp_path / "above", thing="above")], "/opt/laid")
    assert environment.exec("cd /opt/laid && cat thing keep").output == "abovebelow"


def test_uploaded_files_belong_to_root_and_keep_their_modes(environment: Environment, tmp_path: Path) -> None:
    source = write(tmp_path / "source", plain="", script="#!/bin/sh\necho ran\n", dir__secret="")
    for name, mode in {"plain": 0o644, "script": 0o755, "dir/secret": 0o600, "dir": 0o750}.items():
        (source / name).chmod(mode)
    if os.getuid() == 0:
        os.chown(source / "plain", 1234, 1234)
    environment.upload([source], "/opt/modes")
    listed = environment.exec("cd /opt/modes && stat -c '%n %u:%g %a' plain script dir dir/secret").output
    assert listed.splitlines() == ["plain 0:0 644", "script 0:0 755", "dir 0:0 750", "dir/secret 0:0 600"]
    assert environment.exec(["/opt/modes/script"]).output == "ran\n"


def test_a_writable_upload_can_be_changed_by_every_user(
    make_task: MakeTask, make_environment: MakeEnvironment, tmp_path: Path
) -> None:
    environment = make_environment(make_task("FROM python:3.11-slim-bookworm\nRUN mkdir -p /srv/there/sub\n"))
    source = write(tmp_path / "source", file="old", sub__file="old")
    (source / "file").chmod(0o600)
    environment.upload([source], "/srv/there", writable=True)
    script = "cd /srv/there && echo new | tee file sub/file && touch added sub/added && rm file"
    assert environment.exec(script, user="nobody").ok


def test_an_upload_leaves_owner_and_mode_of_directories_that_are_there(
    make_task: MakeTask, make_environment: MakeEnvironment, tmp_path: Path
) -> None:
    environment = make_environment(make_task("FROM python:3.11-slim-bookworm\nRUN mkdir -p -m 1777 /srv/there/sub\n"))
    environment.exec("chmod 770 /srv/there; chown 65534 /srv/there /srv/there/sub 2>/dev/null")
    before = environment.exec("stat -c '%u %a' /srv/there /srv/there/sub").output
    environment.upload([write(tmp_path / "source", file="", sub__file="")], "/srv/there")
    assert environment.exec("ls /srv/there /srv/there/sub").output.split().count("file") == 2
    assert environment.exec("stat -c '%u %a' /srv/there /srv/there/sub").output == before


def test_an_upload_replaces_what_stands_in_its_way(environment: Environment, tmp_path: Path) -> None:
    environment.exec(
        "mkdir -p /srv/in/dir-for-file/deep /srv/real; echo victim > /srv/victim; cd /srv/in; echo old > file;"
        "ln -s /srv/victim link; mkfifo fifo; echo x > file-for-dir;"
        "ln -s /srv/real linked-dir; ln -s /nowhere dangling"
    )
    names = ("file", "link", "fifo", "dir-for-file", "file-for-dir/f", "linked-dir/f", "dangling/f")
    environment.upload([write(tmp_path / "source", **{name.replace("/", "__"): "new" for name in names})], "/srv/in")
    assert environment.exec(f"cd /srv/in; cat {' '.join(names)}", timeout=30).output == "new" * len(names)
    assert environment.exec("cat /srv/victim /srv/real/f").output == "victim\nnew"


def test_an_upload_makes_way_for_its_target(environment: Environment, tmp_path: Path) -> None:
    environment.exec("rm -rf /app; echo not a directory > /app", cwd="/")
    environment.upload([write(tmp_path / "source", file="new")], "/app")
    assert environment.exec(["cat", "/app/file"], cwd="/").output == "new"


def test_links_empty_directories_and_odd_names_are_uploaded(environment: Environment, tmp_path: Path) -> None:
    source = write(tmp_path / "source", file="text")
    (source / ODD_NAME).write_text("odd")
    (source / "empty" / "deeper").mkdir(parents=True)
    (source / "link").symlink_to("file")
    (source / "dangling").symlink_to("/no/where")
    (source / "directory").symlink_to("empty")
    (source / "hard").hardlink_to(source / "file")
    environment.upload([source], "/opt/odd")
    assert environment.exec(["cat", f"/opt/odd/{ODD_NAME}"]).output == "odd"
    script = "cd /opt/odd; readlink link dangling directory; ls -A empty/deeper; cat hard"
    assert environment.exec(script).output == "file\n/no/where\nempty\ntext"


def test_an_empty_upload_makes_the_directory(environment: Environment, tmp_path: Path) -> None:
    environment.upload([tmp_path], "/opt/new/empty")
    assert environment.exec("cd /opt/new/empty && ls -A").output == ""
    environment.upload([], "/opt/new/nothing")
    assert environment.exec(["test", "-d", "/opt/new/nothing"]).ok


# Download.


def test_a_downloaded_directory_becomes_the_target(environment: Environment, tmp_path: Path) -> None:
    environment.exec("mkdir -p /srv/out/sub/empty; cd /srv/out; echo a > a; echo b > sub/b")
    environment.exec(["touch", f"/srv/out/{ODD_NAME}"])
    target = tmp_path / "new" / "target"
    assert environment.download("/srv/out", target) == ()
    assert tree(target) == {"a": "a\n", "sub/b": "b\n", ODD_NAME: ""}
    assert (target / "sub" / "empty").is_dir()


def test_a_directory_that_something_was_uploaded_into_is_downloaded(environment: Environment, tmp_path: Path) -> None:
    environment.exec("mkdir /srv/in; echo a > /srv/in/a")
    environment.upload([write(tmp_path / "source", b="b")], "/srv/in", writable=True)
    assert environment.download("/srv/in", tmp_path / "out") == ()
    assert tree(tmp_path / "out") == {"a": "a\n", "b": "b"}


@pytest.mark.slow
@pytest.mark.nightly
def test_of_a_tree_without_end_what_is_not_too_deep_is_downloaded(environment: Environment, tmp_path: Path) -> None:
    environment.exec("mkdir -p /srv/out; cd /srv/out; echo a > a; mkdir -p $(printf 'd/%.0s' $(seq 1100)); echo b > b")
    (left_out,) = environment.download("/srv/out", tmp_path / "out")
    assert "nested deeper than" in left_out
    assert (tmp_path / "out/a").read_text() + (tmp_path / "out/b").read_text() == "a\nb\n"


def test_a_downloaded_file_becomes_the_target(environment: Environment, tmp_path: Path) -> None:
    environment.exec("echo one > /srv/file; chmod 4711 /srv/file; chown nobody /srv/file 2>/dev/null")
    assert environment.download("/srv/file", tmp_path / "new" / "name") == ()
    assert (tmp_path / "new" / "name").read_text() == "one\n"
    info = (tmp_path / "new" / "name").stat()
    assert (info.st_uid, info.st_mode & 0o7111) == (os.getuid(), 0)


def test_files_that_their_owner_cannot_read_come_along(environment: Environment, tmp_path: Path) -> None:
    environment.exec("mkdir -p /srv/out/locked; cd /srv/out; echo x > locked/file; chmod 000 locked/file locked")
    assert environment.download("/srv/out", tmp_path / "out") == ()
    assert tree(tmp_path / "out") == {"locked/file": "x\n"}


@pytest.mark.parametrize("source", ["/no/such/thing", "/etc/passwd/below", "/srv/empty"])
def test_nothing_to_download_is_no_error(environment: Environment, tmp_path: Path, source: str) -> None:
    environment.exec(["mkdir", "/srv/empty"])
    assert environment.download(source, tmp_path / "out") == ()
    assert not (tmp_path / "out").exists()


def test_excluded_names_and_paths_stay_behind(environment: Environment, tmp_path: Path) -> None:
    environment.exec(
        "mkdir -p /srv/out/{node_modules,sub/node_modules,sub/deep}; cd /srv/out;"
        "touch a.py a.pyc sub/b.pyc node_modules/x sub/node_modules/y sub/deep/z sub/z deep"
    )
    environment.download("/srv/out", tmp_path / "out", exclude=["*.pyc", "node_modules/", "sub/deep"])
    assert set(tree(tmp_path / "out")) == {"a.py", "sub/z", "deep"}


def test_links_and_special_files_stay_behind_with_the_reason(environment: Environment, tmp_path: Path) -> None:
    environment.exec("mkdir /srv/out; cd /srv/out; echo a > file; ln -s /etc/passwd link; ln -s /etc dir; mkfifo fifo")
    left_out = environment.download("/srv/out", tmp_path / "out")
    assert sorted(left_out) == [f"out/{name}: neither a file nor a directory" for name in ("dir", "fifo", "link")]
    assert tree(tmp_path / "out") == {"file": "a\n"}


def test_a_link_as_source_is_not_followed(environment: Environment, tmp_path: Path) -> None:
    environment.exec(["ln", "-s", "/etc/passwd", "/srv/link"])
    assert environment.download("/srv/link", tmp_path / "out") == ("link: neither a file nor a directory",)
    assert not (tmp_path / "out").exists()


def test_a_download_has_a_limit_of_files(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "ENTRY_LIMIT", 1000)
    environment.exec("mkdir /srv/out; cd /srv/out; touch $(seq 5000)")
    (left_out,) = environment.download("/srv/out", tmp_path / "out")
    assert left_out.endswith("over the limit of 1000 files, it and all that follows")
    assert len(tree(tmp_path / "out")) == 999
    assert environment.exec(["true"]).ok


def test_a_huge_sparse_file_stays_behind(environment: Environment, tmp_path: Path) -> None:
    environment.exec("mkdir /srv/out; cd /srv/out; echo a > a; truncate -s 2G huge; echo z > z")
    (left_out,) = environment.download("/srv/out", tmp_path / "out")
    assert "huge: over the limit of 536870912 bytes" in left_out
    assert not (tmp_path / "out" / "huge").exists()
    assert environment.exec(["true"]).ok


# Read, remove, make directories.


def test_read_gives_the_contents_of_a_regular_file(environment: Environment) -> None:
    environment.exec(r"printf '\x00\xff end' > /srv/file; chmod 000 /srv/file; touch /srv/empty")
    assert read_environment_file(environment, "/srv/file", 6) == b"\x00\xff end"
    assert read_environment_file(environment, "/srv/empty", 0) == b""


@pytest.mark.parametrize("path", ["/srv/missing", "/no/such/file", "/etc/passwd/below"])
def test_read_of_a_missing_file_is_none(shared: Environment, path: str) -> None:
    assert read_environment_file(shared, path, 100) is None


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        ("ln -s /etc/passwd $X", "a symlink"),
        ("ln -s /no/where $X", "a symlink"),
        ("mkdir $X", "a directory"),
        ("mkfifo $X", "not a regular file"),
        ("truncate -s 101 $X", "101 bytes long, over the limit of 100"),
        ("truncate -s 1T $X", "over the limit of 100"),
    ],
)
def test_read_refuses_everything_else(environment: Environment, make: str, reason: str) -> None:
    assert environment.exec(make, env={"X": "/srv/x"}).ok
    with pytest.raises(UnreadableFile, match=reason):
        read_environment_file(environment, "/srv/x", 100)


def test_remove_deletes_names_that_are_not_utf_8(environment: Environment) -> None:
    environment.exec("mkdir /srv/odd; cd /srv/odd; : > $'\\xff\\xfe'; : > kept")
    environment.remove(["/srv/odd/\udcff\udcfe"])
    assert environment.exec(["ls", "/srv/odd"]).output == "kept\n"


def test_remove_deletes_thousands_of_long_paths(environment: Environment) -> None:
    long = "/srv/" + "/".join(["long-" * 40] * 10)
    made = environment.exec(f"mkdir -p {long} && cd {long} && for i in $(seq 1500); do : > $i; done; : > kept")
    assert made.ok, made.output
    environment.remove([f"{long}/{i}" for i in range(1, 1501)])
    assert environment.exec(["ls", long]).output == "kept\n"


def test_remove_deletes_trees_links_and_what_is_locked(environment: Environment) -> None:
    environment.exec(
        "mkdir -p /srv/tree/locked /srv/target; touch /srv/tree/locked/f /srv/target/kept -- /srv/-file;"
        "chmod 000 /srv/tree/locked; ln -s /srv/target /srv/link; mkfifo /srv/fifo"
    )
    environment.remove(["/srv/tree", "/srv/link", "/srv/fifo", "/srv/-file", "/srv/missing", "/etc/passwd/below"])
    assert environment.exec("cd /srv; find . -mindepth 1 | sort").output.split() == ["./target", "./target/kept"]


def test_make_directories_that_every_user_can_write(environment: Environment) -> None:
    mode = environment.exec("stat -c '%a %u' /tmp").output
    environment.make_directories(["/logs/verifier", "/tmp/one/two", "/app"])
    for path in ("/logs/verifier", "/tmp/one/two", "/app"):
        assert environment.exec(["touch", f"{path}/file"], user="nobody").ok
    assert environment.exec(["cat", "/app/from-image"]).output == "original\n"
    assert environment.exec("stat -c '%a %u' /tmp").output == mode


@pytest.mark.parametrize("make", ["echo > /logs", "mkdir /logs; echo > /logs/verifier", "ln -s /nowhere /logs"])
def test_make_directories_where_an_agent_put_something_else(environment: Environment, make: str) -> None:
    assert environment.exec(f"rm -rf /logs; {make}").ok
    environment.make_directories(["/logs/verifier"])
    assert environment.exec(["touch", "/logs/verifier/reward.txt"], user="nobody").ok
    assert environment.exec(["test", "-e", "/nowhere"]).exit_code == 1

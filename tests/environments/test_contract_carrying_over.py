"""What every environment promises about forks that have only some paths of a snapshot, and else the image as built."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.environments.docker import carry_over, snapshots
from tests.environments.conftest import ENGINES, start_engine

if TYPE_CHECKING:
    from tests.environments.conftest import MakeEnvironment, MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.matrix]
#: Files, directories and a link in /srv.
WITH_FILES = """\
FROM python:3.11-slim-bookworm
WORKDIR /app
RUN mkdir -p /srv/dir/sub /srv/empty && echo image | tee /srv/a /srv/b /srv/dir/x /srv/dir/sub/y && ln -s a /srv/link \
 && echo image > here && chmod 2775 /srv/dir
"""


@contextlib.contextmanager
def reading_no_layers() -> Iterator[None]:
    """Have Docker's layers unread for as long as the context lasts, as for a user in Docker's group."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (carry_over, snapshots):
            patch.setattr(module, "layers_can_be_read", lambda container: False)
        yield


@pytest.fixture(scope="module", params=[*ENGINES, pytest.param("docker-unread", marks=pytest.mark.docker)])
def engine(request: pytest.FixtureRequest, cache: Path) -> Iterator[Engine]:
    """Every engine in turn, and Docker where the engine has to read its layers itself."""
    kind = request.param.removesuffix("-unread")
    with contextlib.nullcontext() if kind == request.param else reading_no_layers():
        started = start_engine(kind)
        yield started
        started.close()


@contextlib.contextmanager
def with_only(
    environment: Environment, paths: Sequence[str] = ("/app",), exact: Sequence[str] = ()
) -> Iterator[Environment]:
    """A started fork that has only these paths of the environment as it is now."""
    snapshot = environment.snapshot()
    fork = environment.fork(snapshot, network=None, only=paths, exact=exact)
    try:
        fork.start()
        yield fork
    finally:
        fork.stop()
        snapshot.discard()


def test_the_paths_are_as_in_the_snapshot_and_all_else_is_as_in_the_image(environment: Environment) -> None:
    environment.exec(
        "echo changed > from-image; rm -r tree; mkdir -p new/deep; echo new > new/deep/file;"
        "touch /etc/ld.so.preload; echo planted > /usr/local/bin/planted; rm /etc/hostname; mkdir /srv/other;"
        "echo x > /usr/bin/tac; sleep 300 >/dev/null 2>&1 &"
    )
    with with_only(environment) as fork:
        assert fork.exec("pwd; ls; cat from-image new/deep/file; echo $GREETING").output == (
            "/app\nfrom-image\nnew\nchanged\nnew\nhello from the image\n"
        )
        assert fork.exec("ls /etc/ld.so.preload /usr/local/bin/planted /srv/other 2>/dev/null").output == ""
        assert fork.exec("echo one | tac").output == "one\n"
        assert "sleep" not in fork.exec("cat /proc/[0-9]*/comm").output
    assert environment.exec("cat from-image").output == "changed\n"


def test_a_directory_that_was_made_anew_shows_nothing_of_the_image(environment: Environment) -> None:
    environment.exec("rm -r tree; mkdir -p tree/sub; touch tree/sub/other")
    with with_only(environment) as fork:
        assert fork.exec("find tree").output == "tree\ntree/sub\ntree/sub/other\n"


def test_directories_that_came_along_can_be_renamed(environment: Environment) -> None:
    environment.exec("mkdir -p made/deep /var/lib/shop; touch made/deep/file /var/lib/shop/row")
    with with_only(environment, ["/app", "/var/lib/shop"]) as fork:
        rename = "import os; os.rename('made', 'moved'); os.rename('/var/lib/shop', '/var/lib/store')"
        renamed = fork.exec(["python3", "-c", rename])
        assert renamed.ok, renamed.output
        assert fork.exec("find moved /var/lib/store -type f").output == "moved/deep/file\n/var/lib/store/row\n"


def test_what_nobody_touched_is_there(environment: Environment) -> None:
    with with_only(environment, ["/app", "/srv/nothing"]) as fork:
        assert fork.exec("cat from-image tree/sub/leaf; ls /srv").output == "original\ndeep\n"


def test_paths_outside_the_workdir_come_with_the_directories_above_them(environment: Environment) -> None:
    environment.exec(
        "mkdir -p /var/lib/shop/a /var/lib/other /opt/deep/state; chmod 750 /var/lib/shop;"
        "echo row > /var/lib/shop/a/b; echo conf > /etc/shop.conf; echo not > /etc/not.conf;"
        "touch /opt/deep/state/x /opt/deep/not"
    )
    above = environment.exec("stat -c '%a %u:%g' /var/lib /opt /etc").output
    with with_only(environment, ["/app", "/var/lib/shop", "/etc/shop.conf", "/opt/deep/state", "/srv/missing"]) as fork:
        assert fork.exec("cat /var/lib/shop/a/b /etc/shop.conf; stat -c %a /var/lib/shop").output == "row\nconf\n750\n"
        assert fork.exec("ls /var/lib/other /etc/not.conf /opt/deep/not /srv/missing 2>/dev/null").output == ""
        assert fork.exec("stat -c '%a %u:%g' /var/lib /opt /etc").output == above
        assert fork.exec("ls /opt/deep/state").output == "x\n"
        assert fork.exec(["ls", "/opt/deep/state"], user="nobody").ok


def test_paths_below_usr_are_carried_over(environment: Environment) -> None:
    if not environment.exec("mkdir -p /usr/local/share/shop && echo mine > /usr/local/share/shop/mine").ok:
        pytest.skip("this user cannot write to /usr in a sandbox")
    environment.exec("rm -r /usr/local/bin; echo not > /usr/local/share/not")
    with with_only(environment, ["/app", "/usr/local/share/shop"]) as fork:
        assert fork.exec("cat /usr/local/share/shop/mine; ls /usr/local/share/not").output.startswith("mine\nls:")
        assert fork.exec("ls -d /usr/local/bin").output == "/usr/local/bin\n"


def test_links_modes_owners_times_and_odd_names_survive(environment: Environment) -> None:
    environment.exec(
        "mkdir locked; echo deep > locked/file; chmod 000 locked/file locked; chmod 1777 tree;"
        "ln -s /no/where dangling; ln -s from-image near; echo text > one; ln one two;"
        "chown 65534:65534 tree/sub/leaf; touch -d 2020-02-02T02:02:02Z one;"
        "printf x > $'latin-\\xe9'; printf y > 'ü b'; mkdir -p $(printf 'd%.0s/' $(seq 60));"
        "touch $(printf 'n%.0s' $(seq 200))"
    )
    owner = environment.exec("stat -c '%u:%g' tree/sub/leaf").output
    names = environment.exec("find . | sort | od -c").output
    with with_only(environment) as fork:
        assert fork.exec("stat -c '%a %F' locked locked/file tree").output.splitlines() == [
            "0 directory", "0 regular file", "1777 directory"
        ]  # fmt: skip
        assert fork.exec("cat locked/file; readlink dangling; cat near").output == "deep\n/no/where\noriginal\n"
        assert fork.exec("[ one -ef two ] && stat -c '%h %Y' one").output == "2 1580608922\n"
        assert fork.exec("stat -c '%u:%g' tree/sub/leaf").output == owner
        assert fork.exec("find . | sort | od -c").output == names


def test_nothing_that_gives_rights_comes_along(environment: Environment) -> None:
    environment.exec(
        "cp /bin/sh suid; chmod 6755 suid; ln suid again; mkdir shared; chmod 2775 shared; mkfifo fifo; rm from-image;"
        "mkfifo from-image; cp /bin/cat capable;"
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('socket')\";"
        "mknod device c 1 3; mknod disk b 8 0; ln fifo fifo-again"
    )
    # What setcap writes: CAP_SYS_ADMIN, permitted and effective.
    capability = "bytes.fromhex('0100000200002000000000000000000000000000')"
    environment.exec(f"python3 -c \"import os; os.setxattr('capable', 'security.capability', {capability})\"")
    with with_only(environment) as fork:
        found = fork.exec("find . -mindepth 1 -maxdepth 1 -printf '%P %m\\n' | sort").output.splitlines()
        assert found == ["again 755", "capable 755", "shared 775", "suid 755", "tree 755"]
        assert fork.exec("[ suid -ef again ]").ok
        listed = fork.exec("python3 -c \"import os; print(os.listxattr('capable'))\"").output
        assert "capability" not in listed


@pytest.mark.parametrize("target", ["/etc", "/tests", "/no/where", "/app-moved"])
def test_a_path_that_is_a_link_itself_is_not_there(environment: Environment, target: str) -> None:
    environment.exec(
        f"mkdir /app-moved /var/lib/real; mv /app/* /app-moved; rmdir /app; ln -s {target} /app;"
        f"ln -s {target} /var/lib/shop; touch /var/lib/real/x; echo planted > /etc/planted",
        cwd="/",
    )
    with with_only(environment, ["/app", "/var/lib/shop"]) as fork:
        assert fork.exec("ls -d /app /var/lib/shop /app-moved /etc/planted 2>/dev/null", cwd="/").output == ""
        assert fork.exec("id nobody && test -e /etc/passwd", cwd="/").ok


def test_links_above_a_path_lead_nowhere(environment: Environment) -> None:
    environment.exec(
        "mkdir -p /home/dev/work/state /srv/evil/work/state; touch /srv/evil/work/state/passwd /home/dev/work/state/x"
    )
    environment.exec("rm -r /home/dev; ln -s /srv/evil /home/dev; rm -r /opt; ln -s /etc /opt")
    with with_only(environment, ["/app", "/home/dev/work/state", "/opt/passwd"]) as fork:
        assert fork.exec("ls -d /home/dev /srv/evil /opt/passwd 2>/dev/null").output == ""
        assert fork.exec("[ -d /opt ] && [ ! -L /opt ]").ok


def test_links_of_the_image_are_followed(make_task: MakeTask, make_environment: MakeEnvironment) -> None:
    task = make_task(
        "FROM python:3.11-slim-bookworm\nRUN mkdir -p /srv/releases/1 && echo a > /srv/releases/1/a && "
        "ln -s releases/1 /srv/current && ln -s /srv /shop\nWORKDIR /srv/current\n"
    )
    environment = make_environment(task)
    environment.exec("rm a; echo b > b; mkdir /srv/releases/2")
    with with_only(environment, [environment.workdir, "/shop/releases/1/c"]) as fork:
        assert fork.exec("pwd -P; ls /srv/releases /srv/releases/1").output == (
            "/srv/releases/1\n/srv/releases:\n1\n\n/srv/releases/1:\nb\n"
        )


def test_deleted_paths_are_gone(environment: Environment) -> None:
    environment.exec("rm -r /app /home", cwd="/")
    with with_only(environment, ["/app", "/home"]) as fork:
        assert fork.exec("ls -d /app /home 2>/dev/null", cwd="/").output == ""


def test_directories_that_were_replaced_above_a_path_hide_what_the_image_has(
    make_task: MakeTask, make_environment: MakeEnvironment
) -> None:
    task = make_task(
        "FROM python:3.11-slim-bookworm\nWORKDIR /srv/shop/work\nRUN echo a > a && mkdir sub && echo b > sub/b\n"
    )
    environment = make_environment(task)
    environment.exec("rm -r /srv/shop; mkdir -p /srv/shop/work/sub; touch /srv/shop/work/sub/c", cwd="/")
    with with_only(environment, ["/srv/shop/work"]) as fork:
        assert fork.exec("find . -type f").output == "./sub/c\n"
    environment.exec("rm -r /srv/shop; touch /srv/shop", cwd="/")
    with with_only(environment, ["/srv/shop/work"]) as fork:
        assert fork.exec("ls -A /srv/shop", cwd="/").output == ""


def test_volumes_of_the_image_come_along_as_far_as_they_are_asked_for(
    make_task: MakeTask, make_environment: MakeEnvironment
) -> None:
    task = make_task(
        "FROM python:3.11-slim-bookworm\nWORKDIR /app\n"
        "RUN mkdir -p /data/sub /app/cache /other && echo a > /data/a && echo b > /data/sub/b && echo c > /app/cache/c "
        "&& echo d > /other/d\nVOLUME /data /app/cache /other\n"
    )
    environment = make_environment(task)
    environment.exec(
        "rm /data/a /app/cache/c /other/d; echo new > /app/cache/new; echo not > /data/not; echo own > /data/sub/own;"
        "rm /data/sub/b; echo not > /other/not; chmod 4755 /app/cache/new; echo here > here"
    )
    with with_only(environment, ["/app", "/data/sub"]) as fork:
        assert fork.exec("find /app /data /other -type f | sort").output.split() == [
            "/app/cache/new", "/app/here", "/data/a", "/data/sub/own", "/other/d"
        ]  # fmt: skip
        assert fork.exec("stat -c %a /app/cache/new").output == "755\n"
    with with_only(environment, ["/other"]) as fork:
        assert fork.exec("find /app /data /other -type f | sort").output.split() == [
            "/app/cache/c", "/data/a", "/data/sub/b", "/other/not"
        ]  # fmt: skip


@pytest.fixture
def with_files(make_task: MakeTask, make_environment: MakeEnvironment) -> Environment:
    """An environment whose image has :data:`WITH_FILES`."""
    return make_environment(make_task(WITH_FILES))


def test_exact_files_links_directories_and_deletions_come_along_and_nothing_beside_them(
    with_files: Environment,
) -> None:
    with_files.exec(
        "echo changed > a; rm b; rm -r dir/sub; ln -s /no/where new-link; rm link; ln -s b link; chmod 700 empty;"
        "mkdir -p new/empty; touch new/empty/x dir/not empty/not not; echo 1 > dir/new; echo changed > dir/x;"
        "mkdir -p all/not; echo 1 > /app/made; rm /app/here; mkfifo fifo",
        cwd="/srv",
    )
    in_usr = with_files.exec("rm -r /usr/share/doc && echo 1 > /usr/local/made && touch /usr/local/not").ok
    names = (
        "a",
        "b",
        "dir/sub",
        "dir/sub/y",
        "dir/new",
        "new-link",
        "link",
        "empty",
        "new/empty",
        "all",
        "fifo",
        "no/x",
    )
    exact = [*(f"/srv/{name}" for name in names), "/app/here", "/usr/local/made", "/usr/share/doc"]
    with with_only(with_files, ["/app"], exact) as fork:
        if in_usr:  # Else the user cannot write there in a sandbox.
            found = fork.exec("find /usr/local/made /usr/local/not /usr/share/doc -maxdepth 0 2>/dev/null").output
            assert found == "/usr/local/made\n"
        assert fork.exec("find . -mindepth 1 | sort", cwd="/srv").output.split() == (
            ["./a", "./all", "./dir", "./dir/new", "./dir/x", "./empty", "./link", "./new", "./new-link", "./new/empty"]
        )
        shown = fork.exec("cat a dir/x dir/new; readlink link new-link; stat -c %a empty; ls /app", cwd="/srv")
        assert shown.output == "changed\nimage\n1\nb\n/no/where\n700\nmade\n"
    with with_only(with_files, ["/srv/dir"], ["/app/here", "/srv/dir/x"]) as fork:
        assert fork.exec("ls /app; cd /srv; ls; cat dir/x").output.split() == [
            "a", "b", "dir", "empty", "link", "changed"
        ]  # fmt: skip


def test_directories_above_exact_paths_and_the_files_are_as_in_the_snapshot_without_rights(
    with_files: Environment,
) -> None:
    with_files.exec(
        "mkdir -p new/deep; chmod 2711 new; chmod 750 new/deep; chown 65534:65534 new/deep; echo text > new/deep/file;"
        "ln new/deep/file new/deep/again; ln new/deep/file new/deep/not; touch -d 2020-02-02T02:02:02Z new/deep/file;"
        "chmod 6755 new/deep/file; chmod 777 dir; echo 1 > dir/new",
        cwd="/srv",
    )
    owner = with_files.exec("stat -c %u:%g /srv/new/deep").output
    with with_only(with_files, exact=["/srv/new/deep/file", "/srv/new/deep/again", "/srv/dir/new"]) as fork:
        shown = fork.exec("stat -c %a new new/deep dir; stat -c '%a %Y' new/deep/file; ls new/deep", cwd="/srv")
        assert shown.output == "711\n750\n2775\n755 1580608922\nagain\nfile\n"
        assert fork.exec("stat -c %u:%g new/deep; cat new/deep/again", cwd="/srv").output == f"{owner}text\n"
        assert fork.exec("[ new/deep/again -ef new/deep/file ]", cwd="/srv").ok
    with with_only(with_files, exact=["/srv/new/deep/not"]) as fork:
        assert fork.exec("cat /srv/new/deep/not").output == "text\n"


def test_an_exact_path_takes_the_place_of_another_kind(with_files: Environment) -> None:
    with_files.exec("rm -r a dir link; mkdir a link; touch a/x link/x; echo file > dir; rm b; ln -s dir b", cwd="/srv")
    with with_only(with_files, exact=["/srv/a/x", "/srv/dir", "/srv/dir/x", "/srv/link/x", "/srv/b"]) as fork:
        assert fork.exec("find . | sort; cat b", cwd="/srv").output.split() == [
            ".", "./a", "./a/x", "./b", "./dir", "./empty", "./link", "./link/x", "file"
        ]  # fmt: skip


def test_links_above_exact_paths_lead_nowhere(with_files: Environment) -> None:
    with_files.exec(
        "mkdir /opt/x; touch /opt/x/passwd /opt/x/y /opt/y; rm -r dir; ln -s /opt dir; mkdir new; ln -s /opt/x new/x",
        cwd="/srv",
    )
    exact = ["/srv/dir", "/srv/dir/x", "/srv/dir/y", "/srv/new/x/passwd", "/srv/new/x/y", "/srv/new/z"]
    with with_only(with_files, exact=exact) as fork:
        assert fork.exec("find /srv /opt ! -name new | sort; readlink /srv/dir").output.split() == [
            "/opt", "/srv", "/srv/a", "/srv/b", "/srv/dir", "/srv/empty", "/srv/link", "/opt"
        ]  # fmt: skip
    with with_only(with_files, exact=["/srv/dir/x", "/srv/dir/sub/y"]) as fork:
        assert fork.exec("find /srv/dir | sort").output.split() == ["/srv/dir", "/srv/dir/sub"]


@pytest.mark.nightly  # By day single ones come along, above.
def test_thousands_of_exact_paths_come_along(with_files: Environment) -> None:
    made = with_files.exec(
        "mkdir /opt/new; cd /opt/new; mkdir $(printf 'd%d ' $(seq 1000)); for i in d*; do echo ${i#d} > $i/f; done;"
        "touch d1/not; cd /srv/dir; for i in $(seq 1000); do echo $i > f$i; done; touch not; rm x sub/y"
    )
    assert made.ok, made.output
    exact = [path for number in range(1, 1001) for path in (f"/opt/new/d{number}/f", f"/srv/dir/f{number}")]
    with with_only(with_files, exact=[*exact, "/srv/dir/x", "/srv/dir/sub/y"]) as fork:
        numbers = "".join(f"{number}\n" for number in range(1, 1001))
        for files in ("/opt/new/*/*", "/srv/dir/f*"):
            assert fork.exec(f"cat {files} | sort -n").output == numbers
        assert fork.exec("cd /srv/dir; ls -d not x sub/* 2>/dev/null; ls -d sub").output == "sub\n"


def test_names_of_users_are_those_of_the_image(environment: Environment) -> None:
    environment.exec("sed -i 's/^nobody:.*/nobody:x:0:0::\\/:\\/bin\\/sh/' /etc/passwd; touch mine")
    with with_only(environment) as fork:
        assert fork.exec("id -u", user="nobody").output == "65534\n"
        assert fork.exec("ls mine").ok


def test_a_broken_system_does_not_keep_the_paths_back(environment: Environment) -> None:
    # Without these no program starts; to remove all of /usr/lib would take most of a minute.
    libraries = "/usr/lib64 /usr/lib/ld-* /usr/lib/*/ld-* /usr/lib/*/libc.so*"
    environment.exec(f"echo kept > kept; rm -rf /etc /bin /lib /lib64 /usr/bin/bash /usr/bin/rm {libraries} 2>&1")
    assert not environment.exec(["/usr/bin/env", "true"]).ok
    with with_only(environment) as fork:
        assert fork.exec("cat kept").output == "kept\n"


def test_a_fork_with_only_some_paths_can_be_forked_and_entered_again(environment: Environment) -> None:
    environment.exec("echo one > one; echo planted > /srv/planted")
    with with_only(environment) as fork:
        fork.exec("echo two > two; rm from-image")
        with with_only(fork) as second:
            assert second.exec("ls; ls /srv").output == "one\ntree\ntwo\n"

"""What every environment promises about forks that have only some paths of a snapshot, and else the image as built."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Environment

if TYPE_CHECKING:
    from tests.environments.conftest import MakeEnvironment, MakeTask

pytestmark = pytest.mark.matrix

FRESH = ("/tests", "/logs/verifier")


@contextlib.contextmanager
def with_only(environment: Environment, paths: Sequence[str] = ("/app",)) -> Iterator[Environment]:
    """A started fork that has only these paths of the environment as it is now."""
    snapshot = environment.snapshot()
    fork = environment.fork(snapshot, network=None, fresh=FRESH, only=paths)
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
        assert fork.exec("ls -A /tests", cwd="/").output == ""
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

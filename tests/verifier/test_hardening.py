"""What a suite trusts in a fork without knowing is the image's own again, in Docker and in the sandbox."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.verifier import Changes, ImageCaches, classify, harden, image_facts, looked_at

DOCKERFILE = """\
FROM python:3.11-slim-bookworm
ENV PYTHONPATH=/srv/lib PATH=/app/bin:/srv/bin:$PATH
WORKDIR /app
RUN mkdir /image && ln -s /usr/bin/env /image/python
RUN mkdir -p /app/.venv/bin /app/.venv/lib /app/bin && echo home = /usr/bin > /app/.venv/pyvenv.cfg
RUN mkdir -p /root && echo "# of the image" > /root/.bashrc && touch /app/bin/product && chmod 755 /app/bin/product
"""
Hardened = Callable[[str], contextlib.AbstractContextManager[tuple[Environment, Changes]]]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """A task whose image has what is to be found."""
    files = {"task.toml": "", "instruction.md": "Do it.\n", "tests/test.sh": "true\n"}
    for name, text in {**files, "environment/Dockerfile": DOCKERFILE}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return load_task(tmp_path)


@pytest.fixture
def hardened(both: Engine, task: Task) -> Hardened:
    """A hardened fork of what a script of root's leaves, and what the script changed."""

    @contextlib.contextmanager
    def make(script: str) -> Iterator[tuple[Environment, Changes]]:
        environment = both.create(task, env={}, network="no-network")
        with contextlib.ExitStack() as life:
            life.callback(environment.stop)
            environment.start()
            made = environment.exec(script, user="0")
            assert made.ok, made.output
            snapshot = environment.snapshot()
            life.callback(snapshot.discard)
            image = image_facts(both, task)
            changes = classify(snapshot.changed_paths(["/app", "/logs"], looked_at(image)), image, "/app")
            fork = environment.fork(snapshot, network=None)
            life.callback(fork.stop)
            fork.start()
            harden(fork, changes, image, ImageCaches(both, task))
            yield fork, changes

    return make


@pytest.mark.matrix
def test_an_image_is_known_as_it_was_built(both: Engine, task: Task) -> None:
    image = image_facts(both, task)
    assert image.environments == ("/app/.venv",)
    assert image.path[:2] == ("/app/bin", "/srv/bin")
    assert "/srv/lib" in image.named
    assert {"bash", "env"} <= image.programs
    assert "product" not in image.programs, "the agent is to write it"
    assert "/image/python" in image.files
    assert not [file for file in image.files if file.startswith(("/app", "/usr", "/root", "/proc"))]
    assert image.accounts["/etc/passwd"].startswith("root:x:0:0:")
    assert image.start_up["/root/.bashrc"] == "# of the image\n"
    assert image_facts(both, task) == image


@pytest.mark.matrix
def test_an_untouched_system_has_no_changes(hardened: Hardened) -> None:
    with hardened("echo work > /app/work; echo more > /app/bin/product") as (_, changes):
        assert changes.steering("fork") == ()
        assert set(changes.paths) <= {"other", "home"}


def test_users_have_the_numbers_of_the_image(hardened: Hardened) -> None:
    script = r"""
    sed -i 's/^nobody:x:[0-9]*:[0-9]*:/nobody:x:0:0:/' /etc/passwd
    sed -i 's/^nogroup:x:[0-9]*:/nogroup:x:0:/; s/^users:.*//' /etc/group
    echo '65534:x:0:0::/:/bin/sh' >> /etc/passwd
    echo 'mine:x:4321:4321::/app:/bin/sh' >> /etc/passwd
    """
    with hardened(script) as (fork, changes):
        assert {"/etc/passwd", "/etc/group"} <= set(changes.steering("fork"))
        for user in ("nobody", "65534"):
            assert fork.exec("id -u; id -g", user=user).output == "65534\n65534\n"
        assert fork.exec("id -u", user="mine").output == "4321\n"
        assert fork.exec("grep -E '^(nogroup|users):' /etc/group").output.startswith("nogroup:x:65534:")
        assert fork.exec("grep -c ^users: /etc/group").output == "1\n"


@pytest.mark.parametrize(
    "script", ["rm /etc/passwd", "rm /etc/passwd; ln -s /app/passwd /etc/passwd; echo 'nobody:x:0:0::/:' > /app/passwd"]
)
@pytest.mark.matrix
def test_users_that_the_agent_took_away_are_there(hardened: Hardened, script: str) -> None:
    with hardened(script) as (fork, _):
        assert fork.exec("id -u", user="nobody").output == "65534\n"
        assert fork.exec("id -u", user="root").output == "0\n"


@pytest.mark.matrix
def test_start_up_files_are_those_of_the_image(hardened: Hardened) -> None:
    script = """
    mkdir -p /root/.config/fish /app/fish
    for file in .bashrc .profile .bash_profile .zshenv .config/fish/config.fish; do echo cheated > /root/$file; done
    user=/root/.local/lib/python3.11/site-packages; mkdir -p $user
    for file in usercustomize.py cheat.pth; do echo "import os; os._exit(3)" > $user/$file; done
    echo kept > $user/module.py; echo kept > /root/notes; mkdir -p /root/.ssh; chmod 700 /root/.ssh
    """
    with hardened(script) as (fork, changes):
        left = fork.exec("cd /root; find . -type f | sort", user="0").output.split()
        assert {"./notes", "./.bashrc", "./.local/lib/python3.11/site-packages/module.py"} <= set(left)
        assert not [name for name in left if name.endswith(("_profile", "zshenv", ".fish", ".pth", "customize.py"))]
        assert not fork.exec("grep -r cheated /root", user="0").ok
        assert fork.exec(["cat", "/root/.bashrc"], user="0").output == "# of the image\n"
        assert len(changes.paths["start-up"]) == 6
        assert fork.exec("[ -d /root/.ssh ]", user="0").ok


@pytest.mark.parametrize("place", ["/root", "/root/.config", "/root/.local"])
@pytest.mark.matrix
def test_links_to_start_up_files_in_the_workspace_go(hardened: Hardened, place: str) -> None:
    script = f"mkdir -p /app/home/fish; echo cheated > /app/home/.profile; rm -rf {place}; ln -s /app/home {place}"
    with hardened(script) as (fork, changes):
        assert place in changes.start_up
        assert not fork.exec(f"[ -L {place} ]", user="0").ok
        assert not fork.exec(f"grep cheated {place}/.profile", user="0").ok


@pytest.mark.nightly
@pytest.mark.parametrize("count", [100, 700])
def test_many_long_caches_do_not_keep_a_poisoned_one(hardened: Hardened, count: int) -> None:
    # A hundred of these paths are more than one argument of a program may have.
    long = "/".join(["long-" * 45] * 8)
    script = f"""
    for number in $(seq {count}); do mkdir -p /usr/local/lib/$number/{long}/__pycache__; done
    for number in $(seq {count}); do : > /usr/local/lib/$number/{long}/__pycache__/x.pyc; done
    mkdir -p /usr/local/lib/poisoned/__pycache__; : > /usr/local/lib/poisoned/module.py
    echo poison > /usr/local/lib/poisoned/__pycache__/module.cpython-311.pyc
    """
    with hardened(script) as (fork, changes):
        assert len(changes.caches) == count + 1
        assert changes.steering("fork") == ("/usr/local/lib/poisoned/module.py",)
        assert fork.exec("find /usr/local/lib -name '*.pyc' | wc -l").output == "0\n"


@pytest.mark.matrix
def test_a_cache_that_cannot_be_removed_is_an_error(both: Engine, hardened: Hardened, task: Task) -> None:
    script = "mkdir -p /usr/lib/x/__pycache__; : > /usr/lib/x/__pycache__/y.pyc"
    with hardened(script) as (fork, _):
        fork.stop()
        with pytest.raises(EnvironmentFault):
            harden(
                fork,
                Changes({"caches": ("/usr/lib/x/__pycache__/y.pyc",)}),
                image_facts(both, task),
                ImageCaches(both, task),
            )


@pytest.mark.matrix
def test_virtual_environments_and_stand_ins_in_the_workspace_count(hardened: Hardened) -> None:
    script = """
    echo x > /app/.venv/lib/x.py; mkdir -p /app/mine/lib; echo x > /app/mine/pyvenv.cfg; echo x > /app/mine/lib/x
    echo x > /app/bin/env; echo x > /app/bin/product; mkdir -p /srv/bin; echo x > /srv/bin/tool
    """
    with hardened(script) as (_, changes):
        assert changes.steering("fork") == ("/app/.venv/lib/x.py", "/app/bin/env", "/srv/bin/tool")

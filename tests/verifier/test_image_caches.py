"""Python's caches in a fork are the image's own again, in Docker and in the sandbox, and nothing compiles anew."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.verifier import ImageCaches, cache_store, classify, harden, image_caches, image_facts, looked_at

VENV = "/app/.venv"
SITE = f"{VENV}/lib/site-packages"
DOCKERFILE = f"""\
FROM python:3.11-slim-bookworm
WORKDIR /app
RUN mkdir -p {VENV}/bin {SITE}/built {SITE}/fresh && echo home = /usr/bin > {VENV}/pyvenv.cfg
RUN for each in a b c d; do echo "NAME = \\"built $each\\"" > {SITE}/built/$each.py; done
RUN for each in a b; do echo "NAME = \\"fresh $each\\"" > {SITE}/fresh/$each.py; done
RUN touch {SITE}/built/__init__.py {SITE}/fresh/__init__.py
RUN python3 -m compileall -q {SITE}/built && chmod 600 {SITE}/built/__pycache__/d.*.pyc
"""
# Prints what is in all caches below a directory: kind, mode, owner, and contents or the link's target.
LIST = """
import hashlib, json, os, stat, sys
found = {}
for here, names, files in os.walk(sys.argv[1]):
    for name in [".", *files, *[each for each in names if os.path.islink(os.path.join(here, each))]]:
        path = os.path.normpath(os.path.join(here, name))
        if "__pycache__" in path:
            about = os.lstat(path)
            what = open(path, "rb").read() if stat.S_ISREG(about.st_mode) else b""
            times = int(about.st_mtime) if what else 0
            found[path] = [about.st_mode, about.st_uid, about.st_gid, times, hashlib.sha256(what).hexdigest()]
json.dump(found, sys.stdout)
"""
# Writes a cache with other code than its source has, and all else that tells Python that it is right.
POISON = """
import importlib.util, marshal, os, sys
for source in sys.argv[1:]:
    about = os.stat(source)
    header = importlib.util.MAGIC_NUMBER + bytes(4)
    header += (int(about.st_mtime) & 0xFFFFFFFF).to_bytes(4, "little") + about.st_size.to_bytes(4, "little")
    cache = importlib.util.cache_from_source(source)
    os.makedirs(os.path.dirname(cache), exist_ok=True)
    with open(cache, "wb") as file:
        file.write(header + marshal.dumps(compile("NAME = 'poison'", source, "exec")))
"""
FRESH = "import sys; sys.path.insert(0, sys.argv[1]); import fresh.a, fresh.b; print(fresh.a.NAME, fresh.b.NAME)"
CONTENTS = 4

Listing = dict[str, list[Any]]


class Turn:
    """An agent's turn in a task, and forks of what it left."""

    def __init__(self, engine: Engine, task: Task, life: contextlib.ExitStack) -> None:
        self._engine = engine
        self.task = task
        self._life = life
        self.caches = ImageCaches(engine, task)
        self.environment = self.image()

    def image(self) -> Environment:
        """An environment of the image as built."""
        environment = self._engine.create(self.task, env={}, network="no-network")
        self._life.callback(environment.stop)
        environment.start()
        return environment

    def fork(self) -> Environment:
        """A hardened fork."""
        snapshot = self.environment.snapshot()
        self._life.callback(snapshot.discard)
        image = image_facts(self._engine, self.task)
        changes = classify(snapshot.changed_paths(["/app", "/logs"], looked_at(image)), image, "/app")
        fork = self.environment.fork(snapshot, network=None)
        self._life.callback(fork.stop)
        fork.start()
        harden(fork, changes, image, self.caches)
        return fork


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """A task whose image has a virtual environment in the workspace, of which one package is compiled."""
    files = {"task.toml": "", "instruction.md": "Do it.\n", "tests/test.sh": "true\n"}
    for name, text in {**files, "environment/Dockerfile": DOCKERFILE}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return load_task(tmp_path)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where images' caches are kept: a directory of the test's own, since others run beside it."""
    directory = tmp_path / "kept"
    directory.mkdir()
    monkeypatch.setattr(cache_store, "cache_directory", lambda: directory)
    return directory


@pytest.fixture
def turn(both: Engine, task: Task, kept: Path) -> Iterator[Turn]:
    """An agent's turn, with nothing known of the image's caches."""
    with contextlib.ExitStack() as life:
        yield Turn(both, task, life)


def run(environment: Environment, *command: str, user: str = "0") -> str:
    result = environment.exec(command, user=user, cwd="/")
    assert result.ok, result.output
    return result.output


def python(environment: Environment, program: str, *arguments: str, user: str = "0") -> str:
    return run(environment, "python3", "-c", program, *arguments, user=user)


def listing(environment: Environment) -> Listing:
    found: Listing = json.loads(python(environment, LIST, SITE))
    return found


@pytest.mark.matrix
def test_poisoned_deleted_added_and_given_away_caches_are_as_in_the_image(turn: Turn) -> None:
    image = listing(turn.image())
    python(turn.environment, POISON, f"{SITE}/built/a.py")
    script = f"""
    cd {SITE}/built/__pycache__; chown 1 c.*; chmod 777 . d.*; rm b.*; ln -s a.py evil.pyc; ln c.* linked.pyc
    mkdir -p sub/__pycache__; echo > sub/__pycache__/x.pyc; mkdir -p {SITE}/mine/__pycache__
    echo x > {SITE}/mine/__pycache__/mine.cpython-311.pyc; chmod 777 {SITE}/__pycache__ {SITE}/built
    """
    turn.environment.exec(script, user="0")
    assert listing(turn.environment) != image
    assert listing(turn.fork()) == image


@pytest.mark.parametrize("script", ["rm -rf CACHE", "rm -rf CACHE; ln -s /tmp CACHE", "rm -rf CACHE; echo > CACHE"])
@pytest.mark.matrix
def test_a_directory_of_caches_that_is_gone_is_there_again(turn: Turn, script: str) -> None:
    image = listing(turn.image())
    run(turn.environment, "bash", "-c", script.replace("CACHE", f"{SITE}/built/__pycache__"))
    assert listing(turn.fork()) == image


@pytest.mark.matrix
def test_what_the_turn_compiled_is_compiled_by_the_image_from_its_own_sources(turn: Turn) -> None:
    before = listing(turn.image())
    python(turn.environment, FRESH, SITE)
    compiled = listing(turn.environment)
    assert len(compiled) == len(before) + 4, "three modules and their directory"
    python(turn.environment, POISON, f"{SITE}/fresh/a.py")
    run(turn.environment, "bash", "-c", f"echo 'NAME = 1' > {SITE}/fresh/b.py")
    assert python(turn.environment, FRESH, SITE) == "poison 1\n"
    fork = turn.fork()
    found = listing(fork)
    gone = compiled.keys() - found.keys()
    assert [path.rpartition("/")[2].partition(".")[0] for path in gone] == ["b"], "its source was changed"
    assert {path: what[CONTENTS] for path, what in found.items()}.items() <= {
        path: what[CONTENTS] for path, what in compiled.items()
    }.items()
    assert python(fork, FRESH, SITE, user="65534") == "fresh a 1\n"


@pytest.mark.matrix
def test_a_source_with_other_contents_and_the_same_time_and_size_has_no_cache(turn: Turn) -> None:
    script = """
    for module in built/a fresh/a; do
      touch -r $module.py time; sed -i 's/NAME = ./NAME = Z/; s/a.$/q"/; s/Z/"/' $module.py; touch -r time $module.py
      touch ${module%a}__pycache__/a.*
    done
    """
    python(turn.environment, FRESH, SITE)
    turn.environment.exec(f"cd {SITE}; {script}", user="0")
    shown = "import sys; sys.path.insert(0, sys.argv[1]); import built.a, fresh.a; print(built.a.NAME, fresh.a.NAME)"
    assert python(turn.environment, shown, SITE) == "built a fresh a\n", "Python does not see the change"
    assert python(turn.fork(), shown, SITE) == "built q fresh q\n"


@pytest.mark.matrix
@pytest.mark.nightly
def test_files_that_were_given_away_keep_their_caches(turn: Turn) -> None:
    image = listing(turn.image())
    # Without root there is nobody to give them to.
    run(turn.environment, "bash", "-c", f"chown -R 1:1 {VENV} || chmod -R g+w {VENV}")
    assert listing(turn.fork()) == image


@pytest.mark.matrix
@pytest.mark.nightly
def test_processes_of_a_user_who_cannot_write_compile_nothing(turn: Turn) -> None:
    program = "import json, email.message, argparse, unittest"
    library = python(turn.environment, "import os; print(os.path.dirname(os.__file__), end='')")
    run(turn.environment, "find", library, "-maxdepth", "2", "-name", "__pycache__", "-exec", "rm", "-r", "{}", "+")
    python(turn.environment, program)
    verbose = turn.fork().exec(["python3", "-v", "-c", program], user="65534", cwd="/")
    assert verbose.ok
    compiled = re.findall(r"code object from '?(/[^'\n]*\.py)\b(?!c)", verbose.output)
    assert [path for path in compiled if "sitecustomize" not in path] == []
    assert " matches /" in verbose.output


@pytest.mark.matrix
def test_what_is_known_starts_no_environment_and_what_is_damaged_is_made_again(
    turn: Turn, both: Engine, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = listing(turn.image())
    run(turn.environment, "bash", "-c", f"rm {SITE}/built/__pycache__/*")
    turn.fork()
    started: list[Task] = []
    create = both.create

    def count(task: Task, **arguments: Any) -> Environment:
        started.append(task)
        return create(task, **arguments)

    monkeypatch.setattr(both, "create", count)
    assert listing(turn.fork()) == image
    assert started == []
    files = [path for path in kept.rglob("*") if path.is_file()]
    for path in files:
        path.write_bytes(path.read_bytes().replace(b"built a", b"poison!"))
    turn.caches = ImageCaches(both, turn.task)
    assert listing(turn.fork()) == image
    assert len(started) == 1
    for path in files:
        path.write_text("{")
    turn.caches = ImageCaches(both, turn.task)
    assert listing(turn.fork()) == image
    assert len(started) == 2


@pytest.mark.matrix
def test_of_an_image_without_python_caches_are_removed(turn: Turn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_caches, "_FIND_PYTHON", "exit 3")
    python(turn.environment, POISON, f"{SITE}/built/a.py")
    assert not [path for path in listing(turn.fork()) if "/built/" in path]

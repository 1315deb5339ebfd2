"""What every environment promises about forks that are kept: they outlive their session, and go when told to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_evocode.cli import main
from pytest_evocode.environments import Command, Engine
from pytest_evocode.environments.cleanup import Leftover, leftovers
from pytest_evocode.environments.sandbox.engine import enter_kept_sandbox
from pytest_evocode.errors import EnvironmentFault, UsageError
from pytest_evocode.tasks import Task
from tests.environments.conftest import ENGINES, MakeEnvironment, start_engine
from tests.terminals import HANGS, Person

pytestmark = [pytest.mark.turns(2), pytest.mark.slow, pytest.mark.matrix]

ROOT = Path(__file__).parents[2]
SESSION = """
import sys
from pathlib import Path
from pytest_evocode.environments import Command
from pytest_evocode.tasks import load_task
from tests.environments.conftest import start_engine

kind, task, name, network, only = sys.argv[1:]
engine = start_engine(kind)
environment = engine.create(load_task(Path(task)), env={"WHO": "task"}, network=network)
environment.start()
environment.exec("echo by the agent > /app/work; rm /app/from-image; touch /usr/bin/changed")
snapshot = environment.snapshot()
environment.exec("echo later > /app/work")
fork = environment.fork(snapshot, network=network, only=only.split() or None)
fork.start()
fork.make_directories(["/tests"])
fork.exec("echo by the suite > /tests/note; sleep 300 >/dev/null 2>&1 &")
shell = Command(("bash", "--norc"), user="nobody", env={"PS1": "ready> ", "MINE": "a secret"}, cwd="/app/tree")
line = fork.keep(name, shell, lambda text: text.replace("a secret", "[concealed]"))
snapshot.discard()
environment.stop()
engine.close()
print(line)
"""


@dataclass(frozen=True)
class Kept:
    """A fork that a session has kept which is over."""

    name: str
    line: str

    def shell(self, script: str) -> str:
        """Enter it as the line says, run a script there, and return what it printed."""
        with Person() as person:
            person.resize(24, 200)
            with person.start(["bash", "-c", self.line]) as process:
                person.sees("ready> ")
                person.type(f"stty -echo; echo be''gin; {script}; echo e''nd; exit 5\n")
                person.sees("begin\r\n")
                printed = person.sees("end\r\n").replace("\r\n", "\n")
                assert process.wait(HANGS) == 5
        return printed

    def leftover(self, *, kept: bool = True) -> list[str]:
        """What there is of it to be removed."""
        with leftovers(kept=kept) as found:
            return [each.what for each in self._mine(found)]

    def remove(self) -> None:
        """Remove it as ``evocode clean --kept`` does, and nothing that is somebody else's."""
        with leftovers(kept=True) as found:
            for each in self._mine(found):
                each.remove()

    def _mine(self, found: list[Leftover]) -> list[Leftover]:
        return [each for each in found if self.name in each.what]


Keep = Callable[..., Kept]


@pytest.fixture(params=ENGINES)
def kind(request: pytest.FixtureRequest, cache: Path) -> str:
    start_engine(request.param).close()  # Skips where there is none.
    return str(request.param)


@pytest.fixture
def keep(kind: str, plain_task: Task) -> Iterator[Keep]:
    """Has a session keep a fork."""
    made: list[Kept] = []

    def session(network: str = "no-network", only: str = "") -> Kept:
        name = f"kept-by-{os.getpid()}-{len(made)}"
        argv = [sys.executable, "-c", SESSION, kind, str(plain_task.directory), name, network, only]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=HANGS, check=False)
        assert done.returncode == 0, done.stderr
        made.append(Kept(name, done.stdout.strip()))
        return made[-1]

    yield session
    for each in made:
        each.remove()


def test_a_kept_fork_is_entered_as_the_suite_left_it(keep: Keep) -> None:
    script = "cat /app/work /tests/note; test -e /app/from-image || echo deleted; ls /usr/bin/changed"
    assert keep().shell(script) == "by the agent\nby the suite\ndeleted\n/usr/bin/changed\n"


def test_a_kept_fork_with_only_some_paths_has_them_and_else_the_image(keep: Keep) -> None:
    script = "cat /app/work /tests/note; test -e /app/from-image || test -e /usr/bin/changed || echo neither"
    assert keep(only="/app").shell(script) == "by the agent\nby the suite\nneither\n"


def test_it_has_the_commands_user_directory_and_variables_without_secrets(keep: Keep) -> None:
    kept = keep()
    assert "a secret" not in kept.line
    assert kept.shell("id -u; pwd; echo $WHO $MINE $GREETING") == (
        "65534\n/app/tree\ntask [concealed] hello from the image\n"
    )


@pytest.mark.nightly
def test_nothing_runs_there_any_more(keep: Keep) -> None:
    assert keep().shell("cat /proc/[0-9]*/comm | grep -c sleep") == "0\n"


@pytest.mark.nightly  # By day forks are entered once, above.
def test_what_is_changed_there_is_found_again(keep: Keep) -> None:
    kept = keep()
    kept.shell("echo mine > /tests/added")
    assert kept.shell("cat /tests/added") == "mine\n"


def test_other_sessions_leave_it_alone_and_it_goes_when_it_is_told_to(keep: Keep, kind: str) -> None:
    kept = keep()
    start_engine(kind).close()
    assert kept.leftover(kept=False) == []
    assert kept.shell("cat /tests/note") == "by the suite\n"
    assert len(kept.leftover()) == 1
    kept.remove()
    assert kept.leftover() == []


def test_it_goes_with_its_own_cache_or_when_those_of_all_are_to_go(
    keep: Keep, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep()

    def listed(*options: str) -> str:
        return CliRunner().invoke(main, ["clean", "--dry-run", *options]).output

    assert kept.name in listed("--kept")
    with monkeypatch.context() as patch:
        patch.setenv("EVOCODE_CACHE", str(tmp_path))
        assert kept.name not in listed("--kept")
        if kind == "docker":
            assert "stays, kept with another EVOCODE_CACHE or with none noted: " in listed("--kept")
            assert kept.name in listed("--kept", "--all-caches")
    assert "--all-caches goes with --kept" in listed("--all-caches")


def test_it_is_not_a_living_sessions_leftover(engine: Engine, make_environment: MakeEnvironment) -> None:
    name = f"living-{os.getpid()}"
    line = make_environment().keep(name, Command(("bash",)), str)
    assert name in line
    with leftovers(kept=True) as found:
        assert not [each for each in found if name in each.what]
    if engine.name == "docker":  # A sandbox of this session's cache goes with that.
        (word,) = (word for word in line.split() if name in word)
        subprocess.run(["docker", "rm", "--force", "--volumes", word], check=True, capture_output=True)


def test_for_the_session_it_has_stopped(engine: Engine, make_environment: MakeEnvironment) -> None:
    environment = make_environment()
    line = environment.keep("stopped", Command(("bash",)), str)
    environment.stop()
    with pytest.raises(EnvironmentFault):
        environment.exec(["true"])
    with pytest.raises(EnvironmentFault):
        environment.keep("again", Command(("bash",)), str)
    if engine.name == "docker":
        (word,) = (word for word in line.split() if "stopped" in word)
        subprocess.run(["docker", "rm", "--force", "--volumes", word], check=True, capture_output=True)


@pytest.mark.docker
@pytest.mark.parametrize("kind", ["docker"])
@pytest.mark.nightly
def test_a_kept_container_keeps_its_image_and_network_until_it_goes(keep: Keep) -> None:
    from pytest_evocode.environments.docker.engine import connect

    kept = keep("public")
    client = connect()
    start_engine("docker").close()
    (found,) = client.containers(filters={"name": f"evocode-kept-{kept.name}"})
    assert list(found["NetworkSettings"]["Networks"]) == ["bridge"]
    client.restart(found["Id"], timeout=0)  # As after the machine was.
    assert kept.shell("cat /app/work /tests/note") == "by the agent\nby the suite\n"
    assert kept.leftover() == [f"container {found['Names'][0].lstrip('/')}"]
    kept.remove()
    start_engine("docker").close()  # Now nobody needs the image any more.
    assert found["ImageID"] not in client.images(quiet=True)
    client.close()


# What only sandboxes have: a directory to be entered.


def directory_of(kept: Kept) -> Path:
    return Path(kept.line.split()[-1])


@pytest.mark.parametrize("kind", ["sandbox"])
def test_two_are_not_in_a_sandbox_at_once(keep: Keep) -> None:
    kept = keep()
    with Person() as person, person.start(["bash", "-c", kept.line]) as process:
        person.sees("ready> ")
        with pytest.raises(UsageError, match="is open in another terminal"):
            enter_kept_sandbox(directory_of(kept), 0)
        assert kept.leftover() == []
        person.type("exit\n")
        assert process.wait(HANGS) == 0
    assert kept.leftover() == [f"sandbox files {directory_of(kept)}"]


@pytest.mark.parametrize("kind", ["sandbox"])
def test_a_sandbox_whose_image_is_gone_stays_and_says_so(keep: Keep) -> None:
    kept = keep()
    record = directory_of(kept) / "sandbox.json"
    record.write_text(record.read_text().replace("sandbox-images", "no-images"))
    with pytest.raises(UsageError, match=r"its image is gone: .*/no-images/"):
        enter_kept_sandbox(directory_of(kept), 0)
    assert (directory_of(kept) / "top/root/tests/note").read_text() == "by the suite\n"


def test_a_directory_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a sandbox that --evocode-keep left"):
        enter_kept_sandbox(tmp_path, 0)


def test_evocode_enter_needs_a_terminal(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["enter", str(tmp_path)])
    assert result.exit_code == 2
    assert "standard input is no terminal" in result.output

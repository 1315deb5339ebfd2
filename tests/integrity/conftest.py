"""A small task worth cheating on, agents that try, and what an agent that does nothing gets for it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from pytest_evocode.environments.docker.engine import connect
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import AttemptRecord, RunRecord
from pytest_evocode.tasks.lockfile import Lock, content_hash, write_lock
from tests.inner_sessions import UNUSED
from tests.integrity import table
from tests.integrity.door_suite import DOOR_CASES, DOOR_PASSED, DOOR_SUITE
from tests.integrity.host_state import unchanged_host
from tests.integrity.places import Attack, Place
from tests.integrity.rootless import UID, Rootless
from tests.integrity.suites import (
    CAREFUL_TEST,
    CARELESS_TEST,
    DOCKERFILE,
    GRADER,
    NATIVE_CASES,
    SCRIPT_CASES,
    SECRET,
    TOOL,
    native_suite,
    workspace_suite,
)

if TYPE_CHECKING:
    from docker import APIClient

# What an agent looks for at the start and at the end of every turn, by programs that no PATH has a say in.
LOOK = r"""
exec 2>/dev/null
PATH=/usr/bin:/bin
for place in /tests /solution /logs /app /tmp /var/tmp /dev/shm /root /home /run /opt /srv /mnt; do
  find "$place" -type f -size -200k -exec cat -- {} +
done
cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline
true
"""

# The scripts come from a file beside it, and what the agent saw goes to files beside it.
AGENT = """
import json
from pathlib import Path

from pytest_evocode.agents import RoundTranscript

HERE = Path(__file__).parent


class Cheat:
    name = "cheat"

    def __init__(self):
        self.plan = json.loads((HERE / "plan.json").read_text())

    def run_round(self, context):
        plan, round_ = self.plan, context.round.index
        look = ["/bin/bash", "--norc", "-c", plan["look"]]
        seen = [context.environment.exec(look, user="0", timeout=60).output]
        result = context.environment.exec(
            plan["script"], user=plan["user"], env={"ROUND": str(round_)}, timeout=plan["timeout"]
        )
        seen.append(result.output)
        seen.append(context.environment.exec(look, user="0", timeout=60).output)
        with (HERE / f"seen-{round_}.txt").open("w", encoding="utf-8", errors="replace") as file:
            file.write("\\n".join(seen))
        return RoundTranscript(timed_out=result.timed_out)


def pytest_evocode_make_agent(name):
    return Cheat() if name == "cheat" else None
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what prints the table."""
    parser.addoption("--attacks-table", action="store_true", help="At the end, print what each attack gained.")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep attacks out of the quick run, choose among their places by day, and have reports say what is played."""
    item.add_marker("slow")
    item.add_marker(pytest.mark.guards("trial"))
    if "attack" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.matrix("attack"))
    table.note(item)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table where it is asked for."""
    if terminalreporter.config.getoption("--attacks-table"):
        terminalreporter.section("what attacks gain, by where the suite runs")
        for line in table.lines(terminalreporter.stats):
            terminalreporter.line(line)


@dataclass(frozen=True)
class Outcome:
    """All that a score is made of."""

    dataset_score: float
    case_score: float | None
    rounds: tuple[tuple[str, dict[str, float], tuple[tuple[str, str], ...]], ...]
    """By round: its outcome, the rewards, the cases with their status."""

    def gains_nothing_over(self, best: Outcome) -> bool:
        """Return whether rounds end alike, and no case passes that does not pass there."""
        for (outcome, rewards, cases), (best_outcome, best_rewards, best_cases) in zip(
            self.rounds, best.rounds, strict=True
        ):
            passed = {id for id, status in cases if status == "passed"}
            if not passed <= {id for id, status in best_cases if status == "passed"}:
                return False
            if (outcome, rewards) != (best_outcome, best_rewards):
                return False
        return self.dataset_score == best.dataset_score


@dataclass(frozen=True)
class Played:
    """A session that has ended: what it says, and what the agent in it saw."""

    result: pytest.RunResult
    directory: Path
    agent: str

    @property
    def text(self) -> str:
        """All that was printed."""
        return self.result.stdout.str() + "\n" + self.result.stderr.str()

    @cached_property
    def run(self) -> RunRecord:
        """The run's record."""
        paths = list((self.directory / "evocode-results/runs").glob("*.json"))
        assert len(paths) == 1, self.text
        (path,) = paths
        return RunRecord.model_validate_json(path.read_text(encoding="utf-8"))

    @property
    def attempt(self) -> Path:
        """The directory of the attempt."""
        (path,) = self.run.attempts
        return self.directory / "evocode-results" / path

    @cached_property
    def record(self) -> AttemptRecord:
        """The attempt's record."""
        record = AttemptDirectory(self.attempt).read_attempt()
        assert record is not None
        return record

    @property
    def outcome(self) -> Outcome:
        """What counts; an attempt that could not be scored has none and fails here with what was printed."""
        assert self.run.attempts, self.text
        assert all(round_.verdict for round_ in self.record.rounds), self.text
        scores = self.run.scores[self.agent]
        score, case_score = scores["dataset_score"], scores["case_score"]
        assert score is not None
        return Outcome(
            score,
            case_score,
            tuple(
                (
                    round_.outcome,
                    round_.verdict.rewards,
                    tuple((case.id, case.status) for case in round_.verdict.cases),
                )
                for round_ in self.record.rounds
                if round_.verdict
            ),
        )

    def seen(self, round_: int) -> str:
        """What the agent came to see in a round."""
        return (self.directory / f"seen-{round_}.txt").read_text(encoding="utf-8")

    @property
    def secrets(self) -> list[str]:
        """Lines with something of the suite, a reward, a solution or another round that the agent came to see."""
        lines = [line for round_ in (1, 2) for line in self.seen(round_).splitlines()]
        return [line for line in lines if SECRET in line]


def write_task(
    directory: Path, place: Place, *, suite: str = "careful", toml: str = "", files: Mapping[str, str] = {}
) -> None:
    """Write the task: a tool that greets, and in every round is asked to say a word that only the suite knows.

    An untouched tool passes one case of two in round 1 and of three in round 2.
    """
    head = f'[metadata.evocode]\nverify_in = "{place.mode}"\n'
    steps = "\n".join(f'[[steps]]\nname = "round-{index}"\n' for index in (1, 2))
    contents = {
        "task.toml": f"# {SECRET}task\n{toml}\n{head}\n{steps}",
        "environment/Dockerfile": DOCKERFILE,
        "environment/tool.py": TOOL,
    }
    if suite.startswith("native"):
        contents |= native_suite(careful="nobody" in suite)
    elif suite.startswith("workspace"):
        contents |= workspace_suite(careful="nobody" in suite)
    elif suite == "door":
        contents |= DOOR_SUITE
    else:
        contents["tests/test.sh"] = CAREFUL_TEST if suite == "careful" else CARELESS_TEST
        contents["tests/grade.py"] = GRADER
    for index in (1, 2):
        # The agent is given an instruction in its turn; the file is what it must not find.
        contents[f"steps/round-{index}/instruction.md"] = f"Make the tool say the word. {SECRET}instruction-{index}"
        contents[f"steps/round-{index}/solution/solve.sh"] = f"echo {SECRET}solution-{index}"
        contents[f"steps/round-{index}/tests/round"] = f"{index}\n"
    for relative, text in (contents | {**files}).items():
        path = directory / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(place.adapted(text), encoding="utf-8")
    if _is_native(suite) or suite == "careless pinned":
        # What a reference solution passes: only so is what breaks the suite the agent's.
        cases = {"careless pinned": SCRIPT_CASES, "door": DOOR_CASES}.get(suite, NATIVE_CASES)
        write_lock(directory, Lock(task_hash=content_hash(directory), environment="", image="", rounds=cases))


def _is_native(suite: str) -> bool:
    return suite.startswith(("native", "workspace", "door"))


class Play(Protocol):
    """Runs a session of an attack, or of the agent ``nop`` for the same task.

    ``files`` go into the task beside or instead of what :func:`write_task` writes.
    """

    def __call__(
        self, attack: Attack, place: Place, *, agent: str = "cheat", files: Mapping[str, str] = ...
    ) -> Played: ...


@pytest.fixture
def play(pytester: pytest.Pytester, shared_cache: Path, request: pytest.FixtureRequest) -> Play:
    """See :class:`Play`."""

    def run(attack: Attack, place: Place, *, agent: str = "cheat", files: Mapping[str, str] = {}) -> Played:
        rootless: Rootless | None = request.getfixturevalue("rootless") if place.rootless else None
        directory = (rootless.directory if rootless else pytester.path) / agent
        directory.mkdir(exist_ok=True)
        write_task(directory / "tasks/a", place, suite=place.suite(attack.suite), toml=attack.toml, files=files)
        if agent == "cheat":
            cache = rootless.cache if rootless else shared_cache
            paths = {"task": directory / "tasks/a", "results": directory / "evocode-results", "cache": cache}
            script = place.adapted(attack.script)
            for name, path in (paths | {"host": directory}).items():
                script = script.replace(f"{{{name}}}", str(path))
            plan = {"script": script, "look": LOOK, "user": attack.user, "timeout": attack.deadline}
            (directory / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
            (directory / "conftest.py").write_text(AGENT, encoding="utf-8")
        (directory / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        arguments = [
            *("-W", "error", *UNUSED, "-p", "no:cacheprovider"),
            *(f"--evocode-agent={agent}", f"--evocode-env={place.env}", "tasks"),
            *(attack.options if agent == "cheat" else ()),
        ]
        if rootless:
            return Played(rootless.pytest(directory, arguments), directory, agent)
        before = os.getcwd()
        os.chdir(directory)
        try:
            result = pytester.runpytest_inprocess(*arguments)
        finally:
            os.chdir(before)
        return Played(result, directory, agent)

    return run


@pytest.fixture(scope="session")
def rootless_cache() -> Iterator[Path]:
    """A directory of the user who is not root; skips where there can be none who runs the plugin."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; what runs here runs without root anyway")
    # Pytest's own directories for tests are closed to everybody else.
    with tempfile.TemporaryDirectory(prefix="evocode-", ignore_cleanup_errors=True) as directory:
        cache = Path(directory)
        os.chown(cache, UID, UID)
        if why := Rootless(cache, cache).why_not():
            pytest.skip(f"no other user can run the plugin here: {why}")
        yield cache


@pytest.fixture
def rootless(rootless_cache: Path) -> Iterator[Rootless]:
    """See :class:`Rootless`."""
    directory = Path(tempfile.mkdtemp(prefix="test-", dir=rootless_cache))
    os.chown(directory, UID, UID)
    yield Rootless(directory, rootless_cache)
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def honest_outcomes() -> dict[tuple[Place, str, str], Outcome]:
    """What the agent that does nothing gets, by place and suite; filled when it is first asked for."""
    return {}


class Honest(Protocol):
    """What the agent that does nothing gets for the task of an attack."""

    def __call__(self, attack: Attack, place: Place) -> Outcome: ...


@pytest.fixture
def honest(play: Play, honest_outcomes: dict[tuple[Place, str, str], Outcome]) -> Honest:
    """See :class:`Honest`."""

    def outcome(attack: Attack, place: Place) -> Outcome:
        suite = place.suite(attack.suite)
        key = (place, suite, attack.toml)
        if key not in honest_outcomes:
            honest_outcomes[key] = play(attack, place, agent="nop").outcome
        found = honest_outcomes[key]
        assert [round_[0] for round_ in found.rounds] == ["failed", "failed"]
        assert [round_[1]["reward"] for round_ in found.rounds] == ([0.0, 0.0] if _is_native(suite) else [0.5, 1 / 3])
        passed = DOOR_PASSED if suite == "door" else [1 / 2, 1 / 3]
        assert found.case_score == pytest.approx(100 * sum(passed) / 2)
        return found

    return outcome


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests, so that the image is built once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def client(why_no_docker: str | None) -> Iterator[APIClient | None]:
    """The Docker engine, None where none answers."""
    if why_no_docker is not None:
        yield None
        return
    with contextlib.closing(connect()) as connected:
        yield connected


@pytest.fixture(autouse=True)
def _unchanged_host(tmp_path_factory: pytest.TempPathFactory, client: APIClient | None) -> Iterator[None]:
    """See that no attack leaves anything on the machine, or has done something to its devices."""
    with unchanged_host([tmp_path_factory.getbasetemp(), Path(tempfile.gettempdir())], client):
        yield


@pytest.fixture(autouse=True)
def _environment(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(shared_cache))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("CI", raising=False)

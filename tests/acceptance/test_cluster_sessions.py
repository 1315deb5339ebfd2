"""``--evocode-cluster=ray``: attempts on the nodes of a real cluster of Ray's."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.storage import ObjectStore
from tests.acceptance.models import at, solver
from tests.acceptance.sessions import RunTasks, Session
from tests.acceptance.tasks import WriteTask
from tests.model_scripts import Tokens
from tests.model_server import ModelServer
from tests.ray_nodes import RayNodes, ray_nodes
from tests.waiting import wait_until

#: An agent that says in a file of its own which turns it took, and waits for a sign in the second.
AGENT = """
import os, time
from pathlib import Path
from pytest_evocode.agents import RoundTranscript

class Counting:
    name = "counting"

    def __init__(self, turns, sign=""):
        self._turns, self._sign = turns, sign

    def run_round(self, context):
        with open(self._turns, "a") as file:
            file.write(f"{os.getpid()} {context.round.index}\\n")
        context.environment.exec(f"echo line-{context.round.index} >> log.txt; sleep 0.01")
        while self._sign and context.round.index == 2 and not os.path.exists(self._sign):
            context.environment.exec("sleep 0.2")
        return RoundTranscript()
"""


EXAMPLES = Path(__file__).parents[2] / "example_tasks"
_MARK = "EVOCODE_TEST_OF_CLUSTER"
"""A variable by which a test knows the processes that are its own: other tests start some at the same time."""


@pytest.fixture(autouse=True)
def _mark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(_MARK, str(tmp_path))


@pytest.fixture
def cluster(_mark: None) -> Iterator[RayNodes]:
    """Three nodes with four CPUs in all, each with a cache of its own."""
    with ray_nodes() as nodes:
        yield nodes


@pytest.fixture
def cluster_for_clients(_mark: None) -> Iterator[RayNodes]:
    """As ``cluster``, and it can be reached through Ray Client."""
    pytest.importorskip("grpc", reason="Ray Client needs it")
    with ray_nodes(client=True) as nodes:
        yield nodes


@pytest.fixture
def counting(pytester: pytest.Pytester) -> list[str]:
    """The options for the agent, and its module where sessions and nodes find it."""
    pytester.makepyfile(counting_agent=AGENT)
    pytester.makeini(f"[pytest]\npythonpath = {pytester.path}\n")
    turns = pytester.path / "turns.txt"
    return ["--evocode-agent=counting_agent:Counting", f"--evocode-agent-option=turns={turns}"]


def turns(directory: Path) -> list[tuple[int, int]]:
    """Processes and rounds of the turns that were taken."""
    with contextlib.suppress(FileNotFoundError):
        lines = (directory / "turns.txt").read_text().splitlines()
        return [(int(process), int(index)) for process, index in (line.split() for line in lines)]
    return []


def stored(storage: str) -> set[str]:
    """The attempts of which a storage has a round's state."""
    # What is opened is kept by URL and options, and each test has another server.
    store = ObjectStore(storage, {"endpoint_url": os.environ["AWS_ENDPOINT_URL"]} if "://" in storage else {})
    manifests = {name: store.read(name) for name in store.tree("") if "/manifests/" in name and name.endswith(".json")}
    return {
        name.partition("/manifests/")[0]
        for name, written in manifests.items()
        if written and json.loads(written)["last_turn"] >= 1
    }


def processes() -> list[str]:
    """The processes that run attempts of this test now."""
    found = []
    mark = f"{_MARK}={os.environ[_MARK]}".encode()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            runs_attempt = b"pytest_evocode.plugin.cluster.attempt_process" in (path / "cmdline").read_bytes()
            if runs_attempt and mark in (path / "environ").read_bytes().split(b"\0"):
                found.append(path.name)
    return found


def outcomes(session: Session) -> dict[str, str]:
    """How each round of a session ended, by its node id."""
    tests = json.loads((session.directory / ".report.json").read_text())["tests"]
    return {test["nodeid"]: test["outcome"] for test in tests}


def in_junit(path: Path) -> dict[str, dict[str, object]]:
    """What a JUnit file has of each test, without times and the places of files."""
    found: dict[str, dict[str, object]] = {}
    for case in ElementTree.parse(path).iter("testcase"):
        properties = {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")}
        shown = {name: value for name, value in properties.items() if not name.endswith("_seconds")}
        ended = [(each.tag, each.get("message")) for each in case if each.tag not in ("properties", "system-out")]
        found[f"{case.attrib['classname']} {case.attrib['name']}"] = {"properties": shown, "ended": ended}
    return found


@pytest.mark.slow("starts a cluster of Ray's")
@pytest.mark.nightly
def test_a_cluster_that_is_started_for_the_session_ends_like_one_machine(
    write_task: WriteTask, run_tasks: RunTasks, pytester: pytest.Pytester
) -> None:
    write_task("a", rounds=2, solve={2: "true"})  # Each attempt starts a process, and takes seconds on a busy machine.
    pytester.makepyfile("def test_something_else(): pass")
    what = ["--json-report", "--evocode-attempts=2", "tasks", "."]
    here = run_tasks(*what, "--evocode-results=one", "--junitxml=one.xml")
    expected = outcomes(here)
    there = run_tasks(*what, "--evocode-cluster=ray", "--junitxml=two.xml", subprocess=True)
    assert there.exit_status == here.exit_status == 1
    assert outcomes(there) == expected
    assert in_junit(pytester.path / "two.xml") == in_junit(pytester.path / "one.xml")
    there.has("evocode: cluster ray: sandbox*", "evocode: results evocode-results, run *")
    for number in (1, 2):
        record = there.record(number=number)
        assert [each.index for each in record.rounds] == [1, 2]
        assert all((there.attempt(number=number) / f"steps/{each.round}/verifier").is_dir() for each in record.rounds)
    scores = [line for line in there.text.splitlines() if line.startswith("oracle ")]
    assert (
        scores[0].split()[:3] == next(line for line in here.text.splitlines() if line.startswith("oracle ")).split()[:3]
    )
    there.has("*has-line-2*")  # The failing case, from the record that was sent.
    assert there.run.exit_status == 1
    assert not processes()


@pytest.mark.nightly
def test_a_session_ends_with_its_failures_and_the_next_makes_these_again(
    cluster: RayNodes, write_task: WriteTask, run_tasks: RunTasks, pytester: pytest.Pytester
) -> None:
    write_task("a", rounds=2, solve={2: "true"})
    write_task("b", rounds=1, solve={1: "sleep 300"})
    what = ["--json-report", f"--evocode-cluster=ray:{cluster.address}", "--evocode-attempts=3", "tasks"]
    session = run_tasks(*what, "--maxfail=2", "--junitxml=junit.xml", subprocess=True)
    assert session.exit_status == pytest.ExitCode.TESTS_FAILED
    session.has("*stopping after 2 failures*")
    assert not processes()
    failed = {name for name, outcome in outcomes(session).items() if outcome == "failed"}
    assert len(failed) == 2
    assert all(re.fullmatch(r"tasks/a/task.toml::oracle(.[23])?::round-2", name) for name in failed)
    assert sum(bool(each["ended"]) for each in in_junit(pytester.path / "junit.xml").values()) == 2
    session = run_tasks(*what, "--lf", "-x", subprocess=True)
    assert session.exit_status == pytest.ExitCode.TESTS_FAILED
    session.has("*stopping after 1 failures*")
    (again,) = (name for name, outcome in outcomes(session).items() if outcome == "failed")
    assert again in failed
    made = {name.rpartition("::")[0] for name in outcomes(session)}
    assert made <= {name.rpartition("::")[0] for name in failed}
    assert not processes()


#: A request costs one dollar.
DEAR = {"models": {"gpt-5": {"input": 1000.0, "output": 0.0}}}


@pytest.mark.nightly
@pytest.mark.usefixtures("model_sdks")
def test_a_budget_holds_over_all_nodes_and_what_waits_goes_on_from_a_bucket_through_ray_client(
    cluster_for_clients: RayNodes,
    bucket: str,
    write_task: WriteTask,
    run_tasks: RunTasks,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The nodes were started before there were variables with the keys, and have them from the driver alone."""
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-tests")
    write_task("a", rounds=3)
    (pytester.path / "dear.json").write_text(json.dumps(DEAR))
    with ModelServer(solver(3), tokens=Tokens(prompt=1000, completion=50), key="a-key-of-the-tests") as server:
        what = [
            *(*at(server, "openai/gpt-5"), f"--evocode-agent-option=prices={pytester.path}/dear.json"),
            *("--evocode-attempts=4", "-o", f"evocode_storage={bucket}", "--json-report", "tasks"),
        ]
        there = f"--evocode-cluster=ray:{cluster_for_clients.address}"
        capped = run_tasks(*what, there, "--evocode-budget=total-cost=10", agent=None, subprocess=True)
        asked = len(server.asked)
        # Four attempts run; three of them may have asked at the moment when the other reached the limit.
        assert 10 <= asked <= 13, capped.text
        assert capped.exit_status == pytest.ExitCode.TESTS_FAILED
        assert capped.run.waiting.startswith("budget: total-cost $")
        assert "skipped" in capped.outcomes
        assert "errors" not in capped.outcomes
        there = f"--evocode-cluster=ray:{cluster_for_clients.client_address}"
        raised = "--evocode-budget=total-cost=100"
        session = run_tasks(*what, there, raised, "--evocode-resume", agent=None, subprocess=True)
        assert len(server.asked) == 24  # Nothing is paid for twice.
    assert session.exit_status == 0, session.text
    assert set(outcomes(session).values()) == {"passed"}
    assert session.run.run == capped.run.run
    assert [len(session.record(agent="gpt-5", number=number).rounds) for number in (1, 2, 3, 4)] == [3, 3, 3, 3]
    kept = [path.read_bytes() for path in session.results.rglob("*") if path.is_file()]
    assert not any(b"a-key-of-the-tests" in each or b"open-sesame-0002" in each for each in kept)
    assert not processes()


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["directory", "bucket", "no storage"])
def test_the_attempts_of_a_lost_node_go_on_elsewhere(
    kind: str,
    cluster: RayNodes,
    write_task: WriteTask,
    counting: list[str],
    pytester: pytest.Pytester,
    request: pytest.FixtureRequest,
) -> None:
    # Nodes that were started before there was a bucket have its address and keys from the driver alone.
    bucket = request.getfixturevalue("bucket") if kind == "bucket" else ""
    storage = str(pytester.path / "stored") if kind == "directory" else bucket
    write_task("a", rounds=3)
    sign = pytester.path / "sign"
    command = [
        *(sys.executable, "-m", "pytest", "--json-report", f"--evocode-cluster=ray:{cluster.address}"),
        *("--evocode-attempts=4", "--evocode-env=sandbox", *counting, f"--evocode-agent-option=sign={sign}", "tasks"),
        *(["-o", f"evocode_storage={storage}"] if storage else []),
    ]
    with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.PIPE, text=True) as process:
        wait_until(lambda: Counter(index for _, index in turns(pytester.path))[2] == 4, "all in their second turn")
        directory = pytester.path / "evocode-results"
        wait_until(
            lambda: len(list(directory.glob("a/*/*/*/*/steps/round-1/round.json"))) == 4, "all first rounds known"
        )
        if storage:
            wait_until(lambda: len(stored(storage)) == 4, "all first rounds stored")
        cluster.kill(1)
        wait_until(lambda: len(processes()) <= 2, "its attempts stop by themselves")
        sign.touch()
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert output.count("was lost on") == 2, output
    by_round = Counter(index for _, index in turns(pytester.path))
    # With a storage the two repeat the round in flight, and nothing else.
    assert by_round == {1: 4 if storage else 6, 2: 6, 3: 4}
    assert output.count("is not on this node, so it begins anew") == (0 if storage else 2), output
    for path in directory.glob("a/harbor_jobs/*/*/a__a*"):
        record = AttemptDirectory(path).read_attempt()
        assert record is not None
        assert [each.outcome for each in record.rounds] == ["passed"] * 3
    session = Session(pytest.RunResult(0, output.splitlines(), [], 0.0), pytester.path)
    assert Counter(outcomes(session).values()) == {"passed": 12}


@pytest.mark.nightly
def test_a_node_that_joins_makes_the_attempts_that_wait(
    write_task: WriteTask, counting: list[str], pytester: pytest.Pytester
) -> None:
    write_task("a", rounds=2)
    sign = pytester.path / "sign"
    options = ("--evocode-attempts=2", "--evocode-env=sandbox", *counting, f"--evocode-agent-option=sign={sign}")
    with ray_nodes([1]) as nodes:
        command = [sys.executable, "-m", "pytest", f"--evocode-cluster=ray:{nodes.address}", *options, "tasks"]
        with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.PIPE, text=True) as process:
            wait_until(lambda: Counter(index for _, index in turns(pytester.path))[2] == 1, "one in its second turn")
            assert len(processes()) == 1
            nodes.add(1)
            wait_until(lambda: Counter(index for _, index in turns(pytester.path))[2] == 2, "both in it")
            sign.touch()
            output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "was lost" not in output
    assert Counter(index for _, index in turns(pytester.path)) == {1: 2, 2: 2}


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_on_any_node_when_the_driver_ends(
    number: signal.Signals, cluster: RayNodes, write_task: WriteTask, counting: list[str], pytester: pytest.Pytester
) -> None:
    write_task("a", rounds=3)
    command = [
        *(sys.executable, "-m", "pytest", f"--evocode-cluster=ray:{cluster.address}", "--evocode-attempts=2"),
        *("--evocode-env=sandbox", *counting, "--evocode-agent-option=sign=/never", "tasks"),
    ]
    with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: Counter(index for _, index in turns(pytester.path))[2] == 2, "both in their second turn")
        process.send_signal(number)
        process.wait(60)
    assert process.returncode == {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 2}[number]
    wait_until(lambda: not processes(), "attempts stop")
    if number != signal.SIGKILL:  # What was recorded came here before the session ended.
        assert len(list((pytester.path / "evocode-results").glob("a/*/*/*/*/state.json"))) == 2


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_attempt_whose_process_is_ended_goes_on(
    number: signal.Signals, write_task: WriteTask, counting: list[str], pytester: pytest.Pytester
) -> None:
    write_task("a", rounds=3)
    sign = pytester.path / "sign"
    command = [
        *(sys.executable, "-m", "pytest", "--evocode-cluster=ray", "--evocode-env=sandbox", *counting),
        *(f"--evocode-agent-option=sign={sign}", "tasks"),
    ]
    with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.PIPE, text=True) as process:
        wait_until(lambda: [index for _, index in turns(pytester.path)] == [1, 2], "it is in its second turn")
        assert len(processes()) == 1
        os.kill(turns(pytester.path)[-1][0], number)
        wait_until(lambda: [index for _, index in turns(pytester.path)] == [1, 2, 2], "it goes on with that turn")
        sign.touch()
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert output.count("was lost on") == 1, output
    assert [index for _, index in turns(pytester.path)] == [1, 2, 2, 3]
    assert not processes()


#: An agent that does nothing for a moment, so that no round of its attempts passes.
SLEEPING = """
from pytest_evocode.agents import RoundTranscript

class Sleeping:
    name = "sleeping"

    def run_round(self, context):
        context.environment.exec("sleep 1")
        return RoundTranscript()
"""


@pytest.mark.nightly
def test_forty_two_attempts_at_the_examples_lose_a_node_and_score_as_on_one_machine(
    cluster: RayNodes, run_tasks: RunTasks, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(sleeping_agent=SLEEPING)
    pytester.makeini(f"[pytest]\npythonpath = {pytester.path}\n")
    what = ["--json-report", "--evocode-agent=sleeping_agent:Sleeping", "--evocode-env=sandbox"]
    what += [str(EXAMPLES / name) for name in ("process", "ledger", "stockroom")]
    here = run_tasks(*what, "--evocode-results=one", subprocess=True)
    expected = Counter(outcomes(here).values())
    assert set(expected) == {"passed", "failed"}
    command = [
        *(sys.executable, "-m", "pytest", f"--evocode-cluster=ray:{cluster.address}", "--evocode-attempts=3"),
        *("--evocode-agent=oracle", "--evocode-replay", *what),
    ]
    directory = pytester.path / "evocode-results"
    with subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.PIPE, text=True) as process:
        wait_until(lambda: len(list(directory.glob("*/*/*/*/*/result.json"))) >= 5, "some attempts are done")
        cluster.kill(1)
        output, _ = process.communicate(timeout=1200)
    assert process.returncode == here.exit_status, output
    session = Session(pytest.RunResult(0, output.splitlines(), [], 0.0), pytester.path)
    assert Counter(outcomes(session).values()) == Counter({what: 3 * number for what, number in expected.items()})
    assert output.count("it begins once more") >= 1, output
    for agent in ("oracle", "sleeping_agent-Sleeping"):
        assert scores_of(agent, output.splitlines()) == scores_of(agent, here.text.splitlines())
    assert len(list(directory.glob("*/*/*/*/*/result.json"))) == 42  # Each attempt is recorded once.


def scores_of(agent: str, lines: list[str]) -> list[str]:
    """An agent's Dataset Score, Case Score and Avg Rounds in a summary."""
    return next(line for line in lines if line.startswith(f"{agent} ")).split()[1:4]


@pytest.mark.nightly
def test_a_node_with_another_version_ends_the_session_with_both_named(
    write_task: WriteTask, run_tasks: RunTasks, tmp_path: Path
) -> None:
    write_task("a", rounds=1)
    described = tmp_path / "other" / "pytest_evocode-99.9.dist-info" / "METADATA"
    described.parent.mkdir(parents=True)
    described.write_text("Metadata-Version: 2.1\nName: pytest-evocode\nVersion: 99.9\n")
    with ray_nodes((1, 1), last_path=str(tmp_path / "other")) as nodes:
        session = run_tasks(f"--evocode-cluster=ray:{nodes.address}", "tasks", subprocess=True)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    ours = version("pytest-evocode")
    session.result.stderr.fnmatch_lines(
        [f"*it has pytest-evocode 99.9, and this session has {ours}; install the same*"]
    )


def test_what_does_not_go_with_a_cluster_is_refused(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_task()
    refused = {
        ("--evocode-cluster=ray", "-n2"): "*leave out -n, or use -n0*",
        ("--evocode-cluster=ray", "--evocode-pin"): "*--evocode-pin would have no effect*",
        ("--evocode-cluster=ray", "--evocode-shell"): "*--evocode-shell*",
        ("--evocode-cluster=ray", "--pdb"): "*--pdb cannot enter*",
        ("--evocode-cluster=dask",): "*--evocode-cluster=dask: write ray for a cluster*",
        ("--evocode-cluster=ray:",): "*--evocode-cluster=ray:: write ray for a cluster*",
        ("--evocode-cluster=Ray",): "*--evocode-cluster=Ray: write ray for a cluster*",
    }
    for options, message in refused.items():
        agent = None if "--evocode-pin" in options else "oracle"
        session = run_tasks(*options, "tasks", agent=agent)
        assert session.exit_status == pytest.ExitCode.USAGE_ERROR
        session.result.stderr.fnmatch_lines([message])
    monkeypatch.setitem(sys.modules, "ray", None)
    session = run_tasks("--evocode-cluster=ray", "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    session.result.stderr.fnmatch_lines(
        ["*--evocode-cluster=ray needs the package ray: pip install 'pytest-evocode?ray?'*"]
    )

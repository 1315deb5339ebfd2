"""Secrets of the host: not in the container, and not in anything that a session prints or writes."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.trajectories.atif import Trajectory
from tests.report.html.reports import unpacked

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(2), pytest.mark.slow]

KEY = "sk-evo-'7d0\"c41e\\9b2f<a83>57e6&aa11/bb22+cc33=dd44"
NAME = "EVO_SERVICE_API_KEY"

# The agent has the key from the host, as one that asks a model has; it says it wherever it can.
CHATTY = f"""
import logging
import os
import sys

from pytest_evocode.agents import RoundTranscript
from pytest_evocode.trajectories.atif import AgentInfo, Observation, ObservationResult, Step, ToolCall, Trajectory

KEY = os.environ["{NAME}"]

class Chatty:
    name = "chatty"

    def run_round(self, context):
        print("printed", KEY)
        print("printed", KEY, file=sys.stderr)
        logging.getLogger("chatty").warning("logged %s", KEY)
        put = context.environment.exec(["sh", "-c", 'printf %s "$1" > key.txt', "put", KEY])
        assert put.ok
        if context.round.index == 3:
            raise RuntimeError("refused: Authorization: Bearer " + KEY)
        calls = (ToolCall(tool_call_id="1", function_name="bash", arguments={{KEY: {{"deep": [KEY]}}}}),)
        seen = Observation(results=(ObservationResult(source_call_id="1", content=[{{"text": KEY}}]),))
        step = Step(
            step_id=1, source="agent", message=KEY, reasoning_content="think " + KEY, tool_calls=calls,
            observation=seen, extra={{"headers": {{"Authorization": KEY}}}},
        )
        agent = AgentInfo(name="chatty", version="1", model_name=KEY)
        return RoundTranscript(trajectory=Trajectory(session_id=KEY, agent=agent, steps=(step,)), output=KEY)

def pytest_evocode_make_agent(name):
    return Chatty() if name == "chatty" else None
"""

TELLS = r"""
key=$(cat key.txt)
echo "output: $key"; echo "error: $key" >&2; base64 -w0 key.txt; echo
mkdir -p /logs/artifacts/sub
echo "text $key" > /logs/artifacts/notes.txt
head -c 3000000 /dev/zero > /logs/artifacts/sub/noise.bin
cat key.txt >> /logs/artifacts/sub/noise.bin
touch "/logs/artifacts/$(tr / _ < key.txt)"
python3 - "$key" <<'END'
import json, sys
key = sys.argv[1]
for name in ("origin_step", "requirement_ref", "case_type", "intent", "scenario", "input", "expected"):
    print(f"CASE_RESULT case_id=c-{name} status=fail {name}=" + json.dumps(key), "failure_reason=" + json.dumps(key))
print("CASE_RESULT case_id=" + json.dumps(key), "status=fail actual=" + json.dumps("x" * 270 + key))
END
"""


def leaks(session: Session) -> list[str]:
    """Where the key, as it is or escaped or in part, is in what a session printed and wrote."""
    parts = [KEY[:20].encode(), KEY[-20:].encode(), base64.b64encode(KEY.encode())[4:-4], b"9b2f<a83>57e6"]
    parts += [b"9b2f&lt;a83", b"7d0&quot;c41e", b'7d0\\"c41e']
    written = {str(path): path.read_bytes() for path in session.directory.rglob("*") if path.is_file()}
    # What is in the chunks of a report is compressed.
    written |= {path: str(unpacked(script)).encode() for path, script in written.items() if "/report/data/" in path}
    places = {"printed": session.text.encode(), "names": "\n".join(written).encode(), **written}
    return [f"{place}: {part!r}" for place, held in places.items() for part in parts if part in held]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, KEY)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(["--evocode-report=report"], id="summary and report"),
        pytest.param(["-o", "evocode_cases=subtests"], id="subtests"),
        pytest.param(["-n1"], id="xdist"),
    ],
)
@pytest.mark.matrix
def test_a_secret_is_in_nothing_that_is_printed_or_written(
    how: list[str], pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(CHATTY)
    write_task(
        "a",
        4,
        test={
            1: f"{TELLS}\necho 0 > /logs/verifier/reward.txt",
            # Shortened in the message, in the middle of the key.
            2: 'printf "%s%s" 012345678901234 "$(cat key.txt)" > /logs/verifier/reward.txt; tail key.txt',
        },
    )
    session = run_tasks("--json-report", "--junitxml=junit.xml", "-ra", "-vv", *how, "tasks", agent="chatty")
    assert leaks(session) == []
    assert session.exit_status == 1
    session.has(f"*[[]{NAME}[]]*")
    session.has(f"*reward.txt holds '012345678901234[[]{NAME}[]]...'*")
    session.has(f"*refused: Authorization: Bearer [[]{NAME}[]]*")
    for name in (".report.json", "junit.xml"):
        assert f"[{NAME}]" in (session.directory / name).read_text()
    attempt = session.attempt(agent="chatty")
    assert f"[{NAME}]" in (attempt / "result.json").read_text()
    step = attempt / "steps/round-1"
    assert (step / "artifacts/notes.txt").read_text() == f"text [{NAME}]\n"
    assert len((step / "artifacts/sub/noise.bin").read_bytes()) == 3_000_000 + len(f"[{NAME}]")
    assert len(list((step / "artifacts").iterdir())) == 3
    trajectory = Trajectory.model_validate_json((step / "agent/trajectory.json").read_text())
    assert trajectory.steps[0].tool_calls is not None
    assert trajectory.steps[0].tool_calls[0].arguments == {f"[{NAME}]": {"deep": [f"[{NAME}]"]}}


def test_a_secret_on_the_command_line_is_not_recorded(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("tasks", f"--deselect={KEY}")
    assert session.outcomes == {"passed": 1}
    assert f"--deselect=[{NAME}]" in session.run.arguments
    assert leaks(session) == []


def test_an_exception_of_a_fixture_is_scrubbed_too(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(
        f"""
        import os, pytest

        @pytest.fixture(scope="session", autouse=True)
        def service(evocode_container):
            password = os.environ["{NAME}"]
            raise ConnectionError(f"login with {{password}} refused")
        """
    )
    write_task("a", 1)
    session = run_tasks("tasks", "--json-report", "--junitxml=junit.xml", "-l")
    session.has(f"*ConnectionError: login with [[]{NAME}[]] refused*")
    assert leaks(session) == []


# What a container sees. LURK catches what a process has between its fork and its exec.

LOOK = "env; cat /proc/*/environ | tr '\\0' '\\n'"
LURK = "setsid bash -c 'while :; do cat /proc/[0-9]*/environ; done > /tmp/seen 2>/dev/null' & sleep 0.2"
PASSES = "echo 1 > /logs/verifier/reward.txt"


def test_nothing_of_the_hosts_environment_is_in_the_container(
    monkeypatch: pytest.MonkeyPatch, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    monkeypatch.setenv("EVO_INNOCENT", "0nly-0n-the-h0st")
    check = f"! {{ cat /tmp/seen seen.txt; {LOOK}; }} | grep -a -q -e 0nly-0n -e EVO_ -e 7d0"
    write_task(
        "a",
        2,
        solve={1: f"{LURK}; {LOOK} > seen.txt; true", 2: f"{LOOK} >> seen.txt; sleep 0.3"},
        test={1: f"{check} && {PASSES}", 2: f"test -s /tmp/seen && {check} && {PASSES}"},
        # Much to unpack, which a process of the session does in the sandbox.
        workdir={2: {f"{number}.txt": "x" * 1000 for number in range(300)}},
    )
    session = run_tasks("tasks", subprocess=True)
    assert session.outcomes == {"passed": 2}, session.text


@pytest.mark.docker
@pytest.mark.nightly
def test_nothing_of_the_hosts_environment_is_in_a_docker_container(
    monkeypatch: pytest.MonkeyPatch, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    monkeypatch.setenv("EVO_INNOCENT", "0nly-0n-the-h0st")
    check = f"! {{ {LOOK}; }} | grep -a -q -e 0nly-0n -e EVO_ -e 7d0"
    write_task("a", 1, solve={1: check}, test={1: f"{check} && {PASSES}"})
    assert run_tasks("tasks", env="docker").outcomes == {"passed": 1}


def test_a_suite_gets_a_secret_and_the_agent_never_sees_it(write_task: WriteTask, run_tasks: RunTasks) -> None:
    test = f'echo "$SERVICE_KEY"; [ ${{#SERVICE_KEY}} = {len(KEY)} ] && {PASSES}'
    write_task(
        "a",
        2,
        toml=ASKS.replace("environment.env", "verifier.env"),
        solve={
            1: LURK,
            2: f"sleep 0.5; test -s /tmp/seen; ! {{ {LOOK}; cat /tmp/seen; }} | grep -a -e SERVICE_KEY -e 7d0",
        },
        test={1: test, 2: test},
    )
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 2}, session.text
    assert leaks(session) == []


# Templates in task.toml.

ASKS = f'[environment.env]\nSERVICE_KEY = "${{{NAME}}}"'


IDLE = """
from pytest_evocode.agents import RoundTranscript

class Idle:
    name = "idle"

    def run_round(self, context):
        return RoundTranscript()

def pytest_evocode_make_agent(name):
    return Idle() if name == "idle" else None
"""


def test_a_suite_and_a_solution_get_the_secrets_that_tasks_ask_for_and_the_agents_container_none(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(IDLE)
    judge = f'[verifier.env]\nJUDGE_KEY = "${{{NAME}}}"'
    judges = f'test -n "$JUDGE_KEY" && {PASSES}'
    asks = write_task("asks", 2, toml=ASKS)
    write_task("clean", 1, toml=judge, test={1: judges})
    # In place processes of the agent's could read the suite's variables.
    watched = write_task("watched", 1, toml=f'[metadata.evocode]\nverify_in = "in-place"\n{judge}', test={1: judges})
    default = f'[environment.env]\nSERVICE_KEY = "${{{NAME}:-none}}"'
    write_task("default", 1, toml=default, test={1: f'test "$SERVICE_KEY" = none && {PASSES}'})
    session = run_tasks("tasks", agent="idle")
    assert session.outcomes == {"passed": 2, "errors": 2, "skipped": 1}
    assert [session.record(name, agent="idle").rounds[0].passed for name in ("clean", "default")] == [True, True]
    undeclared = f"asks for {NAME}, a secret that the agent does not declare*"
    for task, line, name in ((asks, 2, "SERVICE_KEY"), (watched, 4, "JUDGE_KEY")):
        session.has(f"*{task}/task.toml:{line}: {name} {undeclared}")
    assert leaks(session) == []


@pytest.mark.parametrize("table", ["environment", "solution"])
def test_what_the_author_wrote_gets_the_secrets_that_the_task_asks_for(
    write_task: WriteTask, run_tasks: RunTasks, table: str
) -> None:
    says = f'[ ${{#SERVICE_KEY}} = {len(KEY)} ] && echo "has $SERVICE_KEY"; exit 3'
    write_task("solution", 1, toml=ASKS.replace("environment", table), solve={1: says})
    session = run_tasks("tasks")
    assert session.outcomes == {"errors": 1}
    session.has("*solve.sh: the reference solution ended with exit code 3*", f"*has [[]{NAME}[]]*")
    assert leaks(session) == []


@pytest.mark.parametrize("agent", ["oracle", "nop"])
def test_a_variable_that_is_set_nowhere_is_named_with_its_place(
    write_task: WriteTask, run_tasks: RunTasks, agent: str
) -> None:
    task = write_task("a", 1, toml='[environment.env]\nSERVICE_KEY = "${OTHER_API_KEY}"')
    session = run_tasks("tasks", agent=agent)
    assert session.outcomes == {"errors": 1}
    session.has(f"*{task}/task.toml:2: OTHER_API_KEY not set in the environment; export it or give a default: *")


def test_an_agent_gets_the_secret_that_it_declares(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(
        f"""
        from pytest_evocode.agents import RoundTranscript

        class Inside:
            name = "inside"
            secrets = ("{NAME}",)

            def run_round(self, context):
                result = context.environment.exec('printf %s "$SERVICE_KEY" > key.txt')
                return RoundTranscript(output=result.output)

        def pytest_evocode_make_agent(name):
            return Inside() if name == "inside" else None
        """
    )
    test = f'cat key.txt; [ "$(wc -c < key.txt)" = {len(KEY)} ] && {PASSES}'
    write_task("a", 1, toml=ASKS, test={1: test})
    session = run_tasks("tasks", agent="inside")
    assert session.outcomes == {"passed": 1}, session.text
    assert (session.attempt(agent="inside") / "steps/round-1/verifier/test-stdout.txt").read_text() == f"[{NAME}]"
    assert leaks(session) == []


@pytest.mark.parametrize("how", [pytest.param([], id="alone"), pytest.param(["-n1"], id="xdist")])
@pytest.mark.matrix
def test_what_checks_say_is_scrubbed(write_task: WriteTask, run_tasks: RunTasks, how: list[str]) -> None:
    secrets = f'[solution.env]\nSERVICE_KEY = "${{{NAME}}}"\n[verifier.env]\nSERVICE_KEY = "${{{NAME}}}"'
    says = 'print("CASE_RESULT case_id=c status=fail failure_reason=" + json.dumps("got " + os.environ["SERVICE_KEY"]))'
    write_task(
        "a",
        2,
        toml=secrets,
        solve={2: 'echo "has $SERVICE_KEY"; exit 3'},
        test={1: f"python3 -c 'import json, os; {says}'; echo 0 > /logs/verifier/reward.txt"},
    )
    reports = ("--json-report", "--junitxml=junit.xml", "-ra")
    session = run_tasks("--evocode-check", "-koracle or time", *reports, *how, "tasks", agent=None)
    assert (session.outcomes["failed"], session.outcomes["skipped"]) == (1, 1)
    session.has(f"  c: got [[]{NAME}[]]", f"has [[]{NAME}[]]")
    for name in (".report.json", "junit.xml"):
        assert f"[{NAME}]" in (session.directory / name).read_text()
    assert leaks(session) == []

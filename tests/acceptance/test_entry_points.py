"""Tasks whose image has an ENTRYPOINT that starts a service: for the agent, and anew where suites verify."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

PYTHON = "FROM python:3.11-slim-bookworm\n"
IMAGE = f"{PYTHON}COPY start.sh /opt/start.sh\nRUN chmod 755 /opt/start.sh && mkdir /srv/shop\nWORKDIR /app\n"
ENTERED = f'{IMAGE}ENTRYPOINT ["/opt/start.sh"]\n'
START = """#!/bin/bash
echo "the shop opens for $(ls /srv/shop | wc -l)"
python3 -m http.server 8123 --bind 127.0.0.1 --directory /srv/shop > /dev/null 2>&1 &
exec "$@"
"""
GET = """import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:8123/order", timeout=10).read().decode())
"""
HEALTHCHECK = """[environment.healthcheck]
command = "python3 -c 'import socket; socket.create_connection((\\"127.0.0.1\\", 8123), 5)'"
interval_sec = 0.2
retries = 50
"""
#: What the solution orders, the service has to serve: to the agent as to the suite.
SOLVE = "echo order-{0} > /srv/shop/order; python3 /opt/get.py | grep -qx order-{0} && echo line-{0} >> log.txt"
TEST = """python3 /opt/get.py > /tmp/seen
if grep -qx order-{0} /tmp/seen && grep -qx line-{0} log.txt; then reward=1; else reward=0; fi
echo $reward > /logs/verifier/reward.txt"""
EVOCODE = "[metadata.evocode]\n"
FILES = {"environment/start.sh": START, "environment/get.py": GET}
NATIVE = """def test_order(workspace):
    assert workspace.run("true").exit_code == 0
    assert "order-1" in workspace.run("python3 /opt/get.py").stdout
    connection = workspace.connect(8123)
    connection.close()
"""


def write_shop(write_task: WriteTask, name: str, rounds: int, toml: str = HEALTHCHECK, native: bool = False) -> None:
    write_task(
        name,
        rounds,
        toml=toml,
        dockerfile=ENTERED.replace("WORKDIR", "COPY get.py /opt/get.py\nWORKDIR"),
        solve={index: SOLVE.format(index) for index in range(1, rounds + 1)},
        test={index: TEST.format(index) for index in range(1, rounds + 1)},
        native={1: NATIVE} if native else {},
        files=FILES,
    )


@pytest.mark.nightly
def test_services_run_for_agents_and_anew_in_forks_and_go_on_where_suites_run_in_place(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_shop(write_task, "a", 1)
    write_shop(write_task, "place", 2, f'{HEALTHCHECK}{EVOCODE}verify_in = "in-place"\n')
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 3}, session.text
    check_opened(session)


@pytest.mark.parametrize("env", ["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
@pytest.mark.nightly
def test_services_run_anew_in_all_kinds_of_forks(write_task: WriteTask, run_tasks: RunTasks, env: str) -> None:
    write_shop(write_task, "a", 2)
    write_shop(write_task, "clean", 1, f'{HEALTHCHECK}{EVOCODE}verify_in = "clean"\nstate = ["/srv/shop"]\n')
    write_shop(write_task, "native", 1, f'{HEALTHCHECK}{EVOCODE}verify_in = "separate"\n', native=True)
    write_shop(write_task, "place", 2, f'{HEALTHCHECK}{EVOCODE}verify_in = "in-place"\n')
    session = run_tasks("tasks", env=env)
    assert session.outcomes == {"passed": 6}, session.text
    check_opened(session)


def check_opened(session: Session) -> None:
    """Services began with the files of the image for the agent, and with those of the snapshot for the last suite."""
    attempt = session.attempt("a")
    rounds = session.record("a").rounds
    assert (attempt / "entry-point.log").read_text() == "the shop opens for 0\n"
    last = attempt / f"steps/round-{len(rounds)}/verifier/logs/entry-point.log"
    assert last.read_text() == "the shop opens for 1\n"
    assert [round_.verdict and round_.verdict.flags for round_ in rounds] == [()] * len(rounds)


@pytest.mark.nightly
def test_a_turn_that_is_out_of_time_does_not_end_services_for_good(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task(
        "b",
        2,
        toml=HEALTHCHECK,
        dockerfile=ENTERED.replace("WORKDIR", "COPY get.py /opt/get.py\nWORKDIR"),
        solve={1: "echo line-1 >> log.txt; sleep 1000", 2: SOLVE.format(2)},
        test={1: "echo 1 > /logs/verifier/reward.txt", 2: TEST.format(2)},
        step={1: "[steps.agent]\ntimeout_sec = 1\n"},
        files=FILES,
    )
    session = run_tasks("tasks/b")
    assert session.outcomes == {"passed": 2}, session.text
    assert "[started again]" in (session.attempt("b") / "entry-point.log").read_text()


#: Forges as soon as the suite has written its reward, and once, so that nobody finds the file half written.
FORGE = "(until grep -qsx 0 /logs/verifier/reward.txt; do sleep 0.02; done; echo 1 > /logs/verifier/reward.txt) &"
IS_FORGED = """echo 0 > /logs/verifier/reward.txt
for i in {1..1000}; do grep -qx 1 /logs/verifier/reward.txt && exit 0; sleep 0.02; done"""
FORGER = f"""
from pytest_evocode.agents import RoundTranscript


class Forger:
    name = "forger"

    def run_round(self, context):
        context.environment.exec({f"echo '{FORGE}' >> /app/start.sh"!r}, user="0")
        return RoundTranscript()


def pytest_evocode_make_agent(name):
    return Forger() if name == "forger" else None
"""


@pytest.mark.nightly
def test_one_in_the_workspace_that_forges_a_reward_marks_the_verdict_however_the_image_names_it(
    write_task: WriteTask, run_tasks: RunTasks, pytester: pytest.Pytester
) -> None:
    entries = {"path": '["/app/start.sh"]', "argument": '["bash", "start.sh"]', "shell": "exec ./start.sh"}
    for name, entry in entries.items():
        write_task(
            name,
            1,
            dockerfile=f"{PYTHON}WORKDIR /app\nCOPY --chmod=755 start.sh start.sh\nENTRYPOINT {entry}\n",
            solve={1: "true"},
            test={1: IS_FORGED},
            files={"environment/start.sh": "#!/bin/bash\n"},
        )
    pytester.makeconftest(FORGER)
    session = run_tasks("tasks", agent="forger")
    # They have their reward, which counts for nothing where verdicts have to be clean.
    assert session.outcomes == {"passed": len(entries)}
    verdicts = [session.record(name, "forger").rounds[0].verdict for name in entries]
    assert [verdict and verdict.trusts for verdict in verdicts] == [("/app/start.sh",)] * len(entries)
    assert run_tasks("tasks", "--evocode-strict", agent="forger").outcomes == {"failed": len(entries)}


def test_one_that_fails_is_a_mistake_of_the_task_and_after_the_agents_work_a_flag_of_the_verdict(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("broken", 1, dockerfile=f"{IMAGE}ENTRYPOINT echo no database >&2; exit 3\n", files=FILES)
    solve = "echo line-1 >> log.txt; printf '#!/bin/bash\\necho closed; exit 4\\n' > /opt/start.sh"
    write_task("closed", 1, dockerfile=ENTERED, solve={1: solve}, files=FILES)
    session = run_tasks("tasks")
    assert session.outcomes == {"errors": 1, "passed": 1}
    session.has("*environment/Dockerfile: the image's ENTRYPOINT * ended with exit code 3; its last lines were:*")
    session.has("no database")
    verdict = session.record("closed").rounds[0].verdict
    assert verdict is not None
    (flag,) = verdict.flags
    assert flag.startswith("before the suite: the image's ENTRYPOINT ['/opt/start.sh'] ended with exit code 4")


@pytest.mark.nightly
def test_an_attempt_that_begins_at_a_kept_state_has_its_services(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_shop(write_task, "a", 2)
    first = run_tasks("tasks/a/task.toml::oracle::round-1", replay=False)
    assert first.outcomes == {"passed": 1}
    session = run_tasks("tasks", "--evocode-from=round-2", replay=False)
    assert session.outcomes == {"passed": 1, "deselected": 1}, session.text
    assert (session.attempt() / "entry-point.log").read_text() == "the shop opens for 1\n"

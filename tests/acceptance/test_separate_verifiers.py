"""Harbor's ``environment_mode = "separate"``: a suite has an environment for itself, with declared artifacts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from pytest_evocode.cli import main
from pytest_evocode.trial.suites import brought_artifacts
from tests.acceptance.tasks import DOCKERFILE

if TYPE_CHECKING:
    from tests.acceptance.sessions import CheckTasks, RunTasks, Session
    from tests.acceptance.tasks import WriteTask

SEPARATE = '[verifier]\nenvironment_mode = "separate"\n'
PASS = "echo 1 > /logs/verifier/reward.txt"
FAIL = "echo 0 > /logs/verifier/reward.txt"
MISSING = "artifact not brought to the suite: {} is not there"


def flags(session: Session, task: str) -> list[tuple[str, ...]]:
    """What verdicts say of what came to their suites, round by round; all of them are to rest on artifacts."""
    verdicts = [round_.verdict for round_ in session.record(task).rounds]
    assert all(verdict is not None and verdict.rests_on == "clean" for verdict in verdicts)
    return [
        tuple(flag for flag in verdict.flags if not flag.startswith("artifact left out: "))  # Of those on the host.
        for verdict in verdicts
        if verdict is not None
    ]


def judged(condition: str) -> str:
    """A test.sh that passes where a condition holds."""
    return f"if {condition.strip()}; then {PASS}; else {FAIL}; fi"


def write_separate(write_task: WriteTask) -> None:
    """Work inside and outside the workdir, undeclared work, a process, and what is not there."""
    solve = (
        "echo line-1 > log.txt; mkdir -p /srv/out/deep; echo one > /srv/out/deep/one; ln -s deep/one /srv/out/link; "
        "echo pub > /logs/artifacts/pub; echo x > undeclared; echo y > /etc/planted; "
        "setsid sleep 4321 > /dev/null 2>&1 &"
    )
    there = "grep -qx line-1 log.txt && grep -qx one /srv/out/link && [ -w /srv/out ] && [ -e /logs/artifacts/pub ]"
    alone = "[ ! -e undeclared ] && [ ! -e /etc/planted ] && ! grep -qs '[4]321' /proc/[0-9]*/cmdline"
    toml = f'artifacts = ["/app/log.txt", "/srv/out", "/srv/out/deep", "/app/missing"]\n{SEPARATE}'
    write_task("separate", 1, toml=toml, solve={1: solve}, test={1: judged(f"{there} && {alone}")})


def write_mixed(write_task: WriteTask) -> None:
    """Shared and separate suites in turn; only the shared ones find what was not declared."""
    separate = 'artifacts = ["/app"]\nverifier.environment_mode = "separate"'
    whole = judged("[ $(wc -l < log.txt) = $EVOCODE_ROUND_INDEX ] && [ $(wc -l < /srv/side) = $EVOCODE_ROUND_INDEX ]")
    work = judged("[ $(wc -l < log.txt) = $EVOCODE_ROUND_INDEX ] && [ ! -e /srv/side ] && [ ! -e /app/trace ]")
    write_task(
        "mixed",
        3,
        step={1: separate, 3: separate},
        solve={index: f"echo {index} | tee -a log.txt >> /srv/side" for index in (1, 2, 3)},
        # What a separate suite leaves behind is in no later one.
        test={1: f"{work}; touch /app/trace", 2: whole, 3: work},
    )


def write_own_image(write_task: WriteTask) -> None:
    """An image of the verifier's, built from tests/: it brings other files, and its own test.sh."""
    own = (
        "FROM python:3.11-slim-bookworm\nWORKDIR /grading\nENV OF=verifier\nCOPY . /tests/\nRUN echo tool > /opt/tool\n"
    )
    condition = "[ $OF = verifier ] && [ -e /opt/tool ] && [ ! -e /etc/of-task ] && grep -qx line-1 /app/log.txt"
    write_task(
        "own-image",
        1,
        toml='artifacts = ["/app/log.txt"]\n[verifier.environment]\n',
        dockerfile=f"{DOCKERFILE}RUN echo x > /etc/of-task && echo stale > /app/log.txt\n",
        files={
            "steps/round-1/tests/Dockerfile": own,
            "steps/round-1/tests/test.sh": judged(f"{condition} && [ $PWD = /grading ]"),
        },
    )


def write_collecting(write_task: WriteTask) -> None:
    """Commands that put into files what a process of the agent's knows; one fails, and hangs nothing up."""
    toml = f"""artifacts = ["/srv/state", "/srv/who"]
{SEPARATE}
[[verifier.collect]]
command = "printf '%s ' of-task $PWD > /srv/state"
[[verifier.collect]]
command = "echo broken >&2; exit 3"
"""
    look = r"""cat /proc/[0-9]*/cmdline | tr -d "\000" | grep -o "[s]leep4321" >> /srv/state"""
    step = f"[[steps.verifier.collect]]\ncommand = '{look}'"
    condition = '[ "$(cat /srv/state)" = "of-task /app sleep4321" ]'
    write_task(
        "collecting", 1, toml=toml, step={1: step}, solve={1: "setsid sleep 4321 > /dev/null 2>&1 &"},
        test={1: judged(condition)},
    )  # fmt: skip


def write_named_image(write_task: WriteTask) -> None:
    """A finished image of the verifier's that has no tests, which such an image has to bring."""
    write_task("named-image", 1, toml='[verifier.environment]\ndocker_image = "python:3.11-slim-bookworm"\n')


def test_suites_find_the_artifacts_and_nothing_else_of_the_agent(write_task: WriteTask, run_tasks: RunTasks) -> None:
    run_all_kinds(write_task, run_tasks, "sandbox")


@pytest.mark.docker
@pytest.mark.nightly
def test_suites_find_the_artifacts_and_nothing_else_of_the_agent_in_docker(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    run_all_kinds(write_task, run_tasks, "docker")


def run_all_kinds(write_task: WriteTask, run_tasks: RunTasks, env: str) -> None:
    for write in (write_separate, write_mixed, write_own_image, write_collecting):
        write(write_task)
    session = run_tasks("tasks", env=env)
    assert session.outcomes == {"passed": 6}
    assert flags(session, "separate") == [(MISSING.format("/app/missing"),)]
    assert flags(session, "own-image") == [()]
    (noted,) = flags(session, "collecting")
    assert noted == (
        "artifact not brought to the suite: /srv/who is not there",
        "the collect command 'echo broken >&2; exit 3' ended with exit code 3: broken",
    )
    verdicts = [round_.verdict for round_ in session.record("mixed").rounds]
    assert [verdict and verdict.rests_on for verdict in verdicts] == ["clean"] * 3
    assert (session.attempt("separate") / "steps/round-1/artifacts/pub").read_text() == "pub\n"


@pytest.mark.parametrize("env", ["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
@pytest.mark.nightly  # By day tests/tasks/test_suite_environments.py has what an image of the verifier's brings.
def test_an_agent_that_does_nothing_fails_and_an_image_without_tests_is_told(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    for write in (write_separate, write_mixed, write_own_image, write_collecting, write_named_image):
        write(write_task)
    nothing = run_tasks("tasks", agent="nop", env=env)
    assert nothing.outcomes == {"failed": 6, "errors": 1}
    (told,) = nothing.record("named-image", "nop").rounds
    if env == "docker":
        assert told.cause.startswith("the verifier's image, python:3.11-slim-bookworm, has no /tests/test.sh; such an")
    else:
        assert "this task needs Docker: docker_image names a finished image" in told.cause


@pytest.mark.nightly
def test_a_run_is_continued_and_verified_again(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_mixed(write_task)
    session = run_tasks("tasks/mixed", "--evocode-snapshots")
    assert session.outcomes == {"passed": 3}
    assert run_tasks("tasks/mixed", "--evocode-snapshots", "--evocode-resume").outcomes == {"passed": 3}
    test = session.directory / "tasks/mixed/steps/round-3/tests/test.sh"
    test.write_text(judged("[ -e /app/log.txt ] && [ -e /srv/side ]"), encoding="utf-8")
    result = CliRunner().invoke(main, ["regrade"])
    assert result.exit_code == 0, result.output
    assert [each.outcome for each in session.record("mixed").rounds] == ["passed", "passed", "failed"]


@pytest.mark.slow
@pytest.mark.nightly
def test_its_checks_are_those_of_other_tasks(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    write_task(
        "a",
        1,
        toml=f'artifacts = ["/app/made"]\n{SEPARATE}[[verifier.collect]]\ncommand = "rm -f made; cp log.txt made"\n',
        test={1: judged("grep -qx line-1 made && [ ! -e log.txt ]")},
        files={"cheat/collected.sh": "echo line-1 > made"},
    )
    checked = check_tasks("-knot starter and not time and not load")
    assert {name for name, outcome in checked.outcomes.items() if outcome != "passed"} == {"lint"}, checked.messages
    assert all("does not name its interpreter" in line for line in checked.messages["lint"].splitlines())
    assert {
        "oracle",
        "nop",
        "needs-work[round-1]",
        "deterministic[round-1]",
        "cheat[collected]",
    } <= checked.outcomes.keys()


#: Every way out of the artifacts that files have, and what gives rights where it is.
HOSTILE = r"""
mkdir -p /app/out/bin /app/shadowed /srv; echo line-1 > log.txt; rm -rf /app/gone
ln -s /tests/test.sh out/tests; ln -s ../../logs/verifier out/logs; ln -s . out/here; ln -s here/../../opt out/opt
ln -s /etc /app/shadowed/etc; ln -s /opt /app/linked; mkfifo out/pipe; ln log.txt out/hard
cp /bin/sh out/bin/sh; chmod 6777 out/bin/sh
echo 1 > /logs/artifacts/reward.txt; mkdir -p /logs/verifier /tests
echo 1 > /logs/verifier/reward.txt; echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh
mkdir -p /app/big; truncate -s 9M /app/big/file
"""
NO_HARM = """
[ ! -e /app/out/tests ] && [ ! -e /app/out/logs ] && [ ! -e /app/out/opt ] && [ ! -e /app/linked ] &&
[ ! -e /app/out/pipe ] && [ ! -u /app/out/bin/sh ] && [ ! -g /app/out/bin/sh ] && [ ! -e /app/big ] &&
[ ! -e /logs/verifier/reward.txt ] && [ -x /app/out/bin/sh ] && [ -L /app/out/here ] && grep -qx line-1 /app/out/hard &&
[ "$(stat -c %u /app/out/bin/sh)" = 0 ] && [ -e /app/gone ] && [ ! -L /app/shadowed/etc ]
"""


@pytest.mark.nightly  # By day tests/environments/test_artifact_archives.py has what could do harm.
def test_hostile_artifacts_bring_nothing_but_files(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring_hostile_artifacts(write_task, run_tasks, monkeypatch, "sandbox")


@pytest.mark.docker
@pytest.mark.nightly
def test_hostile_artifacts_bring_nothing_but_files_in_docker(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring_hostile_artifacts(write_task, run_tasks, monkeypatch, "docker")


def bring_hostile_artifacts(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch, env: str
) -> None:
    monkeypatch.setattr(brought_artifacts, "SIZE_LIMIT", 2**22)
    sources = ["/app/out", "/app/linked", "/app/big", "/app/gone", "/app/shadowed/etc/passwd", "/logs"]
    write_task(
        "hostile",
        1,
        toml=f"artifacts = {sources}\n{SEPARATE}",
        dockerfile=f"{DOCKERFILE}RUN echo of the image > /app/gone\n",
        solve={1: HOSTILE},
        test={1: judged(NO_HARM)},
    )
    session = run_tasks("tasks", env=env)
    (told,) = flags(session, "hostile")
    assert session.outcomes == {"passed": 1}, told
    assert "artifact not brought to the suite: /app/linked is a link" in told
    assert MISSING.format("/app/gone") in told
    assert any(each.startswith("artifact not brought to the suite: /app/big is too large: ") for each in told)
    assert "artifact not brought to the suite: /app/out/opt: is a link that leads out of what was declared" in told

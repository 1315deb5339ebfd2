"""What a script suite leaves in /logs/verifier is kept, and reports of cases are found there and elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.turns(3)

REWARD = """echo '{"reward": 1, "style": 0.5}' > /logs/verifier/reward.json"""
SUITES = {
    1: f"""{REWARD}; mkdir /logs/verifier/judge; echo said > /logs/verifier/judge/transcript.txt
echo '{{"why": "good"}}' > /logs/verifier/reward_details.json; ln -s /etc/passwd /logs/verifier/link
printf '1..2\\nok 1 - a\\nok 2 - b\\n' > /logs/verifier/run.tap""",
    2: "echo 1 > /logs/verifier/reward.txt",
}


@pytest.mark.parametrize("env", ["sandbox"])
def test_what_a_suite_leaves_is_kept_as_it_wrote_it_and_cases_are_read_where_the_task_says(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    write_task("a", 2, test=SUITES)
    report = """echo '{"results": {"tests": [{"name": "%s", "status": "passed"}]}}' > %s"""
    suite = "; ".join(
        [REWARD, report % ("a", "/tmp/a.json"), report % ("b", "/tmp/b"), "echo 'CASE_RESULT case_id=no'"]
    )
    places = '[metadata.evocode]\ncase_reports = ["/tmp/a.json", "/tmp/b", "/tmp/c"]\n'
    write_task("named", 1, test={1: suite}, toml=places)
    session = run_tasks("tasks", env=env)
    assert session.outcomes == {"passed": 3}
    verifier = session.attempt() / "steps/round-1/verifier"
    kept = {str(path.relative_to(verifier / "logs")) for path in (verifier / "logs").rglob("*") if path.is_file()}
    assert kept == {"reward.json", "reward_details.json", "judge/transcript.txt", "run.tap"}
    assert (verifier / "logs/reward.json").read_text() == '{"reward": 1, "style": 0.5}\n'
    assert "log of the suite" not in session.text
    first, second = session.record().rounds
    assert (first.case_counts, second.case_counts) == ((2, 2), (0, 0))
    assert first.verdict is not None
    assert any("suite log left out: " in flag and "link" in flag for flag in first.verdict.flags)
    assert not (session.attempt() / "steps/round-2/verifier/logs").exists()
    (named,) = session.record("named").rounds
    assert named.verdict is not None
    assert named.verdict.flags == ("cases: /tmp/c, which case_reports in task.toml names, is not there",)
    assert named.case_counts == (2, 2)


@pytest.mark.docker
@pytest.mark.nightly
def test_what_a_suite_leaves_is_kept_in_docker(write_task: WriteTask, run_tasks: RunTasks) -> None:
    test_what_a_suite_leaves_is_kept_as_it_wrote_it_and_cases_are_read_where_the_task_says(
        write_task, run_tasks, env="docker"
    )


@pytest.mark.parametrize("place", ["in-place", "clean"])
@pytest.mark.matrix
def test_reports_of_an_agent_count_for_nothing_and_it_sees_none_of_the_suite(
    write_task: WriteTask, run_tasks: RunTasks, place: str
) -> None:
    report = """echo '{"results": {"tests": [{"name": "%s", "status": "passed"}]}}' > /app/%s.json"""
    write_task(
        "a",
        2,
        solve={1: report % ("planted", "report"), 2: "ls -d /app/*.json > /app/seen; rm -f /app/report.json"},
        test={
            1: f"{REWARD}; {report % ('real', 'other')}",
            2: f"{REWARD}; if grep other /app/seen; then rm /logs/verifier/reward.json; fi",
        },
        toml=f'[metadata.evocode]\nverify_in = "{place}"\ncase_reports = ["/app/report.json", "/app/other.json"]\n',
    )
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 2}
    first, second = session.record().rounds
    assert first.verdict is not None
    assert [case.id for case in first.verdict.cases] == ["real"]
    assert any("/app/report.json" in flag and "is not there" in flag for flag in first.verdict.flags)
    assert second.case_counts == (0, 0)

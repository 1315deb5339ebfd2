"""Running a suite for real, in a fork of a sandbox."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evocode.results.records import Case, Verdict
from pytest_evocode.verifier import SuiteRun

RunSuite = Callable[..., SuiteRun]
REWARD = "/logs/verifier/reward.txt"
PASS = f"echo 1 > {REWARD}\n"


def verdict(run: SuiteRun) -> Verdict:
    assert run.verdict is not None, run.fault
    return run.verdict


def test_a_reward_of_one_is_a_pass_whatever_the_exit_status(suite: RunSuite) -> None:
    run = suite(f"echo hello\n{PASS}exit 3")
    assert verdict(run) == Verdict(reward=1.0, rewards={"reward": 1.0})
    assert (run.output, run.fault, run.left_out) == ("hello\n", "", ())
    assert run.seconds > 0


def test_a_reward_of_nothing_is_a_failure_whatever_the_exit_status(suite: RunSuite) -> None:
    assert not verdict(suite("echo 0 > /logs/verifier/reward.txt\nexit 0")).passed


def test_the_rounds_tests_are_laid_over_the_tasks(suite: RunSuite) -> None:
    run = suite(
        f"cd /tests && cat both.txt only-shared.txt deep/only-round.txt\n{PASS}",
        shared={"test.sh": "exit 1\n", "both.txt": "task\n", "only-shared.txt": "shared\n"},
        tests={"both.txt": "round\n", "deep/only-round.txt": "deep\n"},
    )
    assert run.output == "round\nshared\ndeep\n"
    assert verdict(run).passed


def test_the_tests_are_a_private_copy_that_the_suite_may_write(suite: RunSuite, tmp_path: Path) -> None:
    script = f"echo changed > /tests/data.txt && rm /tests/test.sh && mkdir /tests/new && cat /tests/data.txt\n{PASS}"
    run = suite(script, tests={"data.txt": "original\n"})
    assert run.output == "changed\n"
    assert (tmp_path / "task/steps/round-1/tests/data.txt").read_text() == "original\n"
    assert (tmp_path / "task/steps/round-1/tests/test.sh").read_text() == script


def test_a_suite_of_another_user_may_write_its_tests_and_its_logs(suite: RunSuite) -> None:
    run = suite(
        f"id -u && touch /tests/data.txt /tests/deep/new /logs/verifier/log.txt\n{PASS}",
        step='[steps.verifier]\nuser = "nobody"\n',
        tests={"data.txt": "", "deep/old": ""},
    )
    assert run.output == "65534\n"
    assert verdict(run).passed


def test_a_suite_starts_in_the_working_directory_with_what_the_agent_left_and_all_variables(suite: RunSuite) -> None:
    script = f'pwd\ncat answer.txt\necho "$FROM_TASK $TOKEN"\n{PASS}'
    run = suite(script, workspace="echo 42 > answer.txt", env={"TOKEN": "a b"})
    assert run.output == "/app\n42\ntask a b\n"


def test_what_the_agent_put_where_tests_and_rewards_go_is_not_there(suite: RunSuite) -> None:
    run = suite(
        "ls -A /tests /logs/verifier",
        workspace="mkdir /tests && touch /tests/conftest.py && ln -s /app /logs/verifier && echo 1 > reward.txt",
    )
    assert run.output == "/logs/verifier:\n\n/tests:\ntest.sh\n"
    assert run.verdict is None
    assert "test.sh wrote no reward" in run.fault


def test_no_process_of_the_agent_runs_beside_the_suite(suite: RunSuite) -> None:
    run = suite(
        f"grep -la slee[p] /proc/[0-9]*/cmdline 2>/dev/null | wc -l\n{PASS}",
        workspace="sleep 600 >/dev/null 2>&1 & disown; grep -la slee[p] /proc/[0-9]*/cmdline | grep -q .",
    )
    assert run.output == "0\n"


def test_what_a_suite_changes_stays_in_its_fork(suite: RunSuite) -> None:
    assert verdict(suite(f"rm -rf /app/* && touch /app/gone\n{PASS}", workspace="touch keep")).passed


# Rewards.


def test_reward_json_wins_over_reward_txt(suite: RunSuite) -> None:
    run = suite('cd /logs/verifier; echo 1 > reward.txt; echo \'{"reward": 0.5, "style": 1}\' > reward.json')
    assert verdict(run) == Verdict(reward=0.5, rewards={"reward": 0.5, "style": 1.0})


def test_a_bad_reward_json_is_an_error_beside_a_good_reward_txt(suite: RunSuite) -> None:
    run = suite("cd /logs/verifier; echo 1 > reward.txt; echo nonsense > reward.json")
    assert run.verdict is None
    assert run.fault.startswith("reward.json is not JSON")


def test_the_task_names_the_reward_that_decides(suite: RunSuite) -> None:
    write = 'echo \'{"tests": 1, "style": 0.5}\' > /logs/verifier/reward.json'
    assert verdict(suite(write, toml='[metadata.evocode]\nreward_key = "tests"\n')).reward == 1.0
    assert verdict(suite(write)) == Verdict(
        reward=0.5, rewards={"tests": 1.0, "style": 0.5}, deciding_key="style", deciding_rule="smallest"
    )


@pytest.mark.parametrize(
    ("write", "said"),
    [
        ("ln -s /nowhere reward.txt", "/logs/verifier/reward.txt is a symlink"),
        ("true", "test.sh wrote no reward; it has to write a number from 0 to 1 to /logs/verifier/reward.txt"),
        ("touch reward.txt", "reward.txt is empty"),
        ("echo nan > reward.txt", "is not a finite number"),
        ("mkdir reward.txt", "/logs/verifier/reward.txt is a directory; a reward has to be a small regular file"),
        ("mkdir reward.json; echo 1 > reward.txt", "/logs/verifier/reward.json is a directory"),
        ("echo 1 > /tmp/r; ln -s /tmp/r reward.txt", "/logs/verifier/reward.txt is a symlink"),
        ("mkfifo reward.txt", "/logs/verifier/reward.txt is not a regular file"),
        ("truncate -s 1G reward.txt", "/logs/verifier/reward.txt is 1073741824 bytes long, over the limit"),
        (r"printf '\377\376' > reward.txt", "which is not a number"),
        ("rm -rf /logs/verifier; echo 1 > /logs/verifier", "test.sh wrote no reward"),
    ],
)
@pytest.mark.matrix
def test_a_suite_without_a_usable_reward_gives_no_verdict_and_says_why(suite: RunSuite, write: str, said: str) -> None:
    run = suite(f"echo first\ncd /logs/verifier\n{write}\necho last words\nexit 7")
    assert run.verdict is None
    assert said in run.fault
    assert run.fault.endswith("test.sh ended with exit code 7; its last lines:\nfirst\nlast words")


def test_a_script_beside_the_suite_that_was_saved_with_crlf_is_said_to_be(suite: RunSuite) -> None:
    run = suite(
        "bash /tests/write.sh", tests={"write.sh": "\necho 1 > /logs/verifier/reward.txt\n".replace("\n", "\r\n")}
    )
    assert run.verdict is None
    ended = (
        "test.sh ended with exit code 0; a script that it ran was saved with CRLF, save it with LF; its last lines:\n"
    )
    assert ended in run.fault


def test_a_suite_that_says_nothing_at_all_is_described_as_such(suite: RunSuite) -> None:
    assert suite("exit 1").fault.endswith("ended with exit code 1; its last lines:\n(no output)")


def test_of_a_long_output_the_fault_shows_the_end(suite: RunSuite) -> None:
    run = suite("seq 1000")
    assert run.fault.endswith("its last lines:\n" + "\n".join(map(str, range(981, 1001))))
    assert run.output.startswith("1\n2\n")


# Cases.

REPORTS = {
    "ctrf.json": '{"results": {"tests": [{"name": "from ctrf", "status": "passed"}]}}',
    "report.json": '{"tests": [{"nodeid": "from report", "outcome": "passed"}]}',
    "junit.xml": "<testsuite><testcase name='from junit'/></testsuite>",
}
LINE = "CASE_RESULT case_id=printed status=success"


@pytest.mark.parametrize(
    ("written", "id_"),
    [
        (("ctrf.json", "report.json", "junit.xml"), "from ctrf"),
        (("report.json", "junit.xml"), "from report"),
        (("junit.xml",), "from junit"),
        ((), "printed"),
    ],
)
@pytest.mark.matrix
def test_cases_come_from_the_first_source_there_is(suite: RunSuite, written: tuple[str, ...], id_: str) -> None:
    copy = "".join(f"cp /tests/{name} /logs/verifier/\n" for name in written)
    run = suite(f"echo {LINE}\n{copy}{PASS}", tests=REPORTS)
    assert verdict(run) == Verdict(reward=1.0, rewards={"reward": 1.0}, cases=(Case(id=id_, status="passed"),))


@pytest.mark.parametrize(
    ("write", "said"),
    [
        ("ln -s /tests/ctrf.json ctrf.json", "cases: /logs/verifier/ctrf.json is a symlink"),
        ("mkdir ctrf.json", "cases: /logs/verifier/ctrf.json is a directory"),
        ("mkfifo ctrf.json", "cases: /logs/verifier/ctrf.json is not a regular file"),
        ("truncate -s 1G ctrf.json", "cases: /logs/verifier/ctrf.json is 1073741824 bytes long, over the limit of"),
        ("echo nonsense > ctrf.json", "cases: ctrf.json is not what its name says: JSONDecodeError"),
    ],
)
@pytest.mark.matrix
def test_a_source_that_cannot_be_read_is_flagged_and_the_next_one_is_taken(
    suite: RunSuite, write: str, said: str
) -> None:
    found = verdict(suite(f"cd /logs/verifier\n{write}\ncp /tests/junit.xml .\n{PASS}", tests=REPORTS))
    assert [case.id for case in found.cases] == ["from junit"]
    (flag,) = found.flags
    assert flag.startswith(said)
    assert found.passed


def test_all_reports_whose_names_end_like_that_of_the_first_are_read(suite: RunSuite) -> None:
    reports = {
        "TEST-a.xml": "<testsuite><testcase name='a'/><testcase name='b'/></testsuite>",
        "TEST-b.xml": "<testsuite tests='3'><testcase name='b'><failure/></testcase><testcase name='c'/></testsuite>",
        "TEST-c.xml": "<testsuite><testcase name='d'/>",
        "page.xml": "<html/>",
        "same.json": REPORTS["report.json"],
    }
    found = verdict(suite(f"cp /tests/*.xml /tests/*.json /logs/verifier\necho 0 > {REWARD}", tests=reports))
    assert [(case.id, case.status) for case in found.cases] == [("a", "passed"), ("b", "failed"), ("c", "passed")]
    short, broken = found.flags
    assert (
        short == "cases: /logs/verifier/TEST-b.xml, line 1: testsuite announces 3 tests and has 2: it is not complete"
    )
    assert broken.startswith("cases: /logs/verifier/TEST-c.xml cannot be read: ExpatError: ")


def test_when_no_source_can_be_read_the_printed_cases_are_left(suite: RunSuite) -> None:
    found = verdict(suite(f"echo {LINE}\ncd /logs/verifier; touch ctrf.json report.json junit.xml\n{PASS}"))
    assert [case.id for case in found.cases] == ["printed"]
    assert len(found.flags) == 3


@pytest.mark.parametrize(
    ("reward", "statuses", "flags"),
    [
        (1, ("success", "fail"), ("the reward is 1, but 1 of 2 cases failed",)),
        (0.9995, ("error", "fail"), ("the reward is 0.9995, but 2 of 2 cases failed",)),
        (0, ("success", "success"), ("the reward is 0, but none of 2 cases failed",)),
        (0.5, ("skipped",), ("the reward is 0.5, but none of 1 cases failed",)),
        (1, ("success", "skipped"), ()),
        (0, ("success", "fail"), ()),
        (0, (), ()),
    ],
)
@pytest.mark.matrix
def test_cases_that_contradict_the_reward_are_flagged_and_the_reward_stands(
    suite: RunSuite, reward: float, statuses: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    lines = "".join(f"echo CASE_RESULT case_id=c{i} status={status}\n" for i, status in enumerate(statuses))
    found = verdict(suite(f"{lines}echo {reward} > /logs/verifier/reward.txt"))
    assert found.flags == flags
    assert found.reward == reward
    assert len(found.cases) == len(statuses)


def test_a_summary_that_contradicts_the_lines_is_flagged(suite: RunSuite) -> None:
    found = verdict(suite(f"echo {LINE}\necho CASE_SUMMARY total_cases=5\n{PASS}"))
    assert found.flags == ("CASE_SUMMARY says total_cases=5, its CASE_RESULT lines give 1",)


def test_of_a_flood_of_output_the_cases_at_both_ends_are_read(suite: RunSuite) -> None:
    flood = "yes 'a line that nobody needs' | head -c 40M"
    run = suite(f"echo CASE_RESULT case_id=first status=success\n{flood}\necho; echo {LINE}\n{PASS}")
    assert [case.id for case in verdict(run).cases] == ["first", "printed"]
    assert len(run.output) < 32 * 2**20
    assert "bytes left out" in run.output


# Deadlines.


@pytest.mark.nightly
def test_a_suite_over_its_time_has_failed_with_the_cases_so_far(suite: RunSuite) -> None:
    run = suite(
        f"echo {LINE}\n{PASS}sleep 600 & sleep 600",
        step="[steps.verifier]\ntimeout_sec = 0.5\n",
    )
    assert verdict(run) == Verdict(
        reward=0.0, rewards={"reward": 0.0}, timed_out=True, cases=(Case(id="printed", status="passed"),)
    )
    assert (run.output, run.fault) == (f"{LINE}\n", "")
    assert run.seconds < 30


def test_a_suite_whose_background_process_hangs_is_over_when_it_ends(suite: RunSuite) -> None:
    run = suite(f"sleep 600 &\n{PASS}", step="[steps.verifier]\ntimeout_sec = 60\n")
    assert verdict(run).passed
    assert run.seconds < 30


# Artifacts.

ARTIFACTS = """artifacts = [
    "/app/report.txt",
    { source = "/app/build", destination = "out/built", exclude = ["*.tmp", "cache"] },
    "/app/missing",
]
"""


def test_artifacts_are_collected_where_they_belong(suite: RunSuite, tmp_path: Path) -> None:
    target = tmp_path / "artifacts"
    run = suite(
        f"echo measured > /logs/artifacts/timing.txt\n{PASS}",
        toml=ARTIFACTS,
        workspace=(
            "echo report > report.txt; mkdir -p build/cache build/deep; "
            "touch build/a build/a.tmp build/cache/b build/deep/c; ln -s /etc/passwd build/link; "
            "echo agent > /logs/artifacts/agent.txt"
        ),
        artifacts=target,
    )
    assert sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()) == [
        "agent.txt",
        "out/built/a",
        "out/built/deep/c",
        "report.txt",
        "timing.txt",
    ]
    assert (target / "report.txt").read_text() == "report\n"
    assert run.left_out == ("build/link: neither a file nor a directory",)


@pytest.mark.nightly
def test_artifacts_of_a_suite_without_a_verdict_are_collected_too(suite: RunSuite, tmp_path: Path) -> None:
    target = tmp_path / "artifacts"
    run = suite("exit 1", toml=ARTIFACTS, workspace="echo report > report.txt", artifacts=target)
    assert run.verdict is None
    assert (target / "report.txt").read_text() == "report\n"
    run = suite(
        "sleep 600",
        toml=ARTIFACTS,
        workspace="echo late > report.txt",
        step="[steps.verifier]\ntimeout_sec = 0.2\n",
        artifacts=target,
    )
    assert verdict(run).timed_out
    assert (target / "report.txt").read_text() == "late\n"


def test_without_artifacts_nothing_is_left_on_the_host(suite: RunSuite, tmp_path: Path) -> None:
    suite(PASS, artifacts=tmp_path / "artifacts")
    assert not (tmp_path / "artifacts").exists()

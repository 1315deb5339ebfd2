"""``pytest --evocode-check``: what each check finds, and what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.checks.catalogue import Answer, Check
from pytest_evocode.checks.runner import CheckRunner
from pytest_evocode.errors import CannotBeChecked
from tests.acceptance.sessions import Checked
from tests.acceptance.tasks import DOCKERFILE, native_test, suite_up_to

if TYPE_CHECKING:
    from tests.acceptance.sessions import CheckTasks, RunTasks
    from tests.acceptance.tasks import WriteNative, WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

CHECK = "tasks/a/task.toml::check"


@dataclass(frozen=True)
class OfTask(Checked):
    """What a session found of one of its tasks."""

    task: str

    @property
    def _tests(self) -> dict[str, dict[str, Any]]:
        start = f"tasks/{self.task}/task.toml::check::"
        tests = self.session.json_report()["tests"]
        return {test["nodeid"].removeprefix(start): test for test in tests if test["nodeid"].startswith(start)}


def ids(**checks: str) -> list[str]:
    """The node ids of tasks' checks, whose names are separated by spaces."""
    return [f"tasks/{task}/task.toml::check::{name}" for task, names in checks.items() for name in names.split()]


def naming(last: int) -> str:
    """A test.sh whose cases name requirements."""
    return "#!/bin/bash\n" + suite_up_to(last).replace("case_type", "requirement_ref=line-$i case_type")


@pytest.mark.nightly
def test_a_sound_task_stands_every_check(write_native: WriteNative, check_tasks: CheckTasks) -> None:
    write_native("a", 2)
    checked = check_tasks()
    assert checked.outcomes == dict.fromkeys(
        [
            "lint",
            "oracle",
            "nop",
            "needs-work[round-1]",
            "needs-work[round-2]",
            "deterministic[round-1]",
            "deterministic[round-2]",
            "hermetic[round-1]",
            "hermetic[round-2]",
            "clean",
            "active[line-1]",
            "active[line-2]",
            "cheat[hard-coded]",
            "cheat[exit-zero]",
            "cheat[patched-assert]",
            "cheat[shadowed-tests]",
            "cheat[stubs]",
            "cheat[shadowed-pytest]",
            "cheat[shadowed-modules]",
            "under-load",
            "starter-clean",
            "time",
        ],
        "passed",
    )
    assert checked.session.exit_status == 0
    assert checked.warnings == []


def test_a_sound_task_with_a_test_sh_does_too(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    solve = {index: f"#!/bin/bash\necho line-{index} >> log.txt" for index in (1, 2)}
    task = write_task("a", 2, solve=solve, test={1: naming(1), 2: naming(2)})
    for script in task.rglob("*.sh"):
        script.chmod(0o755)
    checked = check_tasks()
    assert checked.outcomes == dict.fromkeys(
        [
            "lint",
            "oracle",
            "nop",
            "needs-work[round-1]",
            "needs-work[round-2]",
            "deterministic[round-1]",
            "deterministic[round-2]",
            "hermetic[round-1]",
            "hermetic[round-2]",
            "clean",
            "active",
            "cheat[hard-coded]",
            "cheat[exit-zero]",
            "cheat[patched-assert]",
            "cheat[shadowed-tests]",
            "cheat[stubs]",
            "cheat[shadowed-pytest]",
            "cheat[shadowed-modules]",
            "under-load",
            "starter-clean",
            "time",
        ],
        "passed",
    )


def test_oracle_nop_and_needs_work_find_rounds_that_their_suites_do_not_fit(
    write_task: WriteTask, check_tasks: CheckTasks
) -> None:
    write_task("unmet", 2, solve={2: "true"})
    write_task("silent", 1, test={1: "echo half done"})
    write_task("given", 2, test={1: "echo 1 > /logs/verifier/reward.txt", 2: suite_up_to(1)})
    write_task("needy", 2, workdir={2: {"setup.sh": "test -e log.txt"}})
    # Without oracle, the first check that meets a cause fails by it.
    write_task("lone", 1, solve={1: "true"})
    checked = check_tasks(
        *ids(
            unmet="oracle needs-work hermetic deterministic",
            silent="oracle deterministic",
            given="nop needs-work",
            needy="oracle nop",
            lone="needs-work hermetic",
        )
    )

    unmet = OfTask(checked.session, "unmet")
    skip = "cannot be checked, see oracle: round-2 does not pass with its solution: 1 of 2 cases failed"
    assert unmet.messages == {
        "oracle": "round-2 does not pass: 1 of 2 cases failed\n  has-line-2: line-1",
        "needs-work[round-2]": skip,
        "hermetic[round-2]": skip,
    }
    assert [name for name, outcome in unmet.outcomes.items() if outcome == "failed"] == ["oracle"]
    assert unmet.outcomes["deterministic[round-2]"] == "passed"

    missing = (
        "test.sh wrote no reward; "
        "it has to write a number from 0 to 1 to /logs/verifier/reward.txt or /logs/verifier/reward.json"
    )
    assert OfTask(checked.session, "silent").messages == {
        "oracle": f"round-1 does not pass: {missing}\ntest.sh ended with exit code 0; its last lines:\nhalf done",
        "deterministic[round-1]": f"cannot be checked, see oracle: round-1 does not pass with its solution: {missing}",
    }

    asks_for_nothing = (
        "passes before its solution was played: either the round asks for nothing new, or no test of it looks"
    )
    assert OfTask(checked.session, "given").messages == {
        "nop": "round-1 passes although nothing was done in any round; test something that the solution brings",
        "needs-work[round-1]": f"the suite of round-1 {asks_for_nothing}",
        "needs-work[round-2]": f"the suite of round-2 {asks_for_nothing}",
    }

    # That nothing was done is no mistake where a later round needs what is missing.
    assert OfTask(checked.session, "needy").outcomes == {"oracle": "passed", "nop": "passed"}

    lone = OfTask(checked.session, "lone")
    cause = "round-1 does not pass with its solution: 1 of 1 cases failed"
    assert lone.outcomes == {"needs-work[round-1]": "failed", "hermetic[round-1]": "skipped"}
    assert lone.messages == {
        "needs-work[round-1]": f"cannot be checked: {cause}",
        "hermetic[round-1]": f"cannot be checked, see needs-work[round-1]: {cause}",
    }


@pytest.mark.nightly
def test_oracle_says_how_to_retire_what_a_later_round_contradicts(
    write_native: WriteNative, check_tasks: CheckTasks
) -> None:
    task = write_native("a", 2, solve={2: "echo line-2 > log.txt"})
    (message,) = check_tasks("-koracle").messages.values()
    marker = f"{task}/steps/round-1/tests/test_line_1.py:3"
    assert message.startswith(
        "round-2 does not pass: 1 of 2 cases failed\nrequirement line-1, required since round-1, "
    )
    assert f'retire it with retired="round-2". In {marker} write:\n    @pytest.mark.requirement("line-1"' in message


def test_oracle_names_the_test_and_the_solution_of_a_case_that_fails_in_its_own_round(
    write_native: WriteNative, check_tasks: CheckTasks
) -> None:
    task = write_native("a", 3, solve={3: "echo lime-3 >> log.txt"})
    (message,) = check_tasks(f"{CHECK}::oracle").messages.values()
    head, case, told = message.splitlines()
    assert head == "round-3 does not pass: 1 of 3 cases failed"
    assert case.startswith("  round-3/test_line_3.py::test_line_3: ")
    assert told == (
        f"  Correct the solution in {task}/steps/round-3/solution, or the test at "
        f"{task}/steps/round-3/tests/test_line_3.py:3. What was expected shows: "
        f"pytest --evocode-agent=oracle {task} -k round-3"
    )


def test_oracle_warns_of_a_case_that_is_retired_and_that_the_reference_solution_still_passes(
    write_native: WriteNative, check_tasks: CheckTasks
) -> None:
    ends = native_test(1).replace('("line-1")', '("line-1", retired="round-2")')
    mistaken = write_native("mistaken", 2, test={1: ends})
    write_native("contradicted", 2, test={1: ends}, solve={2: "echo line-2 > log.txt"})
    checked = check_tasks(*ids(mistaken="oracle", contradicted="oracle"), "-Wdefault")
    assert OfTask(checked.session, "mistaken").outcomes == {"oracle": "passed"}
    assert OfTask(checked.session, "contradicted").outcomes == {"oracle": "passed"}
    (warning,) = checked.warnings
    assert warning.endswith(
        "round-2 retires what its reference solution still passes:\n"
        "  round-1/test_line_1.py::test_line_1\n"
        "  If round-2's request does not contradict it, it is still required: take "
        f'retired="round-2" out in {mistaken}/steps/round-1/tests/test_line_1.py:3.\n'
        "  If it does, the solution of round-2 does not do what is asked for: correct it."
    )


def test_of_cases_that_one_marker_retires_those_that_fail_are_not_to_be_required_again(
    write_native: WriteNative, check_tasks: CheckTasks
) -> None:
    ends = native_test(1).replace('("line-1")', '("line-1", retired="round-2")')
    marker = '@pytest.mark.parametrize("line", ["line-1", "lime-1"])\n'
    test = ends.replace("def test_line_1()", f"{marker}def test_line_1(line)").replace('assert "line-1"', "assert line")
    task = write_native(
        "a", 2, test={1: test}, solve={1: "echo line-1 lime-1 > log.txt", 2: "echo lime-1 line-2 > log.txt"}
    )
    (warning,) = check_tasks(f"{CHECK}::oracle", "-Wdefault").warnings
    assert "\n  round-1/test_line_1.py::test_line_1[lime-1]\n" in warning
    assert "test_line_1[line-1]" not in warning
    place = f"{task}/steps/round-1/tests/test_line_1.py:3"
    assert f"out in {place}, which has it for 1 that fail, too, and give it to those alone.\n" in warning


def test_a_run_is_not_verified_by_what_was_retired(write_native: WriteNative, run_tasks: RunTasks) -> None:
    write_native("a", 2, test={1: native_test(1).replace('("line-1")', '("line-1", retired="round-2")')})
    session = run_tasks()
    assert session.outcomes == {"passed": 2}
    found = session.record().rounds[1].verdict
    assert found is not None
    assert [case.id for case in found.cases] == ["round-2/test_line_2.py::test_line_2"]


def test_a_cause_that_oracle_does_not_see_is_no_reason_to_skip(
    monkeypatch: pytest.MonkeyPatch, write_task: WriteTask, check_tasks: CheckTasks
) -> None:
    """Its pass may be an earlier session's, and the suite one that fails now and then."""

    def answer(self: CheckRunner, check: Check) -> Answer:
        if check.kind == "needs-work":
            raise CannotBeChecked("the suite fails now and then", told_by="oracle")
        return Answer([])

    monkeypatch.setattr(CheckRunner, "answer", answer)
    write_task("a", 2)
    checked = check_tasks("-koracle or needs-work")
    assert checked.outcomes == {
        "oracle": "passed",
        "needs-work[round-1]": "failed",
        "needs-work[round-2]": "skipped",
    }
    assert checked.messages["needs-work[round-1]"] == "cannot be checked: the suite fails now and then"


@pytest.mark.nightly
def test_active_finds_a_requirement_whose_test_asserts_nothing(
    write_native: WriteNative, check_tasks: CheckTasks
) -> None:
    idle = '\n@pytest.mark.requirement("idle")\ndef test_idle():\n    open("log.txt")\n'
    write_native(
        "a", 2, solve={2: "echo line-2 >> log.txt; mkdir src; touch src/b src/a"}, test={2: native_test(2) + idle}
    )
    checked = check_tasks("-kactive")
    assert checked.messages == {
        "active[idle]": "no case of idle fails when the solution of round-2 is undone, file by file; "
        "write a test that notices, or drop it\n"
        "undone: log.txt, src/a, src/b"
    }
    assert list(checked.outcomes) == ["active[line-1]", "active[line-2]", "active[idle]"]


def test_active_finds_a_requirement_that_cases_of_a_test_sh_name_and_warns_where_none_does(
    write_task: WriteTask, check_tasks: CheckTasks
) -> None:
    idle = "echo CASE_RESULT case_id=idle origin_step=round-2 requirement_ref=idle status=success\n"
    write_task("idle", 2, test={1: naming(1), 2: idle + naming(2)})
    write_task("breaks-off", 1, test={1: "cat log.txt || exit\n" + naming(1)})
    write_task("unnamed", 1)
    checked = check_tasks("-kactive", "tasks")
    assert OfTask(checked.session, "idle").messages == {
        "active": "no case of idle fails when the solution of round-2 is undone, file by file; "
        "write a test that notices, or drop it\n"
        "undone: log.txt"
    }
    assert OfTask(checked.session, "breaks-off").messages == {
        "active": "no case of line-1 fails when the solution of round-1 is undone, file by file; "
        "write a test that notices, or drop it\n"
        "undone: log.txt (test.sh wrote no reward; "
        "it has to write a number from 0 to 1 to /logs/verifier/reward.txt or /logs/verifier/reward.json)"
    }
    assert OfTask(checked.session, "unnamed").outcomes == {"active": "passed"}
    assert checked.warnings == ["no case of a test.sh names a requirement that comes with its round, so none was tried"]


@pytest.mark.nightly
def test_active_undoes_what_a_solution_deleted_and_files_beyond_count(
    write_task: WriteTask, check_tasks: CheckTasks
) -> None:
    cases = "".join(
        f"{condition} && status=success || status=fail\n"
        f"echo CASE_RESULT case_id={id} origin_step=round-1 requirement_ref={id} status=$status\n"
        for id, condition in (("deleted", "test ! -e old"), ("hidden", "test -e .d/f99"))
    )
    write_task(
        "a",
        1,
        solve={1: "echo line-1 > log.txt; rm old; mkdir .d; touch .d/f{01..99}"},
        workdir={1: {"old": "to be deleted"}},
        test={1: cases + naming(1)},
    )
    assert check_tasks("-kactive").outcomes == {"active": "passed"}


@pytest.mark.nightly
def test_time_finds_a_suite_and_a_build_that_take_more_than_a_third_of_their_limits(
    write_task: WriteTask, check_tasks: CheckTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_evocode.checks.machine_load.Slowdown.factor", 1.0)
    write_task(
        "a",
        2,
        toml="environment.build_timeout_sec = 5.5",
        dockerfile=f"{DOCKERFILE}RUN sleep 2\n",
        test={2: f"sleep 1\n{suite_up_to(2)}"},
        step={2: "verifier.timeout_sec = 2.5"},
    )
    (message,) = check_tasks("-ktime").messages.values()
    idle = "while a fixed piece of work took 1.0 times as long as on an idle machine, and slower machines may exceed it"
    assert re.sub(r"took [1-9]\.\d s", "took T s", message) == (
        f"the suite of round-2 took T s, more than a third of its limit of 2.5 s, {idle}; "
        "make it quicker, or raise timeout_sec of [verifier]\n"
        f"building the image took T s, more than a third of its limit of 5.5 s, {idle}; "
        "make it quicker, or raise build_timeout_sec of [environment]"
    )


# Tasks that cannot be played.


def test_tasks_that_cannot_be_played_are_told_apart_and_lint_shows_what_their_files_alone_show(
    write_task: WriteTask, check_tasks: CheckTasks
) -> None:
    rooted = write_task("rooted", 1, dockerfile="FROM python:3.11-slim-bookworm\n")
    unreadable = write_task("unreadable", 2, toml="timeout = 3\nagent = 3")
    write_task("unbuildable", 1, dockerfile=f"{DOCKERFILE}RUN echo broken && false\n")
    checked = check_tasks(*ids(rooted="lint starter-clean", unbuildable="oracle nop time"), "tasks/unreadable")
    assert checked.session.exit_status == 1

    lint = "does not name its interpreter; write #!/bin/bash into its first line and chmod +x it"
    assert OfTask(checked.session, "rooted").messages == {
        "lint": f"{rooted}/steps/round-1/solution/solve.sh:1: {lint}\n{rooted}/steps/round-1/tests/test.sh:1: {lint}",
        "starter-clean": f"cannot be checked: {rooted}/environment/Dockerfile: agents work in /, "
        "and all of the system is their workspace; give them a directory by WORKDIR",
    }

    # There is no other check of it.
    assert OfTask(checked.session, "unreadable").outcomes == {"lint": "failed"}
    (message,) = OfTask(checked.session, "unreadable").messages.values()
    assert message.startswith(f"{unreadable}/task.toml:1: timeout: unknown key; known here: agent, ")

    # An image that cannot be built is an error, and no finding.
    unbuildable = OfTask(checked.session, "unbuildable")
    assert unbuildable.outcomes == {"oracle": "error", "nop": "skipped", "time": "skipped"}
    assert "broken" in unbuildable.messages["oracle"]
    skip = f"cannot be checked, see oracle: {unbuildable.messages['oracle'].splitlines()[0]}"
    assert unbuildable.messages["nop"] == unbuildable.messages["time"] == skip


@pytest.mark.parametrize(
    ("solve", "step", "cause"),
    [
        (
            "echo is broken; exit 3",
            "",
            "solve.sh: the reference solution ended with exit code 3; correct it. Its last lines:\nis broken",
        ),
        (
            "sleep 60",
            "agent.timeout_sec = 0.5",
            "solve.sh: the reference solution of round-2 did not end within 1.5 s "
            "(a check waits 3 times as long as an agent may take), and the agent's limit is 0.5 s; "
            "make it quicker, or raise timeout_sec of [agent]",
        ),
        (None, "", "solve.sh: the oracle runs this file, which does not exist; write it"),
    ],
    ids=["fails", "hangs", "missing"],
)
@pytest.mark.matrix
@pytest.mark.nightly
def test_where_a_solution_breaks_off_the_rounds_before_are_checked(
    write_task: WriteTask, check_tasks: CheckTasks, solve: str | None, step: str, cause: str
) -> None:
    task = write_task("a", 3, solve={2: solve}, step={2: step}, test={1: naming(1)})
    checked = check_tasks("--deselect", f"{CHECK}::lint")
    assert {name for name, outcome in checked.outcomes.items() if outcome == "passed"} == {
        "nop",
        "needs-work[round-1]",
        "deterministic[round-1]",
        "hermetic[round-1]",
    }
    cause = f"{task}/steps/round-2/solution/{cause}"
    assert [name for name, outcome in checked.outcomes.items() if outcome == "failed"] == ["oracle"]
    messages = checked.messages
    assert messages.pop("oracle") == cause
    assert set(messages.values()) == {f"cannot be checked, see oracle: {cause.splitlines()[0]}"}


def test_a_run_of_a_solution_that_ends_without_a_word_names_the_check(
    write_task: WriteTask, run_tasks: RunTasks, check_tasks: CheckTasks
) -> None:
    write_task("a", 1, solve={1: "read answer"})
    ended = "the reference solution ended with exit code 1; correct it. Its last lines:\n(no output"
    assert f"{ended}; pytest --evocode-check TASK -k oracle says more)" in run_tasks("tasks").text
    assert f"{ended})" in check_tasks(f"{CHECK}::oracle").messages["oracle"]


def test_a_solution_that_is_too_slow_is_told_with_both_times(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    write_task("a", 1, solve={1: "sleep 0.8; echo line-1 > log.txt"}, step={1: "agent.timeout_sec = 0.5"})
    message = check_tasks(f"{CHECK}::oracle").messages["oracle"]
    found = re.search(r"solution/solve.sh: the reference solution of round-1 took (.*) s, and (.*); make it", message)
    assert found is not None
    assert 0.8 <= float(found[1]) < 1.5
    assert found[2] == "the agent's limit is 0.5 s"


READING = "#!/bin/bash\nset -e\necho begun\n\nread -r answer\necho done\n"


@pytest.mark.parametrize("env", ["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
@pytest.mark.matrix
def test_a_script_that_reads_its_stdin_is_told_so_with_the_line(
    write_task: WriteTask, check_tasks: CheckTasks, env: str
) -> None:
    advice = "reads its stdin, where there is nothing; give it its input, as by `< FILE` or a here-document"
    task = write_task("a", 2, solve={2: READING})
    told, *usual = check_tasks(f"{CHECK}::oracle", env=env).messages["oracle"].splitlines()
    solve = task / "steps/round-2/solution/solve.sh"
    assert told == f"{solve}:5: {advice}"
    assert usual[0] == f"{solve}: the reference solution ended with exit code 1; correct it. Its last lines:"

    task = write_task("b", 1, test={1: READING})
    lines = check_tasks("tasks/b/task.toml::check::oracle", env=env).messages["oracle"].splitlines()
    assert lines[0].startswith("round-1 does not pass: test.sh wrote no reward")
    assert lines[-1] == f"{task}/steps/round-1/tests/test.sh:5: {advice}"


def test_a_fixture_that_is_not_there_is_one_line_for_all_rounds(
    write_native: WriteNative, check_tasks: CheckTasks
) -> None:
    task = write_native("a", 2, test={1: native_test(1) + "\n\ndef test_more(evocode_rund):\n    pass\n"})
    path = task / "steps/round-1/tests/test_line_1.py"
    line = path.read_text().splitlines().index("def test_more(evocode_rund):") + 1
    said = "fixture 'evocode_rund' not found, used by test_more; known: evocode_round"
    assert check_tasks(f"{CHECK}::oracle").messages["oracle"].splitlines() == [
        f"round-1 does not pass: {path}:{line}: {said}",
        "round-2 does not pass for the same reason as round-1",
    ]


@pytest.mark.nightly
def test_an_environment_that_goes_away_is_an_error_of_what_it_was_needed_for(
    monkeypatch: pytest.MonkeyPatch, write_task: WriteTask, check_tasks: CheckTasks
) -> None:
    play = OracleAgent.run_round

    def run_round(self: OracleAgent, context: RoundContext) -> RoundTranscript:
        if context.round.index == 2:
            context.environment.stop()
        return play(self, context)

    monkeypatch.setattr(OracleAgent, "run_round", run_round)
    write_task("a", 2)
    checked = check_tasks("-koracle or nop or needs-work")
    assert checked.outcomes == {
        "oracle": "error",
        "nop": "passed",
        "needs-work[round-1]": "passed",
        "needs-work[round-2]": "skipped",
    }
    assert "sandbox" in checked.messages["oracle"]
    checked.session.lacks("*Traceback*")


def test_suites_that_run_in_place_have_the_checks_that_need_no_kept_state(
    write_task: WriteTask, check_tasks: CheckTasks
) -> None:
    write_task("a", 2, toml='[metadata.evocode]\nverify_in = "in-place"')
    checked = check_tasks("--deselect", f"{CHECK}::lint", "-v")
    assert checked.outcomes == dict.fromkeys(["oracle", "nop", "starter-clean", "time"], "passed")

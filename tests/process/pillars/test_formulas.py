"""Every published formula, on trajectories made by hand whose value is computed in the comment."""

from __future__ import annotations

import pytest

from pytest_evocode.process.attempts import RoundDeclaration, score_rounds
from pytest_evocode.process.pillars.planning import kendall_tau_b
from pytest_evocode.process.pillars.recovery import recovery_decay
from pytest_evocode.process.protocols import NOT_EXECUTED, ExecutedMeasures
from pytest_evocode.process.scores.rigor_score import PARTS
from pytest_evocode.process.trajectory.reader import TaskContext
from pytest_evocode.tasks import DeclaredRequirement
from pytest_evocode.trajectories.diffs import unified_diff
from tests.process.trajectories import (
    BUDGET,
    FAILED,
    INSTRUCTION,
    LEDGER,
    PLAN,
    REPORT,
    TESTS,
    Recording,
    activity_of,
    part,
    score,
)

# Planning fidelity.

COMMIT = "Commit every change by itself."


def test_a_plan_document_before_the_first_edit_creates_a_plan() -> None:
    process = score(Recording().write("notes.md", PLAN).bash("edit", changes={"ledger.py": BUDGET}))
    assert part(process, "pf", "PAC") == 1


def test_the_same_plan_in_a_message_is_worth_half() -> None:
    process = score(Recording().say(PLAN).bash("edit", changes={"ledger.py": BUDGET}))
    assert part(process, "pf", "PAC") == 0.5


def test_a_list_in_the_agents_own_planning_tool_is_a_plan_of_its_own() -> None:
    todos = [{"content": "Read monthly limits with parse_budget()"}, {"content": "Report overdrafts of the budget"}]
    process = score(Recording().call("TodoWrite", {"todos": todos}).bash("edit", changes={"ledger.py": BUDGET}))
    assert part(process, "pf", "PAC") == 1


def test_a_plan_after_the_first_edit_is_none() -> None:
    process = score(Recording().bash("edit", changes={"ledger.py": BUDGET}).write("plan.md", PLAN))
    assert (part(process, "pf", "PAC"), part(process, "pf", "DQ"), part(process, "pf", "PEA")) == (0, 0, None)
    assert process.pillars["pf"].value == 0  # (0.30 * 0 + 0.35 * 0) / 0.65


def test_a_name_makes_no_plan() -> None:
    # Fewer than 50 characters, and then enough that say nothing of the task.
    for text in (
        "budget limits overdrafts\n",
        "We will do everything that is needed as well as we can, step by step.\n",
    ):
        process = score(Recording().write("plan.md", text).bash("edit", changes={"ledger.py": BUDGET}))
        assert part(process, "pf", "PAC") == 0


def test_a_document_that_was_asked_for_is_no_plan() -> None:
    recording = Recording("Explain the budget of the ledger, its monthly limits and overdrafts, in GUIDE.md.")
    process = score(recording.write("GUIDE.md", PLAN).bash("edit", changes={"ledger.py": BUDGET}))
    assert part(process, "pf", "PAC") == 0


@pytest.mark.parametrize(
    ("plan", "quality"),
    [
        # One block.
        ("I will read the monthly limits with `parse_budget()` and then report overdrafts in ledger.py.", 1 / 3),
        # Listed, and the second names nothing.
        ("Plan:\n1. Read limits with `parse_budget()`\n2. Report every overdraft of the monthly budget\n", 2 / 3),
        # Listed, and each names one thing that is there.
        (PLAN, 1),
        # What is named nowhere else says nothing of the work.
        (
            "The monthly budget limits:\n1. Call `frobnicate()`\n2. Report `overdrafts()` in `xyzzy.py`\n",
            2 / 3,
        ),
        # Two files at once.
        ("Budget, overdrafts, limits:\n1. Change ledger.py and report.py\n2. Run `pytest` on ledger.py\n", 2 / 3),
    ],
)
def test_decomposition_is_better_the_finer_it_is(plan: str, quality: float) -> None:
    process = score(Recording().write("plan.md", plan).bash("edit", changes={"ledger.py": REPORT}))
    assert part(process, "pf", "DQ") == pytest.approx(quality)


def test_a_plan_that_was_followed_is_aligned() -> None:
    # Steps 1, 2, 3 begin in calls 1, 2, 3: tau-b = 1, (1 + 1) / 2 = 1.
    recording = Recording().write("plan.md", PLAN)
    recording.bash("a", changes={"ledger.py": BUDGET}).bash("b", changes={"ledger.py": REPORT})
    process = score(recording.bash("pytest", "1 passed in 0.10s"))
    assert part(process, "pf", "PEA") == 1
    assert process.pillars["pf"].value == pytest.approx(1)  # 0.30 * 1 + 0.35 * 1 + 0.35 * 1


def test_a_plan_that_was_done_backwards_is_not_aligned() -> None:
    # Step 3, then 2, then 1: tau-b = -1, (-1 + 1) / 2 = 0.
    only_report = REPORT.replace(BUDGET, LEDGER)
    recording = Recording().write("plan.md", PLAN).bash("pytest", "1 passed in 0.10s")
    recording.bash("b", changes={"ledger.py": only_report}).bash("a", changes={"ledger.py": REPORT})
    process = score(recording)
    assert part(process, "pf", "PEA") == 0
    assert process.pillars["pf"].value == pytest.approx(0.65)  # 0.30 * 1 + 0.35 * 1 + 0.35 * 0


def test_a_plan_of_which_one_step_can_be_found_has_no_alignment() -> None:
    plan = "Budget, limits, overdrafts:\n1. Write `parse_budget()`\n2. Write `warn()`\n"
    process = score(Recording().write("plan.md", plan).bash("a", changes={"ledger.py": BUDGET}))
    assert part(process, "pf", "PEA") is None
    # PAC 1, DQ 2/3 because warn() is nowhere; (0.30 * 1 + 0.35 * 2/3) / 0.65 = 0.8205
    assert process.pillars["pf"].value == pytest.approx(0.8205, abs=1e-4)


@pytest.mark.parametrize(
    ("left", "right", "tau"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 4], 1),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1),
        # One of six pairs is the wrong way round: (5 - 1) / 6.
        ([1, 2, 3, 4], [1, 2, 4, 3], 2 / 3),
        # One tie on the right: 5 concordant of 6, (5 - 0) / sqrt(6 * 5).
        ([1, 2, 3, 4], [1, 2, 2, 3], 5 / 30**0.5),
        # All tied on the right: nothing can be said.
        ([1, 2, 3], [5, 5, 5], None),
    ],
)
def test_kendalls_tau_b(left: list[float], right: list[float], tau: float | None) -> None:
    found = kendall_tau_b(left, right)
    assert found is None if tau is None else found == pytest.approx(tau)


# Verification coverage.


def test_a_test_that_is_about_everything_is_about_nothing() -> None:
    requirements = tuple(DeclaredRequirement(id=f"r-{number}", text=f"Rule {number}.") for number in range(1, 5))
    for most, expected in ((3, 3 / 4), (4, 0)):
        name = "_".join(f"r_{number}" for number in range(1, most + 1))
        text = TESTS.replace("test_limits_are_read", f"test_{name}")
        recording = Recording().bash("edit", changes={"ledger.py": BUDGET}).write("tests/test_budget.py", text)
        assert part(score(recording, RoundDeclaration(requirements=requirements)), "vc", "RT") == expected


@pytest.mark.parametrize(
    "check",
    [
        "assert parse_budget('a 1') == {'a': '1'}, 'currencies are converted at the daily rate, r-3'",
        "unittest.TestCase().assertEqual(parse_budget('a 1'), {'a': '1'}, 'currencies at the daily rate, r-3')",
        "unittest.TestCase().assertTrue(parse_budget('a 1'), msg='currencies converted at the daily rate, r-3')",
        "print('currencies are converted at the daily rate, r-3')\n    assert parse_budget('a 1')",
    ],
)
def test_a_message_traces_to_no_requirement(check: str) -> None:
    requirements = (DeclaredRequirement(id="r-3", text="Currencies are converted at the daily rate."),)
    text = f"import unittest\nfrom ledger import parse_budget\n\n\ndef test_it():\n    {check}\n"
    recording = Recording().bash("edit", changes={"ledger.py": BUDGET}).write("tests/test_budget.py", text)
    assert part(score(recording, RoundDeclaration(requirements=requirements)), "vc", "RT") == 0


def test_tests_are_counted_for_what_they_import_and_call() -> None:
    # parse_budget is imported and called, overdrafts is not: 1 / 2.
    recording = Recording().bash("edit", changes={"ledger.py": REPORT}).write("tests/test_budget.py", TESTS)
    assert part(score(recording), "vc", "TCR") == 0.5


def test_a_test_that_asserts_nothing_covers_nothing() -> None:
    text = TESTS.replace('assert parse_budget("food 100") == {"food": "100"}', 'parse_budget("food 100")')
    recording = Recording().bash("edit", changes={"ledger.py": BUDGET}).write("tests/test_budget.py", text)
    assert part(score(recording), "vc", "TCR") == 0


def test_requirements_are_traced_by_id_or_by_their_words() -> None:
    requirements = (
        DeclaredRequirement(id="limits", text="Every account has at most one entry."),
        DeclaredRequirement(id="r-2", text="Overdrafts of a month are reported."),
        DeclaredRequirement(id="r-3", text="Currencies are converted at the daily rate."),
    )
    text = TESTS + "\n\ndef test_overdraft_in_a_month():\n    assert parse_budget('') == {}\n"
    recording = Recording().bash("edit", changes={"ledger.py": BUDGET}).write("tests/test_budget.py", text)
    process = score(recording, RoundDeclaration(requirements=requirements))
    assert part(process, "vc", "RT") == pytest.approx(2 / 3)
    # TCR 1 of 1, RT 2/3, dC not executed: (0.35 * 1 + 0.35 * 2/3) / 0.70 = 0.8333
    assert process.pillars["vc"].value == pytest.approx(0.8333, abs=1e-4)
    shown = [f"{each.what}: {each.quote}" for each in process.pillars["vc"].parts["RT"].evidence]
    assert f"limits: traced to by tests/test_budget.py:4 test_limits_are_read: {requirements[0].text}" in shown


def test_tests_that_were_not_executed_are_not_believed() -> None:
    # What they say may hold for any product. So may what is not written: an attempt without tests is not told apart.
    for played in (Recording(), Recording().write("tests/test_budget.py", TESTS)):
        process = score(played.bash("edit", changes={"ledger.py": BUDGET}), executed=ExecutedMeasures())
        assert (process.pillars["vc"].value, process.pillars["tad"].value) == (None, None)
        for measure in (process.pillars["vc"].parts["TCR"], process.pillars["vc"].parts["RT"]):
            assert measure.reason == f"which tests can fail is not known: {NOT_EXECUTED}"


@pytest.mark.parametrize("path", ["tests/test_budget.rb", "tests/test_budget.py"])
def test_tests_that_nobody_can_read_are_none_beside_a_product_that_can_be_read(path: str) -> None:
    played = Recording().bash("edit", changes={"ledger.py": BUDGET}).write(path, "def test_a(:\n")
    process = score(played, RoundDeclaration(requirements=(DeclaredRequirement(id="limits", text="Limits."),)))
    values = [part(process, "vc", "TCR"), part(process, "vc", "RT"), part(process, "tad", "TAD")]
    assert values == [0, 0, 0]


def test_tests_in_the_language_of_the_product_that_cannot_be_read_have_no_value() -> None:
    played = Recording().write("budget.rb", "def limits\nend\n").write("tests/test_budget.rb", "it 'adds' do\nend\n")
    process = score(played, RoundDeclaration(requirements=(DeclaredRequirement(id="limits", text="Limits."),)))
    values = [part(process, "vc", "TCR"), part(process, "vc", "RT"), part(process, "tad", "TAD")]
    assert values == [None, None, None]


# Recovery efficiency.


@pytest.mark.parametrize(("cycles", "value"), [(0, 1), (1, 0.833), (2, 0.714), (5, 0.5)])
def test_recovery_decays_with_the_number_of_cycles(cycles: int, value: float) -> None:
    assert recovery_decay(cycles) == pytest.approx(value, abs=5e-4)


def test_without_a_failure_recovery_is_full() -> None:
    process = score(Recording().bash("edit", changes={"ledger.py": BUDGET}).bash("pytest", "1 passed in 0.10s"))
    assert [part(process, "re", name) for name in PARTS["re"]] == [1, 1, 1]


def test_where_nothing_was_run_there_is_no_recovery() -> None:
    recording = Recording().bash("pytest", "1 passed in 0.10s").bash("edit", changes={"ledger.py": BUDGET})
    recording.bash("python -m unittest", "Ran 0 tests in 0.000s\n\nOK")
    process = score(recording)
    assert [part(process, "re", name) for name in PARTS["re"]] == [None, None, None]
    assert not process.ran


def test_what_failed_before_the_first_edit_is_the_state_that_was_given() -> None:
    recording = Recording().bash("pytest", FAILED, 1).bash("edit", changes={"ledger.py": BUDGET})
    assert part(score(recording.bash("pytest", "1 passed in 0.10s")), "re", "f(RAC)") == 1
    # A test that needs what is not there fails from the first to the last run.
    offline = "FAILED tests/test_net.py::test_fetch - OSError\n1 failed, 3 passed in 0.10s"
    recording = Recording().bash("pytest", offline, 1).bash("edit", changes={"ledger.py": BUDGET})
    assert part(score(recording.bash("pytest", offline, 1)), "re", "f(RAC)") == 1


def test_a_scratch_script_that_breaks_starts_no_cycle() -> None:
    crash = 'Traceback (most recent call last):\n  File "/app/try.py", line 1, in <module>\nNameError: name'
    recording = Recording().bash("edit", changes={"ledger.py": BUDGET, "try.py": "print(x)\n"})
    process = score(recording.bash("python try.py", crash, 1).bash("pytest", "1 passed in 0.10s"))
    assert part(process, "re", "f(RAC)") == 1


def test_attempts_at_the_same_lines_are_one_strategy() -> None:
    # One cycle with three attempts: lines 5-6 twice, then line 1-2: 2 distinct / 3.
    recording = Recording().bash("edit", changes={"ledger.py": BUDGET}, tokens=0)
    recording.bash("pytest", FAILED, 1, tokens=100)
    recording.bash("a", changes={"ledger.py": BUDGET.replace("split()", "split(' ')")}, tokens=100)
    recording.bash("pytest", FAILED, 1, tokens=100)
    recording.bash("b", changes={"ledger.py": BUDGET.replace("split()", "split(None)")}, tokens=100)
    recording.bash("pytest", FAILED, 1, tokens=100)
    recording.bash("c", changes={"ledger.py": REPORT.replace("sum(entries)", "sum(entries, 0)")}, tokens=200)
    recording.bash("pytest", "1 passed in 0.10s", tokens=200)
    process = score(recording)
    assert part(process, "re", "f(RAC)") == pytest.approx(1 / 1.2)
    assert part(process, "re", "SD") == pytest.approx(2 / 3)
    # Two failed attempts of two steps, 400 of 900 tokens: 1 - 4/9.
    assert part(process, "re", "1-TWR") == pytest.approx(5 / 9)
    # 0.30 * 0.8333 + 0.35 * 0.6667 + 0.35 * 0.5556 = 0.6778
    assert process.pillars["re"].value == pytest.approx(0.6778, abs=1e-4)


def test_trying_again_without_an_edit_is_an_attempt_and_no_strategy() -> None:
    recording = Recording().bash("edit", changes={"ledger.py": BUDGET})
    recording.bash("pytest", FAILED, 1).bash("pytest", FAILED, 1)
    recording.bash("a", changes={"ledger.py": REPORT}).bash("pytest", "1 passed in 0.10s")
    assert part(score(recording), "re", "SD") == 0.5


def test_a_failure_that_is_left_alone_has_no_strategy() -> None:
    recording = Recording().bash("edit", changes={"ledger.py": BUDGET}).bash("pytest", FAILED, 1)
    assert part(score(recording), "re", "SD") == 0


def test_without_tokens_there_is_no_waste_ratio() -> None:
    recording = Recording().bash("edit", changes={"ledger.py": BUDGET}).bash("pytest", FAILED, 1)
    process = score(recording.bash("b", changes={"ledger.py": REPORT}).bash("pytest", "1 passed in 0.10s"))
    assert part(process, "re", "1-TWR") is None
    # (0.30 * 0.8333 + 0.35 * 1) / 0.65 = 0.9231
    assert process.pillars["re"].value == pytest.approx(0.9231, abs=1e-4)


def test_what_the_product_did_not_cause_starts_no_cycle() -> None:
    recording = Recording().bash("edit", changes={"ledger.py": BUDGET})
    recording.bash("pytset", "bash: line 1: pytset: command not found", 127)
    recording.bash("pytest", "bash: line 1: pytest: command not found", 127)
    recording.bash("python -m pytest", "/usr/bin/python: No module named pytest", 1)
    recording.bash("pytest tests/test_no.py", "ERROR: file or directory not found: tests/test_no.py", 4)
    recording.bash("grep nothing ledger.py", "", 1)
    recording.bash("pytest tests", "1 passed in 0.10s")
    assert part(score(recording), "re", "f(RAC)") == 1


# Atomic transitions, assertions, exploration.


def test_commits_count_for_what_they_hold_and_what_they_say() -> None:
    recording = Recording(f"{INSTRUCTION} {COMMIT}").bash("a", changes={"ledger.py": BUDGET})
    recording.bash("git commit -am 'Read the monthly limits of a budget'", "[main 1234567] Read")
    recording.bash("b", changes={"ledger.py": REPORT}).bash("git commit -am wip", "[main 1234568] wip")
    # (0.5 + 0.5 + 0.5 + 0) / 2: each is one change, and only the first says what.
    assert part(score(recording), "ati", "CH") == 0.75


def test_a_commit_in_another_language_is_left_out() -> None:
    recording = Recording(f"{INSTRUCTION} {COMMIT}").bash("a", changes={"ledger.py": BUDGET})
    recording.bash("git commit -am 'Budgets einlesen, über Monate'", "[main 1234567] Budgets")
    assert part(score(recording), "ati", "CH") is None
    assert part(score(recording.bash("b", changes={"ledger.py": REPORT})), "ati", "CH") == 0


def test_hygiene_is_measured_where_the_task_asks_for_commits() -> None:
    for request in (INSTRUCTION, f"{INSTRUCTION} Do not commit anything.", f"{INSTRUCTION} I commit it myself."):
        recording = Recording(request).bash("a", changes={"ledger.py": BUDGET})
        # Looking is free.
        recording.bash("git status; git diff", "On branch main")
        assert part(score(recording), "ati", "CH") is None
    asked = Recording(f"{INSTRUCTION} {COMMIT}").bash("a", changes={"ledger.py": BUDGET})
    assert part(score(asked), "ati", "CH") == 0


@pytest.mark.parametrize(
    "refusal",
    [
        "fatal: not a git repository (or any of the parent directories): .git",
        "fatal: detected dubious ownership in repository at '/app'",
        "fatal: Unable to create '/app/.git/index.lock': Permission denied",
    ],
)
def test_where_there_is_no_repository_of_the_agents_hygiene_is_not_measured(refusal: str) -> None:
    asked = Recording(f"{INSTRUCTION} {COMMIT}").bash("a", changes={"ledger.py": BUDGET})
    asked.bash("git commit -am 'Read the monthly limits of a budget'", refusal, 128)
    assert part(score(asked), "ati", "CH") is None
    asked.bash("git init && git commit -am 'Read the monthly limits of a budget'", "[main 1234567] Read")
    assert part(score(asked), "ati", "CH") == 1


@pytest.mark.parametrize(
    ("body", "density"),
    [
        ("    assert parse_budget('') == {}\n", 0.2),  # 1 / 1 / 5
        ("".join(f"    assert parse_budget('{i} 1') == {{'{i}': '1'}}\n" for i in range(5)), 1),  # 5 / 1 / 5
        ("".join(f"    assert parse_budget('{i} 1') == {{'{i}': '1'}}\n" for i in range(9)), 1),  # no more than 1
        ("    assert True\n    assert 1 == 1\n    assert parse_budget == parse_budget\n", 0),
        ("    x = 1\n    assert x == 1\n    assert len('a') == 1\n    assert (x, 'always')\n", 0),
        ("    assert parse_budget('') == {}\n" * 5, 0.2),  # the same five times is one
    ],
)
def test_assertion_density_counts_what_can_fail(body: str, density: float) -> None:
    text = f"from ledger import parse_budget\n\n\ndef test_budget():\n{body}"
    recording = Recording().bash("a", changes={"ledger.py": BUDGET}).write("tests/test_budget.py", text)
    assert score(recording).pillars["tad"].value == pytest.approx(density)


def test_tests_that_were_there_before_are_not_the_agents() -> None:
    recording = Recording(files={"ledger.py": LEDGER, "tests/test_budget.py": TESTS})
    changed = f"{TESTS}\n\ndef test_nothing():\n    pass\n"
    process = score(recording.bash("a", changes={"ledger.py": BUDGET}).write("tests/test_budget.py", changed))
    assert process.pillars["tad"].value == 0  # 0 assertions in the one test that is new


def test_without_a_test_the_density_is_nought() -> None:
    assert score(Recording().bash("a", changes={"ledger.py": BUDGET})).pillars["tad"].value == 0  # 0 / max(1, 0) / 5


@pytest.mark.parametrize(
    ("added", "counts"),
    [
        ("LIMIT = 3\n", False),
        ("import os\n", False),
        ("def _help():\n    return 3\n", False),
        ("LIMIT = 3\n\n\ndef limit():\n    return LIMIT\n", True),
        ("def limit():\n    return 3\n", True),  # It may be meant for somebody outside.
        ("LIMIT = register()\n", True),
        ("__all__ = ['total']\n", True),
    ],
)
def test_a_name_that_nothing_uses_is_no_edit_of_use(added: str, counts: bool) -> None:
    played = Recording(files={"ledger.py": BUDGET, "other.py": LEDGER}).bash("a", changes={"ledger.py": REPORT})
    process = score(played.bash("b", changes={"other.py": f"{LEDGER}\n\n{added}"}).bash("cat ledger.py", "text"))
    # ledger.py, and other.py where it counts, of these and the one that was read.
    assert process.pillars["ee"].value == pytest.approx(2 / 3 if counts else 1 / 2)
    activity = activity_of(played)
    assert (
        len(activity.working_edits) == len([each for each in activity.state_changes if each.of_product]) == 1 + counts
    )


def test_exploration_is_the_share_of_modified_files() -> None:
    recording = Recording().bash("cat ledger.py a.py | head; sed -n '1,5p' b.py", "text")
    process = score(recording.bash("cat ledger.py", "text").bash("e", changes={"ledger.py": BUDGET}))
    assert process.pillars["ee"].value == 0.25  # ledger.py of {ledger.py} + {ledger.py, a.py, b.py}


# All that is about the way.


@pytest.mark.parametrize("command", ["cp -r /tmp/copy/. .", "python /tmp/bring.py"])
def test_of_work_that_was_made_elsewhere_and_brought_the_way_is_not_known(command: str) -> None:
    # Nobody saw how it came about, in the second round or in the first, which looks good.
    first = Recording().write("notes.md", PLAN).write("ledger.py", BUDGET).bash("pytest", "1 passed in 0.10s")
    second = Recording("Report.", files=first.files, name="round-2")
    change = {"path": "ledger.py", "kind": "modified", "mode": "0644", "diff": unified_diff("", BUDGET, REPORT)}
    action = {"exit_code": 0, "changes": [change]}
    second.call("bash", {"command": command}, action=action).bash("pytest", "1 passed in 0.10s")
    inputs = [(each.input(index), RoundDeclaration()) for index, each in enumerate((first, second), 1)]
    for process in score_rounds(inputs, TaskContext(workdir="/app", originals=lambda path: [LEDGER])):
        assert process.edited
        assert {process.pillars[name].value for name in ("pf", "re", "ati", "ee")} == {None}


def test_work_by_a_script_that_was_written_before_is_seen() -> None:
    script = f"open('ledger.py', 'w').write({BUDGET!r})\n"
    change = {"path": "ledger.py", "kind": "modified", "mode": "0644", "diff": unified_diff("", LEDGER, BUDGET)}
    played = Recording().call("bash", {"command": f"cat > /tmp/bring.py <<'EOF'\n{script}EOF"}, action={"exit_code": 0})
    action = {"exit_code": 0, "changes": [change]}
    process = score(played.call("bash", {"command": "python /tmp/bring.py"}, action=action))
    assert process.pillars["ee"].value == 1

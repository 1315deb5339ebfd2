"""Several runs of one suite on the same snapshot, and the verdict that they come to."""

from __future__ import annotations

from dataclasses import replace

from pytest_evocode.results.phases import Phases
from pytest_evocode.results.records import Case, CaseStatus, Repeats, Verdict
from pytest_evocode.verifier import SuiteRun, of_repeated


def run(output: str = "", reward: float = 1.0, *, seconds: float = 1.0, **cases: CaseStatus) -> SuiteRun:
    found = tuple(Case(id=id, status=status) for id, status in cases.items())
    return SuiteRun(output, Verdict(reward=reward, rewards={"reward": reward}, cases=found), seconds=seconds)


def repeats(*runs: SuiteRun) -> Repeats | None:
    verdict = of_repeated(runs).verdict
    assert verdict is not None
    return verdict.repeats


def test_a_suite_that_was_run_once_is_as_it_was() -> None:
    once = run(a="passed")
    assert of_repeated([once]) is once


def test_runs_that_agree_are_counted_and_have_taken_their_time_together() -> None:
    found = of_repeated([run(a="passed", seconds=1), run(a="passed", seconds=2), run(a="passed", seconds=4)])
    assert found.seconds == 7
    assert found.verdict is not None
    assert found.verdict.repeats == Repeats(times=3, passed=3, flaky=False)
    assert found.verdict.flags == ()


def test_phases_are_those_of_all_runs_together() -> None:
    first, second = Phases(waiting=3.0, suite=1.0, suite_began=50.0), Phases(suite=2.5, reading=0.25, suite_began=60.0)
    runs = [replace(run(a="passed"), phases=first), replace(run("", 0.0, a="failed"), phases=second)]
    found = of_repeated(runs).phases
    assert found == Phases(waiting=3.0, suite=3.5, reading=0.25)
    assert found.suite_began == 50.0


def test_a_round_passes_only_if_its_suite_passes_each_time() -> None:
    found = of_repeated([run("1", a="passed"), run("2", 0.0, a="failed", b="passed"), run("3", a="passed")])
    assert (found.output, found.verdict and found.verdict.passed) == ("2", False)
    assert found.verdict is not None
    assert found.verdict.repeats == Repeats(times=3, passed=2, flaky=True, differing=("a", "b"))
    (flag,) = found.verdict.flags
    assert flag.startswith(
        "flaky: the suite passed in 2 of 3 runs on the same workspace, and the worst counts: "
        "a: passed in runs 1 and 3, failed in run 2; b: not there in runs 1 and 3, passed in run 2 "
        "(pytest --evocode-check"
    )


def test_of_runs_with_one_reward_the_one_with_the_fewest_cases_passed_counts() -> None:
    runs = [run("1", 0.0, a="passed", b="failed"), run("2", 0.0, a="failed", b="failed"), run("3", 0.0, a="failed")]
    assert of_repeated(runs).output == "2"


def test_cases_that_differ_make_a_round_flaky_that_passes_each_time() -> None:
    assert repeats(run(a="passed"), run(a="skipped")) == Repeats(times=2, passed=2, flaky=True, differing=("a",))


def test_a_reward_that_differs_is_flaky_without_a_case() -> None:
    assert repeats(run(reward=1.0), run(reward=0.5)) == Repeats(times=2, passed=1, flaky=True)


def test_a_suite_that_ends_in_time_only_now_and_then_is_flaky() -> None:
    late = SuiteRun("", Verdict(reward=0.0, rewards={}, timed_out=True), hang="in test_a")
    found = of_repeated([late, run("", 0.0)])
    assert found.hang == "in test_a"
    assert found.verdict is not None
    assert found.verdict.repeats == Repeats(times=2, passed=0, flaky=True)
    assert "in time: no in run 1, yes in run 2" in found.verdict.flags[0]


def test_a_run_without_a_verdict_leaves_the_round_without_one() -> None:
    found = of_repeated([run(a="passed"), SuiteRun("", None, "pytest was killed"), run(a="passed")])
    assert found.verdict is None
    assert found.fault == "1 of 3 runs of the suite gave no verdict: pytest was killed"
    assert of_repeated([SuiteRun("", None, "gone"), SuiteRun("", None, "gone")]).fault == "gone"


def test_the_cases_that_a_record_names_have_a_bound() -> None:
    many = tuple(Case(id=f"case-{number:03}", status="failed") for number in range(200))
    found = of_repeated([run(), SuiteRun("", Verdict(reward=0.0, rewards={}, cases=many))])
    assert found.verdict is not None
    assert found.verdict.repeats is not None
    assert found.verdict.repeats.differing == tuple(f"case-{number:03}" for number in range(50))
    assert ", and 190 more (pytest" in found.verdict.flags[0]

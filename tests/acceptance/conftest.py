"""Fixtures of whole sessions: tiny tasks, pytest that runs them, and somebody at a terminal."""

from __future__ import annotations

import functools
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.models import import_sdks
from tests.acceptance.sessions import AtTerminal, Checked, CheckTasks, RunTasks, Session
from tests.acceptance.tasks import WriteNative, WriteTask, native_writer, task_writer
from tests.inner_sessions import UNUSED

#: What takes a while, and above the engine or the kind of damage is the same as another one that is not left out.
_BY_NIGHT = (
    "::test_a_session_that_is_played_again_ends_as_it_did[docker]",
    "[anthropic/claude-opus-4-5-docker]",
    "::test_a_single_round_begins_where_the_solutions_before_it_led[docker]",
    "::test_a_damaged_record_of_the_last_round_is_made_anew[docker]",
    "::test_an_attempt_whose_worker_is_lost_goes_on_from_its_last_round[docker]",
    "::test_nothing_is_left_however_a_suite_ends[timeout-docker]",
    "::test_nothing_is_left_however_a_suite_ends[error-docker]",
    "::test_what_is_printed_of_a_kept_fork_has_no_secrets[docker]",
    "::test_the_shell_has_the_suites_user_and_variables[docker]",
    "::test_a_native_suite_has_the_variables_that_are_declared_for_it[fork-suite1-docker]",
    "::test_it_passes_in_docker[script]",
    "::test_a_killed_environment_is_an_error_and_the_attempt_goes_on[turn-root-docker]",
    "::test_a_case_that_depends_on_the_date_is_not_deterministic[docker]",
    "::test_the_examples_pass_as_they_are[docker]",
    "::test_what_an_agent_wrote_before_its_timeout_counts[docker]",
    "::test_junit_properties_are_plain_values[workers]",
    "::test_ctrf_reports_work_beside_it[workers]",
    "::test_a_job_on_github_gets_a_summary[workers]",
    "::test_what_did_not_pass_is_marked_at_its_round_in_the_task[workers]",
    "::test_with_fail_stop_the_first_failed_round_ends_an_attempt[-n2]",
    "::test_single_rounds_begin_where_the_solutions_lead[-n2]",
    "::test_a_chain_from_a_later_round_counts_from_there[-n2]",
    "::test_a_damaged_record_of_an_earlier_round_is_dropped_and_the_attempt_goes_on[empty]",
    "::test_a_damaged_record_of_an_earlier_round_is_dropped_and_the_attempt_goes_on[list]",
    "::test_a_damaged_state_is_left_alone_and_says_what_to_do[empty]",
    "::test_a_damaged_state_is_left_alone_and_says_what_to_do[list]",
    "::test_a_damaged_record_of_an_earlier_round_is_dropped_and_the_attempt_goes_on[other]",
    "::test_a_damaged_state_is_left_alone_and_says_what_to_do[other]",
    "::test_control_c_ends_a_session_with_workers_and_leaves_nothing[--evocode-replay]",
    "::test_control_c_ends_a_session_that_was_started_with_it_ignored[a worker]",
    "::test_a_json_report_has_the_run_with_scores_intervals_and_rounds[workers]",
    "::test_a_run_tells_its_shard_and_what_all_shards_make[workers1]",
    "::test_a_shard_with_nothing_to_do_is_no_failure[workers1]",
    "::test_a_clean_run_of_the_oracle_is_pinned[workers]",
    "::test_an_attempt_stays_on_one_worker_whatever_dist_says[loadscope]",
)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave some tests to the night."""
    if item.nodeid.endswith(_BY_NIGHT):
        item.add_marker("nightly")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of one test alone, empty at first; other tests have the one that all share."""
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def write_task(pytester: pytest.Pytester) -> WriteTask:
    """See :class:`WriteTask`."""
    return task_writer(pytester.path)


@pytest.fixture
def write_native(pytester: pytest.Pytester) -> WriteNative:
    """See :class:`WriteNative`."""
    return native_writer(pytester.path)


@pytest.fixture
def run_tasks(pytester: pytest.Pytester) -> RunTasks:
    """See :class:`RunTasks`."""

    def run(
        *arguments: str,
        agent: str | None = "oracle",
        env: str | None = "sandbox",
        subprocess: bool = False,
        replay: bool = True,
    ) -> Session:
        ours = [f"--evocode-agent={agent}"] if agent else []
        ours += [f"--evocode-env={env}"] if env else []
        ours += ["--evocode-replay"] if agent and replay else []
        start = pytester.runpytest_subprocess if subprocess else pytester.runpytest_inprocess
        return Session(start("-W", "error", *UNUSED, *ours, *arguments), pytester.path)

    return run


@pytest.fixture
def play_tasks(run_tasks: RunTasks) -> RunTasks:
    """As ``run_tasks``, for sessions that may begin with states that earlier ones kept."""
    return functools.partial(run_tasks, replay=False)


@pytest.fixture(scope="session")
def model_sdks() -> None:
    """The SDKs of models, imported once: pytester forgets what a test imports, and the next had second copies.

    Not when tests are collected: they take seconds, and few workers have a test that needs them.
    """
    import_sdks()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a bucket of a server that speaks S3, whose address and keys are in variables."""
    from moto.server import ThreadedMotoServer  # Only with tests that need it: it takes a second.

    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-nobody-0001")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "open-sesame-0002")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    urllib.request.urlopen(urllib.request.Request(f"http://{host}:{port}/attempts", method="PUT")).close()
    yield "s3://attempts/of-a-run"
    running.stop()


@pytest.fixture
def person(pytester: pytest.Pytester) -> Iterator[AtTerminal]:
    """See :class:`AtTerminal`."""
    with AtTerminal(pytester.path) as somebody:
        yield somebody
        if somebody.session is not None and somebody.session.poll() is None:
            somebody.session.kill()
            somebody.session.wait()


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests, so that the image of the tiny tasks is built once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _environment(shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(shared_cache))
    monkeypatch.setenv("COLUMNS", "160")  # Wide enough for whole messages in summaries.
    for name in ("CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def check_tasks(run_tasks: RunTasks) -> CheckTasks:
    """See :class:`CheckTasks`."""

    def check(*arguments: str, env: str = "sandbox", subprocess: bool = False, anew: bool = True) -> Checked:
        tasks = [] if any(argument.startswith("tasks") for argument in arguments) else ["tasks/a"]
        options = ["--evocode-check", "--json-report", "-Wdefault::pytest.PytestWarning"]
        # Tests share a cache, and their tasks are alike.
        options += ["--cache-clear"] if anew and "--lf" not in arguments else []
        return Checked(run_tasks(*options, *arguments, *tasks, agent=None, env=env, subprocess=subprocess))

    return check

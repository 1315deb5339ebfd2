"""What agents wait for because of their model's provider, in whole sessions."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable

import pytest

from tests.acceptance.models import at, in_rounds, solver
from tests.acceptance.sessions import RunTasks
from tests.acceptance.tasks import WriteTask
from tests.model_scripts import Asked, Fail, HangUp, Part, Run, Step
from tests.model_server import ModelServer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]
GPT = "openai/gpt-5"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-tests")


def first_failing(*faults: Part, then: Callable[[Asked], Step]) -> Callable[[Asked], Step]:
    """A script that does as another once it has failed in some ways."""
    left = iter(faults)

    def script(asked: Asked) -> Step:
        fault = next(left, None)
        return fault if fault is not None else then(asked)

    return script


@pytest.mark.nightly
def test_a_wait_for_a_rate_limit_does_not_end_a_turn_that_has_less_time(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    # Models say one thing in each round, for once one was refused the next requests wait for seconds.
    passes = dict.fromkeys((1, 2), "echo 1 > /logs/verifier/reward.txt")
    write_task("a", rounds=2, toml="[agent]\ntimeout_sec = 3.0\n", test=passes)
    faults = Fail(429, retry_after=2), Fail(429, retry_after=2), Fail(503, retry_after=0.2), HangUp()
    with ModelServer(first_failing(*faults, then=in_rounds([], []))) as server:
        session = run_tasks(*at(server, GPT), "--evocode-budget=minutes=0.1", "tasks", agent=None)
    assert session.outcomes == {"passed": 2}
    session.has("held up by model providers: * s (rate limit *, provider *, network *), 4 retries; not counted*")
    first, second = session.record("a", "gpt-5").rounds
    assert first.provider_waits is not None
    assert first.provider_waits.retries == 4
    assert first.provider_waits.seconds["rate limit"] >= 3.9
    assert first.timed_out is None
    assert first.agent_seconds is not None
    assert first.agent_seconds < 3.0
    # Whoever is refused goes slower from then on, in the next round as well.
    assert second.provider_waits is None or set(second.provider_waits.seconds) == {"rate limit"}
    assert not list((session.directory / "evocode-results" / "runs").glob("*.connections"))


@pytest.mark.nightly
def test_a_wait_of_13_seconds_in_a_turn_of_18_of_which_10_are_over_does_not_end_it(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", rounds=1, toml="[agent]\ntimeout_sec = 18.0\n")
    play = in_rounds([Run("sleep 10; echo line-1 >> log.txt")])
    limited = iter([Fail(429, retry_after=13)])

    def script(asked: Asked) -> Step:
        return next(limited, play(asked)) if asked.replies else play(asked)

    with ModelServer(script) as server:
        session = run_tasks(*at(server, GPT), "tasks", agent=None)
    assert session.outcomes == {"passed": 1}
    (only,) = session.record("a", "gpt-5").rounds
    assert only.timed_out is None
    assert only.provider_waits is not None
    assert only.provider_waits.seconds["rate limit"] >= 12.9


@pytest.mark.nightly
def test_eight_workers_under_a_limit_of_60_requests_a_minute_waste_under_a_tenth(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    """The limit is a bucket that holds 60 requests and gains one a second."""
    names = "abcdefgh"
    for name in names:
        write_task(name, rounds=1)
    play = in_rounds([*[Run("true")] * 23, Run("echo line-1 >> log.txt")])
    asked_at: list[float] = []
    refused = 0
    level, last = 60.0, time.monotonic()

    def script(asked: Asked) -> Step:
        nonlocal refused, level, last
        now = time.monotonic()
        level, last = min(60.0, level + now - last), now
        if level < 1:
            refused += 1
            return Fail(429, retry_after=1 - level)
        level -= 1
        asked_at.append(now)
        return play(asked)

    with ModelServer(script) as server:
        session = run_tasks(*at(server, GPT), "-n8", "tasks", agent=None, subprocess=True)
    assert session.outcomes == {"passed": len(names)}
    assert len(asked_at) == 25 * len(names)
    assert asked_at[-1] - asked_at[0] < 1.5 * (len(asked_at) - 60)  # Nor is the limit left unused.
    assert refused < 0.1 * (len(asked_at) + refused)


def test_an_attempt_that_has_to_wait_for_too_long_goes_on_in_a_later_session(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", rounds=2)
    solve, requests = solver(2), itertools.count(1)

    def script(asked: Asked) -> Step:
        # The second reply of the first round is what it comes to wait for.
        return Fail(429, "Slow down", retry_after=90) if next(requests) == 2 else solve(asked)

    with ModelServer(script) as server:
        broken = run_tasks(*at(server, GPT), "-o", "evocode_waiting_minutes=1", "tasks", agent=None)
        assert broken.outcomes == {"errors": 1, "skipped": 1}
        broken.has("*the turn may wait 1 minutes for its model's provider (setting evocode_waiting_minutes)*90 s more*")
        broken.has("*1 attempt is unfinished; continue with --evocode-resume=*")
        asked = len(server.asked)
        session = run_tasks(*at(server, GPT), "--evocode-resume", "tasks", agent=None)
        assert session.outcomes == {"passed": 2}
        assert len(server.asked) == asked + 3  # The reply that was paid for is not asked for again.


@pytest.mark.nightly
def test_workers_share_the_limit_of_connections(write_task: WriteTask, run_tasks: RunTasks) -> None:
    for name in "ab":
        write_task(name, rounds=1)
    solve = solver(1)
    under_way: list[int] = [0, 0]

    class Counting(ModelServer):
        def parts_for(self, asked: Asked) -> list[Part]:
            under_way[0] += 1
            under_way[1] = max(under_way)
            time.sleep(0.1)  # Long enough for others to come meanwhile, if they may.
            try:
                return super().parts_for(asked)
            finally:
                under_way[0] -= 1

    with Counting(solve) as server:
        session = run_tasks(
            *at(server, GPT), "-n2", "-o", "evocode_max_connections=1", "tasks", agent=None, subprocess=True
        )
        assert len(server.asked) == 4
    assert session.outcomes == {"passed": 2}
    assert under_way[1] == 1
    record = session.record("a", "gpt-5").rounds[0]
    assert json.loads(record.model_dump_json())["agent_seconds"] is not None


@pytest.mark.parametrize("setting", ["evocode_max_connections=0", "evocode_waiting_minutes=soon"])
def test_a_setting_that_is_no_such_number_is_refused(setting: str, write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a")
    session = run_tasks("-o", setting, "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    session.result.stderr.fnmatch_lines([f"*-o {setting}: it has to be *"])

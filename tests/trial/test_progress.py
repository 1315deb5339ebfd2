"""A trial says how far it is to whoever asks while it runs."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from pytest_evocode.agents import RoundContext
from pytest_evocode.environments import Engine, Environment
from pytest_evocode.llm.budget import Budget
from pytest_evocode.results.records import Usage
from pytest_evocode.trial.context import Progress, TrialOptions
from pytest_evocode.trial.trial import Trial
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

PASS = "echo 1 > /logs/verifier/reward.txt"


class Watched:
    """Turns that reply once and then ask how far the trial is."""

    def __init__(self) -> None:
        self.trial: Trial
        self.seen: list[Progress | None] = []

    def turn(self, context: RoundContext) -> None:
        """One turn."""
        context.recorder.reply("done", usage=Usage(prompt_tokens=100, completion_tokens=5, cost_usd=0.5, requests=1))
        self.seen.append(self.trial.progress)


def run(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], toml: str = "", *, minutes: float
) -> tuple[Progress, Progress]:
    """What was seen in the turns of two rounds."""
    watched = Watched()
    options = TrialOptions(budget=Budget(minutes=minutes))
    watched.trial = Trial(
        make_task(PASS, PASS, toml=toml), scripted(watched.turn, watched.turn), engine, options=options
    )
    finish(watched.trial)
    first, second = watched.seen
    assert first is not None
    assert second is not None
    assert watched.trial.progress is None
    return first, second


def test_it_knows_the_round_and_what_all_rounds_have_used(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    begun = time.time()
    first, second = run(engine, make_task, finish, scripted, minutes=10)
    assert (first.doing, first.index, first.rounds) == ("working", 1, 2)
    assert (first.turns, first.tokens, first.cost_usd) == (1, 105, 0.5)
    assert (second.doing, second.index, second.rounds) == ("working", 2, 2)
    assert (second.turns, second.tokens, second.cost_usd) == (2, 210, 1.0)
    assert begun <= first.since <= second.since <= time.time()


def test_the_limit_is_the_rounds_or_what_is_left_of_the_budget(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    toml = "[agent]\ntimeout_sec = 60\n"
    assert run(engine, make_task, finish, scripted, toml, minutes=10)[0].limit == 60
    limit = run(engine, make_task, finish, scripted, toml, minutes=0.5)[1].limit
    assert limit is not None
    assert limit < 30


def does(trial: Trial, what: str) -> bool:
    """Whether a trial is at something now."""
    return trial.progress is not None and trial.progress.doing == what


def touches(environment: Environment, path: str) -> bool:
    """Whether a file was made: before a suite in place everything is killed, this too."""
    return environment.exec(f"touch {path}").ok


def test_a_round_is_prepared_before_and_verified_after_the_turn(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    """The setup.sh and the suite take until they were seen at it."""
    files = {"steps/round-1/workdir/setup.sh": "until [ -e go ]; do sleep 0.01; done\n"}
    suite = "until [ -e /tmp/go ]; do sleep 0.01; done\n" + PASS
    toml = '[metadata.evocode]\nverify_in = "in-place"\n'
    trial = Trial(make_task(suite, files=files, toml=toml), scripted("true"), engine)
    seen = []
    with trial:
        environment = trial.wait_environment()
        for doing, go in (("preparing", "/app/go"), ("verifying", "/tmp/go")):
            wait_until(partial(does, trial, doing))
            progress = trial.progress
            assert progress is not None
            seen.append((progress.index, progress.limit))
            wait_until(partial(touches, environment, go))
        assert trial.wait(1).passed
    assert seen == [(1, None), (1, None)]


def test_before_the_first_round_it_starts(engine: Engine, make_task: MakeTask, scripted: type[Scripted]) -> None:
    progress = Trial(make_task(PASS), scripted(), engine).progress
    assert progress is not None
    assert (progress.doing, progress.index, progress.rounds) == ("starting", 0, 1)

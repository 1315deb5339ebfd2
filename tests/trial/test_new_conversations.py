"""``inherit_prior_session = false``: the agent of a round begins a new conversation, where the last one left off."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.environments import Engine
from pytest_evocode.errors import AgentFault
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.trial.trial import Trial, TrialOptions

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask

PASS = "echo 1 > /logs/verifier/reward.txt"
NEW = {3: "inherit_prior_session = false\n"}


class Remembering:
    """Remembers in each round the rounds that it had before, in a list that it adds to."""

    name = "remembering"

    def __init__(self, fails_in: int = 0) -> None:
        self.had: list[int] = []
        self.remembered: dict[int, list[int]] = {}
        self.files = ""
        self._fails_in = fails_in

    def run_round(self, context: RoundContext) -> RoundTranscript:
        index = context.round.index
        if index == self._fails_in:
            raise AgentFault("the model cannot be reached")
        self.remembered[index] = list(self.had)
        self.had.append(index)
        self.files = context.environment.exec(f"echo {index} >> files; cat files").output
        return RoundTranscript()

    def save_state(self) -> dict[str, list[int]]:
        return {"had": self.had}

    def load_state(self, state: dict[str, list[int]]) -> None:
        self.had = state["had"]


def test_such_a_round_forgets_what_was_said_and_has_what_was_made(
    engine: Engine, make_task: MakeTask, finish: Finish
) -> None:
    agent = Remembering()
    records = finish(Trial(make_task(PASS, PASS, PASS, PASS, PASS, steps=NEW | {5: NEW[3]}), agent, engine))
    assert [record.outcome for record in records] == ["passed"] * 5
    assert agent.remembered == {1: [], 2: [1], 3: [], 4: [3], 5: []}
    assert agent.files.split() == ["1", "2", "3", "4", "5"]


def test_a_session_that_goes_on_there_forgets_it_too(
    engine: Engine, make_task: MakeTask, finish: Finish, tmp_path: Path
) -> None:
    task, directory = make_task(PASS, PASS, PASS, PASS, steps=NEW), AttemptDirectory(tmp_path / "attempt")
    finish(Trial(task, Remembering(fails_in=3), engine, directory=directory))
    agent = Remembering()
    finish(Trial(task, agent, engine, directory=directory, options=TrialOptions(resume=True)))
    assert agent.remembered == {3: [], 4: [3]}


def test_an_agent_that_remembers_nothing_need_not_forget(engine: Engine, make_task: MakeTask, finish: Finish) -> None:
    class Forgetful:
        name = "forgetful"

        def run_round(self, context: RoundContext) -> RoundTranscript:
            return RoundTranscript()

    records = finish(Trial(make_task(PASS, PASS, PASS, steps=NEW), Forgetful(), engine))
    assert [record.outcome for record in records] == ["passed"] * 3

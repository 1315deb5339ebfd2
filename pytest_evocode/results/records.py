"""The records of a run: plain, frozen, versioned, and the same in memory, in reports and on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pytest_evocode.results.task_facts import TaskFacts

#: Version 2 has modes, the tasks' facts and what a run had selected, and ``result.json`` has the cases' numbers only.
RECORD_VERSION = 2

CaseStatus = Literal["passed", "failed", "skipped", "error"]
FailureKind = Literal["new miss", "regression", "carried", "stale"]
Outcome = Literal["passed", "failed", "error", "not reached"]
Fault = Literal["agent", "infrastructure"]
Mode = Literal["chain", "fail-stop", "single-round"]
"""How an attempt goes through its rounds: all of them, up to the first that fails, or each by itself from the state
that the reference solutions of the earlier ones lead to."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Case(_Record):
    """One test case of a suite; an empty text is one that the suite did not give."""

    id: str
    status: CaseStatus
    origin: str = ""
    """The round that first required it."""
    requirement: str = ""
    kind: str = ""
    """core, boundary, error or integration."""
    intent: str = ""
    scenario: str = ""
    input: str = ""
    expected: str = ""
    actual: str = ""
    reason: str = ""
    failure: FailureKind | None = None
    """For a case that did not pass: how it stands to the earlier rounds of its attempt, and to what was retired."""

    @property
    def failing(self) -> bool:
        """Whether the case was run and did not pass."""
        return self.status in ("failed", "error")


class Verdict(_Record):
    """What a suite said of one round."""

    reward: float
    """The reward that decides, 0 to 1."""
    rewards: dict[str, float]
    """All rewards by key; ``{"reward": r}`` where the suite wrote a single number."""
    cases: tuple[Case, ...] = ()
    counts: tuple[int, int] | None = None
    """Passed cases and all cases, where ``cases`` does not tell: in ``result.json``, and where a suite gave totals."""
    pinned: tuple[int, int] | None = None
    """How many of the cases that ``evocode.lock`` lists passed, and how many it lists; None without a valid lock."""
    flags: tuple[str, ...] = ()
    """What is odd about the verdict, such as cases that contradict the reward; the reward stands."""
    timed_out: bool = False
    changed_tools: tuple[str, ...] = ()
    """Programs, libraries and packages of the image that the agent changed, as far as a list can be long."""

    @property
    def passed(self) -> bool:
        """Whether the reward is a pass; a strict session may fail the round all the same."""
        return self.reward >= PASS_REWARD

    def reaches(self, minimum: Mapping[str, float]) -> bool:
        """Return whether no reward is below the ``min_reward`` of its round; one that is not there is 0."""
        rewards = {"reward": self.reward, **self.rewards}
        return all(rewards.get(key, 0.0) >= least for key, least in minimum.items())


#: Harbor's tolerance for a reward of 1.
PASS_REWARD = 0.999


class Usage(_Record):
    """What was asked of a model and what it cost; None is unknown, never 0."""

    prompt_tokens: int | None = None
    """All that was sent, what the provider had cached included."""
    cached_tokens: int | None = None
    """Of the prompt tokens those that the provider read from its cache."""
    completion_tokens: int | None = None
    """All that the model wrote, its reasoning included."""
    cost_usd: float | None = None
    requests: int | None = None

    @property
    def tokens(self) -> int | None:
        """Prompt and completion."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


def total_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """The sum; what is unknown in one of them is unknown in it. None where nothing was asked of a model.

    >>> total_usage([Usage(prompt_tokens=1, cost_usd=0.5), None, Usage(prompt_tokens=2)])
    Usage(prompt_tokens=3, cached_tokens=None, completion_tokens=None, cost_usd=None, requests=None)
    """
    known = [usage for usage in usages if usage is not None]
    if not known:
        return None
    sums: dict[str, Any] = {}
    for name in Usage.model_fields:
        values = [getattr(usage, name) for usage in known]
        sums[name] = None if None in values else sum(values)
    return Usage(**sums)


class RoundRecord(_Record):
    """One round of one attempt. Times are wall-clock seconds; None is unknown or not measured, never 0."""

    task: str
    agent: str
    attempt: int
    round: str
    index: int
    """From 1."""
    declared_rounds: int
    """Rounds of the task, run or not."""
    outcome: Outcome
    cause: str = ""
    """Why the round did not pass, in one line or several."""
    fault: Fault | None = None
    """Of an outcome that is an error: whether the agent broke down, or something that is not the agent's."""
    verdict: Verdict | None = None
    timed_out: Literal["agent", "verifier"] | None = None
    tool_calls: int | None = None
    """None where the agent gave no trajectory."""
    usage: Usage | None = None
    """None where the agent is no model, or does not say."""
    stopped: str = ""
    """Why the agent's turn was ended before it ended it, such as by a budget."""
    agent_seconds: float | None = None
    verifier_seconds: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the round passed."""
        return self.outcome == "passed"

    @property
    def case_counts(self) -> tuple[int, int]:
        """Passed cases and all cases that were to pass; skipped ones are not passed."""
        if self.verdict is None:
            return 0, 0
        if self.verdict.counts is not None:
            return self.verdict.counts
        return sum(case.status == "passed" for case in self.verdict.cases), len(self.verdict.cases)

    def without_cases(self) -> RoundRecord:
        """The same with the cases' numbers in place of the cases."""
        if self.verdict is None or not self.verdict.cases:
            return self
        verdict = self.verdict.model_copy(update={"cases": (), "counts": self.case_counts})
        return self.model_copy(update={"verdict": verdict})


class RoundFile(RoundRecord):
    """A round by itself: ``steps/<round>/round.json``."""

    version: int = RECORD_VERSION


class TurnRecord(_Record):
    """An agent's turn that has ended, of a round whose verdict may not be there yet."""

    index: int
    """The round's, from 1."""
    snapshot: str
    """The reference of the snapshot that was taken after it."""
    timed_out: bool
    tool_calls: int | None
    usage: Usage | None = None
    stopped: str = ""
    agent_seconds: float


class Spent(_Record):
    """What an attempt has used of its budget."""

    tokens: int = 0
    cost_usd: float = 0.0
    turns: int = 0
    """Replies of the model."""
    seconds: float = 0.0
    """The agent's own."""


class AttemptState(_Record):
    """What it takes to go on with an attempt that was broken off: ``state.json``, there until the attempt ends."""

    version: int = RECORD_VERSION
    environment: str
    task_hash: str
    made_by: dict[str, Any] = {}
    turns: tuple[TurnRecord, ...] = ()
    """Those without a verdict, and the last."""
    spent: Spent = Spent()
    agent: Any = None
    """What the agent's ``save_state`` gave after the last turn."""


class SnapshotFile(_Record):
    """Where the state is kept, on this machine only, that a round was left in: ``steps/<round>/snapshot.json``."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    version: int = RECORD_VERSION
    environment: str
    reference: str
    """What the engine of that environment knows it by."""
    image: str
    """What names the contents of the task's image: it is a state of that image and of no other."""
    task: str
    """The task's directory."""
    strict: bool
    """Whether the round fails where the agent had changed tools of the image."""
    timeout_multiplier: float = Field(validation_alias="timeouts", serialization_alias="timeouts")
    """What the timeouts of agents and suites were multiplied by; ``timeouts`` in the file."""


class AttemptRecord(_Record):
    """One attempt: ``result.json``, whose rounds leave their cases to ``steps/<round>/verifier/cases.json``."""

    version: int = RECORD_VERSION
    task: str
    agent: str
    attempt: int
    mode: Mode = "chain"
    from_round: str | None = None
    """The round that it began with, at the state that the solutions before lead to; None is the first."""
    environment: str
    task_hash: str = ""
    """SHA-256 over the task's files."""
    made_by: dict[str, Any] = {}
    """The agent's ``spec`` and, where it has any, its ``options``; of a command its declaration as ``command``."""
    started: str
    """ISO 8601 with offset."""
    finished: str
    regraded: str | None = None
    """When its rounds were last verified again, by ``evocode regrade``; what was there before is in ``earlier/``."""
    declared_rounds: tuple[str, ...]
    """Their names; an empty one is not known, of an attempt that was broken off."""
    facts: TaskFacts | None = None
    """What the task says of itself; None where nobody wrote it down."""
    rewards: dict[str, float]
    """The trial's rewards by key, over all declared rounds by the task's strategy."""
    rounds: tuple[RoundRecord, ...]


class RunRecord(_Record):
    """One pytest session: ``runs/<run>.json``."""

    version: int = RECORD_VERSION
    run: str
    started: str
    finished: str | None = None
    """None while the session runs, and for good when it was killed."""
    arguments: tuple[str, ...]
    environment: str
    exit_status: int | None = None
    attempts: tuple[str, ...] = ()
    """Directories of the attempts, relative to the results directory."""
    mode: Mode = "chain"
    from_round: str | None = None
    selected: dict[str, dict[str, tuple[int, ...]]] = {}
    """The attempts that were to be made, by task and agent: those of all shards where the run is one of several."""
    shard: tuple[int, int] | None = None
    """Which shard of how many the run is, from 1."""
    scores: dict[str, dict[str, float | int | None]] = {}
    """Metrics by agent."""

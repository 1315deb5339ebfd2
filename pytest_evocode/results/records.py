"""The records of a run: frozen, versioned, and the same in memory, in test reports and on disk."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from pytest_evocode.results.frozen import ResultsRecord
from pytest_evocode.results.harbor_fields import HarborFields
from pytest_evocode.results.phases import Phases
from pytest_evocode.results.task_facts import TaskFacts
from pytest_evocode.results.usage import Usage as Usage
from pytest_evocode.results.usage import total_usage as total_usage
from pytest_evocode.results.waits import Waits
from pytest_evocode.tasks.model import Verify, VerifyIn

#: Version 2 added modes, facts about tasks and what a run had selected, and took the cases out of ``result.json``;
#: version 3 says who each agent is with its harness, under which conditions an attempt was made, and what a run knew of
#: the tasks that it selected; version 4 says what a verdict trusts of the agent's system.
RECORD_VERSION = 4

CaseStatus = Literal["passed", "failed", "skipped", "error"]
FailureKind = Literal["new miss", "regression", "carried", "stale"]
Outcome = Literal["passed", "failed", "undecided", "error", "not reached"]
"""What became of a round; *undecided* is one whose suite wrote several rewards, and nothing says which one decides."""
Fault = Literal["agent", "infrastructure"]
ChangeClass = str
"""What became of a path that an agent changed: ``carried`` is where the suite, or the program that it tests, ran, and
``left behind`` is not. Earlier versions told apart what a path is for.
"""
Mode = Literal["chain", "fail-stop", "single-round"]
"""How an attempt goes through its rounds: all of them (chain), up to the first that fails (fail-stop), or each by
itself, from the state that the reference solutions of the earlier rounds lead to (single-round).
"""


class Case(ResultsRecord):
    """One test case of a suite; a text is empty where the suite did not say."""

    id: str
    status: CaseStatus
    origin: str = ""
    """The round that required it first."""
    requirement: str = ""
    kind: str = ""
    """``core``, ``boundary``, ``error`` or ``integration``."""
    intent: str = ""
    scenario: str = ""
    input: str = ""
    expected: str = ""
    actual: str = ""
    reason: str = ""
    failure: FailureKind | None = None
    """Of a case that did not pass: how that relates to earlier rounds of the attempt, and to retired requirements."""

    @property
    def failing(self) -> bool:
        """Whether the case ran and did not pass."""
        return self.status in ("failed", "error")


class ChangesFile(ResultsRecord):
    """The file of what an agent changed outside of its workspace: ``changes/<address>.json.gz``, compressed."""

    version: int = RECORD_VERSION
    paths: dict[ChangeClass, tuple[str, ...]]
    """All paths by class, each in order; bytes that are not UTF-8 are written as ``\\xff``."""


class ChangedPaths(ResultsRecord):
    """How much an agent changed outside of its workspace; the paths are in a file of the attempt."""

    counts: dict[ChangeClass, int]
    """The number of paths by class, without classes that have none."""
    address: str = ""
    """SHA-256 of the list's :class:`ChangesFile`, not compressed, in hex: the name of its file. Empty where nothing was
    changed, and there is no file.
    """


class Repeats(ResultsRecord):
    """What came of running a suite several times, in fresh forks of one snapshot (``--evocode-verify-times``)."""

    times: int
    passed: int
    """How many of these times the suite passed the round."""
    flaky: bool
    """Whether the verdicts were not all the same, in a case, a reward, or whether the suite ended in time."""
    differing: tuple[str, ...] = ()
    """The cases whose outcome was not always the same, by their ids, in order; 50 at most."""


class Verdict(ResultsRecord):
    """The outcome of a suite for one round."""

    reward: float | None
    """The reward that decides whether the round passes: mostly 0 to 1, but any finite number may be written. None where
    there are several, and nothing says which one decides.
    """
    rewards: dict[str, float]
    """All rewards by key; ``{"reward": r}`` where the suite wrote a single number."""
    cases: tuple[Case, ...] = ()
    counts: tuple[int, int] | None = None
    """How many cases passed, and of how many; only where ``cases`` is empty: in ``result.json``, and where a suite gave
    totals without cases.
    """
    pinned: tuple[int, int] | None = None
    """How many of the cases that ``evocode.lock`` lists passed, and how many it lists; None without a valid lock."""
    flags: tuple[str, ...] = ()
    """Contradictions in the verdict, such as failing cases under a full reward; the reward stands all the same."""
    timed_out: bool = False
    rests_on: VerifyIn | None = None
    """How the suite was judged; None in records of versions that did not say."""
    changed: ChangedPaths | None = None
    """What the agent had changed outside of its workspace; None in records of versions that did not say."""
    trusts: tuple[str, ...] = ()
    """What the suite found of the agent's system that the task does not declare: paths that its reference solution
    changes, too, and ``/`` where it ran in place. A long list is cut off."""
    lacks_reports: bool = False
    """Whether none of the files that ``case_reports`` in task.toml names has a case, or the agent kept the suite from a
    verdict: it may report cases all the same."""
    void: bool = False
    """Whether a strict session counts no case of it, because the suite trusts the agent's system."""
    repeats: Repeats | None = None
    """Of a suite that was run several times: how often the round passed. The rest is of the run that did worst."""

    @property
    def passed(self) -> bool:
        """Whether the reward is a pass. A session with ``--evocode-strict`` may fail the round all the same."""
        return self.reward is not None and self.reward >= PASS_REWARD

    @property
    def shown_reward(self) -> str:
        """The reward that decides, in a few digits; ``n/a`` where none does."""
        return "n/a" if self.reward is None else f"{self.reward:g}"

    @property
    def trusts_agent(self) -> bool:
        """Whether the suite found something of the agent's system that the task does not declare."""
        return bool(self.trusts)

    def reaches(self, minimum: Mapping[str, float]) -> bool:
        """Return whether no reward is below the round's ``min_reward``; one that is not there is below every bound."""
        rewards = {**({} if self.reward is None else {"reward": self.reward}), **self.rewards}
        return all(rewards.get(key, -math.inf) >= least for key, least in minimum.items())


#: A reward from here on is a pass; Harbor has the same tolerance below 1.
PASS_REWARD = 0.999


class DeniedConnection(ResultsRecord):
    """A connection that the network allowlist of a phase did not allow."""

    phase: Literal["agent", "verifier"]
    host: str
    """The name or address that was asked for; empty for all that a full list had no room for."""
    port: int
    """0 where that is not known."""
    count: int
    """How often it was asked for."""
    why: str = ""

    def __str__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count} times"
        what = f"{self.host}:{self.port}" if self.host else "other hosts"
        return f"network: the {self.phase} was denied {what} {times}: {self.why}"


class RoundRecord(ResultsRecord):
    """One round of one attempt. Times are wall-clock seconds; None is unknown or not measured, never 0."""

    task: str
    agent: str
    attempt: int
    round: str
    index: int
    """The round's place in the task, from 1."""
    declared_rounds: int
    """How many rounds the task has, whether they were run or not."""
    outcome: Outcome
    cause: str = ""
    """Why the round did not pass, in one line or several."""
    fault: Fault | None = None
    """For the outcome ``error``: whether the agent broke down, or something that the agent is not to blame for."""
    verdict: Verdict | None = None
    timed_out: Literal["agent", "verifier"] | None = None
    tool_calls: int | None = None
    """None where the agent gave no trajectory."""
    usage: Usage | None = None
    """None where the agent is not a model, or does not say."""
    user_usage: Usage | None = None
    """What the model of a simulated user used and cost, which is none of the agent's; None where it was not asked."""
    stopped: str = ""
    """Why the agent's turn was ended from outside, such as by a budget; empty where the agent ended it."""
    refused: bool = False
    """Whether the turn ended because the model, or a filter of its provider's, refused to go on."""
    waiting: str = ""
    """Of the outcome ``not reached``: why the round waits for a later session, such as at the limit of the run's cost.
    Such a round is neither passed nor failed, and no score counts it.
    """
    agent_seconds: float | None = None
    verifier_seconds: float | None = None
    phases: Phases | None = None
    """Where the time went; None in records that do not say."""
    provider_waits: Waits | None = None
    """What the agent's turn waited for because of its model's provider, beside ``agent_seconds``; None where it did not
    wait.
    """
    denied: tuple[DeniedConnection, ...] | None = None
    """What the agent and the suite tried to reach beyond their allowlists, of a long list a part; None where neither
    had one.
    """

    @property
    def passed(self) -> bool:
        """Whether the round passed."""
        return self.outcome == "passed"

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said beside the outcome: the flags of the verdict, and what was denied."""
        flags = self.verdict.flags if self.verdict is not None else ()
        return (*flags, *map(str, self.denied or ()))

    @property
    def overhead_seconds(self) -> float | None:
        """What the round cost where the agent works, beside its setup and the agent's turn."""
        return None if self.phases is None else self.phases.overhead_seconds

    @property
    def case_counts(self) -> tuple[int, int]:
        """How many cases passed, and of how many; a skipped case has not passed."""
        if self.verdict is None:
            return 0, 0
        if self.verdict.counts is not None:
            return self.verdict.counts
        passed = 0 if self.verdict.void else sum(case.status == "passed" for case in self.verdict.cases)
        return passed, len(self.verdict.cases)

    def without_cases(self) -> RoundRecord:
        """Return the same record with the number of cases in place of the cases."""
        if self.verdict is None or not self.verdict.cases:
            return self
        verdict = self.verdict.model_copy(update={"cases": (), "counts": self.case_counts})
        return self.model_copy(update={"verdict": verdict})


class RoundFile(RoundRecord):
    """The file of one round: ``steps/<round>/round.json``."""

    version: int = RECORD_VERSION


class AttemptRecord(HarborFields):
    """The file of one attempt: ``result.json``. The cases of its rounds are in files of their own, ``cases.json``."""

    version: int = RECORD_VERSION
    task: str
    agent: str
    attempt: int
    mode: Mode = "chain"
    from_round: str | None = None
    """The round that the chain began with, from the state that the solutions before it lead to; None is the first."""
    environment: str
    task_hash: str = ""
    """SHA-256 over the task's files, in hex."""
    made_by: dict[str, Any] = {}
    """The agent's ``spec``, its ``options`` where it has any, for a ``cmd:`` agent its declaration, ``command``, and
    from version 3 on the ``name`` and ``version`` of its ``harness``, what drove the model or tool, where it is known.
    ``name`` is its own name where ``agent`` is one that the session made to tell two agents apart. See
    :mod:`pytest_evocode.results.identity`.
    """
    strict: bool | None = None
    """Whether suites found nothing undeclared of the agent's system, and a round failed whose suite trusts it; None in
    records that do not say.
    """
    verify: Verify | None = None
    """How suites were judged by the session's choice; None for the tasks' own."""
    deterministic: bool = False
    """Whether the agent says that it does the same in every attempt, as the oracle does."""
    started: str
    """ISO 8601 with the offset from UTC."""
    finished: str
    regraded: str | None = None
    """When ``evocode regrade`` last verified its rounds again; the verdicts before that are in ``earlier/``."""
    declared_rounds: tuple[str, ...]
    """The names of the task's rounds; an empty name is one that an interrupted attempt does not tell."""
    facts: TaskFacts | None = None
    """What the task says about itself; None where that was not recorded."""
    rewards: dict[str, float]
    """The rewards of the whole attempt by key, over all declared rounds, by the task's strategy."""
    rounds: tuple[RoundRecord, ...]


class SelectedTask(ResultsRecord):
    """A task as it was when a session selected it."""

    task_hash: str = ""
    """SHA-256 over the task's files, in hex; empty where they could not be read."""
    facts: TaskFacts


class RunRecord(ResultsRecord):
    """The file of one pytest session: ``runs/<run>.json``."""

    version: int = RECORD_VERSION
    run: str
    started: str
    finished: str | None = None
    """None while the session runs, and for good where it was killed."""
    arguments: tuple[str, ...]
    environment: str
    versions: dict[str, tuple[str, ...]] = {}
    """What the session ran with, by name: ``pytest-evocode``, ``Python``, ``pytest``, ``platform``, and what the
    environment's engine is made of, such as ``Docker`` or ``bubblewrap`` and their ``kernel``; several where the run
    was continued with others. Empty in records that do not say.
    """
    exit_status: int | None = None
    attempts: tuple[str, ...] = ()
    """The attempts' directories, relative to the results directory."""
    mode: Mode = "chain"
    from_round: str | None = None
    selected: dict[str, dict[str, tuple[int, ...]]] = {}
    """The numbers of the attempts that were to be made, by task and agent; a shard's record has those of all shards."""
    tasks: dict[str, SelectedTask] = {}
    """What is known of each selected task, by name, so that attempts count in full which left nothing."""
    partial: dict[str, dict[str, dict[int, tuple[int, ...]]]] = {}
    """The indices of the rounds that were to be run, by task, agent and attempt, where these are not all."""
    shard: tuple[int, int] | None = None
    """Which shard the run is, from 1, and of how many; None where it is a whole run."""
    shard_times: str | None = None
    """A hash of the times by which shards were made; None where they were made by timeouts, or there are none."""
    verify: Verify | None = None
    """How suites were judged by the session's choice; None for the tasks' own."""
    strict: bool | None = None
    """As ``strict`` of an attempt."""
    agents: dict[str, dict[str, Any]] = {}
    """What made each selected agent, by name, as ``made_by`` of its attempts."""
    waiting: str = ""
    """Why rounds that have no record wait for a later session, such as the limit of the run's cost; empty where there
    are none such.
    """
    refusal_rates: dict[str, float] = {}
    """By agent the share, 0 to 100, of its rounds whose turn ended because the model or a filter refused to go on;
    nothing of agents that never did.
    """
    scores: dict[str, dict[str, float | int | None]] = {}
    """The metrics by agent; see :class:`pytest_evocode.metrics.scores.Scores`."""

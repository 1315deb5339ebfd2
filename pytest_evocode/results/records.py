"""The records of a run: frozen, versioned, and the same in memory, in test reports and on disk."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator

from pytest_evocode.names import attempt_name
from pytest_evocode.results.phases import Phases
from pytest_evocode.tasks.model import Verify, VerifyIn
from pytest_evocode.tasks.task import RewardStrategy, Task


class ResultsRecord(BaseModel):
    """A record of a results directory, or a part of one."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Usage(ResultsRecord):
    """What requests to a model used and cost; None is unknown, never 0."""

    model_config = ConfigDict(allow_inf_nan=True)

    prompt_tokens: int | None = None
    """All tokens that were sent, those included that the provider had cached."""
    cached_tokens: int | None = None
    """The part of the prompt tokens that the provider read from its cache."""
    completion_tokens: int | None = None
    """All tokens that the model wrote, its reasoning included."""
    cache_write_tokens: int | None = None
    """The part of the prompt tokens that the provider wrote to its cache."""
    reasoning_tokens: int | None = None
    """The part of the completion tokens that was reasoning."""
    cost_usd: float | None = None
    requests: int | None = None
    at_least: Literal[True] | None = None
    """Set where more was used than is known: an agent's program was killed in mid-turn, or a reply broke off."""

    @field_validator("cost_usd")
    @classmethod
    def _known(cls, cost: float | None) -> float | None:
        # Agents of others may say NaN, which is no amount.
        return cost if cost is not None and math.isfinite(cost) else None

    @property
    def tokens(self) -> int | None:
        """Prompt tokens and completion tokens together; None where one of them is unknown."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


NO_USAGE = Usage.model_validate(dict.fromkeys(Usage.model_fields.keys() - {"at_least"}, 0))
"""That of a turn which is known to have made no request."""


def total_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """Return the sum of some usages, or None where no model was used.

    A number that is unknown in one of them is unknown in the sum.

    >>> total = total_usage([Usage(prompt_tokens=1, cost_usd=0.5), None, Usage(prompt_tokens=2)])
    >>> total.prompt_tokens, total.cost_usd, total.at_least
    (3, None, None)
    """
    known = [usage for usage in usages if usage is not None]
    if not known:
        return None
    sums: dict[str, Any] = {"at_least": True if any(usage.at_least for usage in known) else None}
    for name in Usage.model_fields.keys() - sums.keys():
        values = [getattr(usage, name) for usage in known]
        sums[name] = None if None in values else sum(values)
    return Usage(**sums)


class Waits(ResultsRecord):
    """Time that counts neither against a turn's timeout nor against the budget's minutes."""

    retries: int = 0
    """Requests that were sent again."""
    seconds: dict[str, float] = {}
    """Seconds by cause: ``rate limit`` (429, 529 and the pace after them), ``provider`` (5xx and the like), ``network``
    (broken connections), ``connections`` (as many requests were under way as may be).
    """

    @property
    def total(self) -> float:
        """Seconds of all causes."""
        return sum(self.seconds.values())


def total_waits(found: Iterable[Waits | None]) -> Waits | None:
    """Return the sum of what several turns waited for; None where none waited.

    >>> total_waits([Waits(retries=1, seconds={"network": 2.0}), None, Waits(retries=2, seconds={"network": 1.0})])
    Waits(retries=3, seconds={'network': 3.0})
    """
    known = [waits for waits in found if waits is not None]
    if not known:
        return None
    seconds: dict[str, float] = {}
    for waits in known:
        for cause, each in waits.seconds.items():
            seconds[cause] = seconds.get(cause, 0.0) + each
    return Waits(retries=sum(waits.retries for waits in known), seconds=seconds)


_Unread = Annotated[
    None,
    BeforeValidator(lambda _: None),
    Field(exclude=True),
    WithJsonSchema({"description": "For Harbor's programs, as in its TrialResult; it repeats what other fields say."}),
]
"""A field that is written from others by :func:`pytest_evocode.results.harbor_files.trial_fields`, and never read."""


class HarborFields(ResultsRecord):
    """What the file of an attempt has for Harbor's programs; None in a record that was read, whatever the file says."""

    id: _Unread = None
    task_name: _Unread = None
    trial_name: _Unread = None
    trial_uri: _Unread = None
    task_id: _Unread = None
    task_checksum: _Unread = None
    config: _Unread = None
    agent_info: _Unread = None
    verifier_result: _Unread = None
    exception_info: _Unread = None
    started_at: _Unread = None
    finished_at: _Unread = None
    step_results: _Unread = None


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What results keep of a task, without its files; a text is empty where the task does not say."""

    rounds: tuple[str, ...]
    """The names of the rounds, in order."""
    change_types: tuple[tuple[str, ...], ...] = ()
    """How the requirements changed in each round, in the same order."""
    activity: str = ""
    interaction: str = ""
    category: str = ""
    difficulty: str = ""
    reward_strategy: RewardStrategy = "mean"
    reward_key: str = ""
    """The reward that decides where a suite writes several; empty where nothing was said."""
    minimum_keys: tuple[tuple[str, ...], ...] = ()
    """The keys of each round's ``min_reward``, in the order of the rounds; empty where no round has any."""

    @property
    def declared(self) -> int:
        """How many rounds the task has."""
        return len(self.rounds)

    def minimum(self, index: int) -> tuple[str, ...]:
        """Return the keys of the ``min_reward`` of a round, whose index counts from 1; without one, of all rounds."""
        own = self.minimum_keys[index - 1] if 0 < index <= len(self.minimum_keys) else ()
        return own or tuple(dict.fromkeys(key for keys in self.minimum_keys for key in keys))

    def changes(self, index: int) -> tuple[str, ...]:
        """Return the change types of a round, whose index counts from 1.

        >>> TaskFacts(rounds=("r1", "r2"), change_types=(("extension",), ("conflict", "extension"))).changes(2)
        ('conflict', 'extension')
        >>> TaskFacts(rounds=("r1", "r2")).changes(2)
        ()
        """
        return self.change_types[index - 1] if 0 < index <= len(self.change_types) else ()


def task_facts(task: Task) -> TaskFacts:
    """Return the facts about a task."""
    return TaskFacts(
        rounds=tuple(round_.name for round_ in task.rounds),
        change_types=tuple(round_.change_types for round_ in task.rounds),
        reward_strategy=task.reward_strategy,
        reward_key=task.reward_key or "",
        minimum_keys=keys_by_round(round_.min_reward for round_ in task.rounds),
        **texts_in(task.config.metadata.model_extra or {}),
    )


def keys_by_round(minimums: Iterable[Mapping[str, float] | None]) -> tuple[tuple[str, ...], ...]:
    """Return the keys of each ``min_reward``; nothing at all where none has any."""
    keys = tuple(tuple(minimum or ()) for minimum in minimums)
    return keys if any(keys) else ()


#: The keys of ``[metadata]`` that are facts about a task, each a field of :class:`TaskFacts`.
METADATA_TEXTS = ("activity", "interaction", "category", "difficulty")


def texts_in(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts of a ``[metadata]`` by their fields here; what is not text there counts as not said."""
    found = {key: metadata.get(key) for key in METADATA_TEXTS}
    return {key: text.strip() for key, text in found.items() if isinstance(text, str)}


#: Version 2 added modes, facts about tasks and what a run had selected, and took the cases out of ``result.json``;
#: version 3 says who each agent is with its harness, under which conditions an attempt was made, and what a run knew of
#: the tasks that it selected; version 4 says what a verdict trusts of the agent's system.
RECORD_VERSION = 4

CaseStatus = Literal["passed", "failed", "skipped", "error"]
FailureKind = Literal["new miss", "regression", "carried", "stale"]
Outcome = Literal["passed", "failed", "undecided", "error", "not reached"]
"""What became of a round; *undecided* is one of several rewards in records of versions that had no rule for these."""
DecidingRule = Literal["named", "min_reward", "smallest"]
"""Why one of several rewards decides: the task or the session names it, it is the smallest of those that ``min_reward``
names, or the smallest of all.
"""
Fault = Literal["agent", "infrastructure"]
ChangeClass = str
"""What became of a path that an agent changed: ``carried`` is where the suite, or the program that it tests, ran, and
``left behind`` is not. Earlier versions told apart what a path is for.
"""
Unscored = Literal["never started", "unfinished"]
"""Why no score counts an attempt: what it needs did not start before its agent's first turn, or its session was
interrupted. Nothing that an agent does is either.
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
    flaky: bool = False
    """Whether it failed at first, and passed when its runner ran it again."""
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
    """The reward that decides whether the round passes: mostly 0 to 1, but any finite number may be written. None in
    records of earlier versions, where there are several and nothing says which one decides.
    """
    rewards: dict[str, float]
    """All rewards by key; ``{"reward": r}`` where the suite wrote a single number."""
    deciding_key: str = ""
    """Which of several rewards decides; empty where that is ``reward``."""
    deciding_rule: DecidingRule | None = None
    """Why it does."""
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
    brought_along: bool = False
    """Whether the round was not selected, and run only because a later one that was needs it; no score counts it."""
    unscored: Unscored | None = None
    """Of an attempt that no score counts: why; ``cause`` has the reason. None of one that counts."""
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
    def place(self) -> str:
        """Task, attempt and round, for people."""
        return f"{self.task} {attempt_name(self.agent, self.attempt)} {self.round}"

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

    @property
    def lacks_cases(self) -> bool:
        """Whether the verdict has the number of cases only; the cases may lie in a file of their own."""
        verdict = self.verdict
        return verdict is not None and not verdict.cases and bool(verdict.counts and verdict.counts[1])

    def without_cases(self) -> RoundRecord:
        """Return the same record with the number of cases in place of the cases."""
        if self.verdict is None or not self.verdict.cases:
            return self
        verdict = self.verdict.model_copy(update={"cases": (), "counts": self.case_counts})
        return self.model_copy(update={"verdict": verdict})


class RoundFile(RoundRecord):
    """The file of one round: ``steps/<round>/round.json``."""

    version: int = RECORD_VERSION


class ForkSource(ResultsRecord):
    """The state that an attempt was forked from: that of another attempt after one of its rounds."""

    point: str
    """The agent and the round as the session names them: ``A:round-3``."""
    agent: str
    made_by: dict[str, Any] = {}
    """As ``made_by`` of the other attempt."""
    run: str = ""
    attempt: int = 0
    round: str = ""
    index: int = 0
    """The round's place in the task, from 1."""
    snapshot: str = ""
    """The engine's reference of the snapshot that the state is kept in."""
    outcomes: dict[str, Outcome] = {}
    """What became of the other attempt's rounds up to that one, by name; it counts in no score of the fork."""


class AttemptRecord(HarborFields):
    """The file of one attempt: ``result.json``. The cases of its rounds are in files of their own, ``cases.json``."""

    version: int = RECORD_VERSION
    task: str
    agent: str
    attempt: int
    mode: Mode = "chain"
    from_round: str | None = None
    """The round that the chain began with, from the state that the solutions before it lead to, or of a fork from that
    in ``forked_from``; None is the first.
    """
    forked_from: ForkSource | None = None
    """The state of another attempt that the chain began in; None of one that is no what-if fork."""
    environment: str
    task_hash: str = ""
    """SHA-256 over the task's files, in hex."""
    made_by: dict[str, Any] = {}
    """The agent's ``spec``, its ``options`` where it has any, for a ``cmd:`` agent its declaration, ``command``, and
    from version 3 on the ``name`` and ``version`` of its ``harness``, what drove the model or tool, where it is known.
    From version 4 on ``base_url`` among options, or in the declaration, is the server that was asked, without secrets,
    unless it was the provider's own, and ``headers`` are those that the environment had the client send. ``name`` is
    its own name where ``agent`` is one that the session made to tell two agents apart. See
    :mod:`pytest_evocode.results.identity`.
    """
    strict: bool | None = None
    """Whether suites found nothing undeclared of the agent's system, and a round failed whose suite trusts it; None in
    records that do not say.
    """
    verify: Verify | None = None
    """How suites were judged by the session's choice; None for the tasks' own."""
    conditions: dict[str, str] | None = None
    """The options and settings that can change a verdict or a score, by name, as far as they are given or have a
    default; beside them the product's ``version``, and ``image``, which identifies the task's image. None in records
    that do not say.
    """
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

    @property
    def start(self) -> str | None:
        """What the chain began with: a round by its name, or of a fork ``A:round-3``; None is the first round."""
        return self.from_round if self.forked_from is None else self.forked_from.point


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
    """Those of its last session."""
    earlier_arguments: tuple[tuple[str, ...], ...] = ()
    """Those of each session before, as far as the run was continued: of the first, and of the last 50 of the others."""
    environment: str
    versions: dict[str, tuple[str, ...]] = {}
    """What the session ran with, by name: ``pytest-evocode``, ``Python``, ``pytest``, ``platform``, and what the
    environment's engine is made of, such as ``Docker`` or ``bubblewrap`` and their ``kernel``; several where the run
    was continued with others. Empty in records that do not say.
    """
    exit_status: int | None = None
    interrupted: bool = False
    """Whether the session was interrupted, as by Ctrl-C, so that attempts without an end count in no score."""
    excluded: bool = False
    """Whether no score counts the run, because ``evocode runs --exclude`` says so."""
    tags: tuple[str, ...] = ()
    """What ``evocode runs --tag`` calls it."""
    attempts: tuple[str, ...] = ()
    """The attempts' directories, relative to the results directory."""
    mode: Mode = "chain"
    from_round: str | None = None
    fork_from: str | None = None
    """Which states of which agent its attempts were forked from: ``A:round-3``, of a named run ``A:round-3@RUN``."""
    selected: dict[str, dict[str, tuple[int, ...]]] = {}
    """The numbers of the attempts that were to be made, by task and agent; a shard's record has those of all shards."""
    tasks: dict[str, SelectedTask] = {}
    """What is known of each selected task, by name, so that attempts count in full which left nothing."""
    partial: dict[str, dict[str, dict[int, tuple[int, ...]]]] = {}
    """The indices of the rounds that were selected, by task, agent and attempt, where these are not all."""
    shard: tuple[int, int] | None = None
    """Which shard the run is, from 1, and of how many; None where it is a whole run."""
    shard_times: str | None = None
    """A hash of the times by which shards were made; None where they were made by timeouts, or there are none."""
    verify: Verify | None = None
    """How suites were judged by the session's choice; None for the tasks' own."""
    strict: bool | None = None
    """As ``strict`` of an attempt."""
    conditions: dict[str, str] | None = None
    """As ``conditions`` of an attempt, without ``image``."""
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

    def selects(self, attempt: AttemptRecord) -> bool:
        """Return whether an attempt was to be made."""
        return attempt.attempt in self.numbers(attempt.task, attempt.agent)

    def numbers(self, task: str, agent: str) -> tuple[int, ...]:
        """Return the numbers of the attempts of an agent at a task that were to be made."""
        return self.selected.get(task, {}).get(agent, ())

    @property
    def broke_off(self) -> bool:
        """Whether the session did not come to its own end: it was interrupted or killed, or is under way."""
        return self.interrupted or self.finished is None

    @property
    def start(self) -> str | None:
        """As ``start`` of its attempts."""
        return self.from_round if self.fork_from is None else self.fork_from.partition("@")[0]


class TurnRecord(ResultsRecord):
    """An agent's turn that has ended, while the verdict of its round may still be outstanding."""

    index: int
    """The place of the round in the task, from 1."""
    snapshot: str
    """The engine's reference of the snapshot that was taken after the turn."""
    timed_out: bool
    tool_calls: int | None
    usage: Usage | None = None
    user_usage: Usage | None = None
    """What the model of a simulated user used and cost, which is none of the agent's; None where it was not asked."""
    stopped: str = ""
    refused: bool = False
    agent_seconds: float | None
    """None where nobody took the turn, because the state that it leads to was kept."""
    phases: Phases | None = None
    """Where the time of the turn went; None in records that do not say."""
    denied: tuple[DeniedConnection, ...] | None = None
    """As :attr:`RoundRecord.denied`, of the turn alone."""
    provider_waits: Waits | None = None
    """As :attr:`RoundRecord.provider_waits`."""
    notes: tuple[str, ...] = ()
    """What its verdict is to say of what happened between the turn and the suite."""


class Spent(ResultsRecord):
    """What an attempt has used of its budget."""

    tokens: int = 0
    cost_usd: float = 0.0
    turns: int = 0
    """How often the model has answered."""
    seconds: float = 0.0
    """Time of the agent's turns, without the suites'."""


class AttemptState(ResultsRecord):
    """The file from which an interrupted attempt can be resumed: ``state.json``, removed when the attempt ends."""

    version: int = RECORD_VERSION
    environment: str
    task_hash: str
    made_by: dict[str, Any] = {}
    forked_from: ForkSource | None = None
    last: int = 0
    """The index of the last round that any session was to run."""
    turns: tuple[TurnRecord, ...] = ()
    """The turns whose rounds have no verdict yet, and the last turn."""
    spent: Spent = Spent()
    agent: Any = None
    """What the agent's ``save_state`` returned after the last turn."""

    @property
    def last_turn(self) -> int:
        """The index of the last round whose turn has ended; 0 where none has."""
        return max((turn.index for turn in self.turns), default=0)


class SnapshotFile(ResultsRecord):
    """The file that says where the workspace after a round is kept on this machine: ``steps/<round>/snapshot.json``."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    version: int = RECORD_VERSION
    environment: str
    reference: str
    """The engine's reference of the snapshot."""
    image: str
    """Identifies the contents of the task's image, without which the snapshot is of no use."""
    task: str
    """The task's directory."""
    strict: bool
    """Whether the suite found nothing of the agent's system that the task does not declare."""
    verify_times: int = 1
    """How often the suite was run."""
    timeout_multiplier: float = Field(validation_alias="timeouts", serialization_alias="timeouts")
    """What the timeouts of agents and suites were multiplied by; in the file it is called ``timeouts``."""
    verify: Verify | None = None
    """How suites were judged by the session's choice; None for the task's own."""
    installation: str = ""
    """SHA-256, in hex, of the script that installed the agent's program in the image; empty without one."""

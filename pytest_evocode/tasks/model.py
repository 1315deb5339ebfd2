"""The sections of task.toml: Harbor's multi-step schema 1.0 to 1.4, and ours below ``[metadata.evocode]``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, model_validator

from pytest_evocode.tasks.fields import (
    UNREAD,
    AllowedHost,
    AnySystemDirectory,
    AnySystemPath,
    ContainerPath,
    Count,
    Destination,
    Env,
    FilledText,
    Flag,
    MinReward,
    Number,
    PackageName,
    Pause,
    PositiveCount,
    Seconds,
    Size,
    StatePath,
    StepName,
    Text,
    User,
    megabytes,
    one_or_many,
    rule,
    wanted,
)


class Section(BaseModel):
    """A table in which only known keys have a meaning; the loader passes over others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FreeSection(BaseModel):
    """A table in which all keys are allowed; those that are not fields here are in ``model_extra``."""

    model_config = ConfigDict(extra="allow", frozen=True)


ChangeType = Literal["extension", "correction", "conflict"]


class ChainStep(FreeSection):
    """How the requirements changed in one step."""

    step: Text
    """The name of the step."""
    change_types: Annotated[tuple[ChangeType, ...], one_or_many(ChangeType)] = ()
    """What the step does to earlier requirements: extension adds some, conflict replaces some, correction repairs what
    an earlier request got wrong.
    """


class RequirementChain(FreeSection):
    """``[metadata.requirement_chain]``: how the requirements changed from step to step."""

    steps: tuple[ChainStep, ...] = ()
    """The steps with what they change."""


Category = Literal["plan-then-build", "verify-or-die", "doom-loop", "know-when-to-fold", "dont-break-the-build"]
Abstention = Literal["impossible", "ambiguous"]

_ABSTENTIONS: tuple[str, ...] = get_args(Abstention)
#: The key in ``abstain`` that means every round.
EVERY_ROUND = ""


def _abstain(value: object) -> dict[str, str]:
    table: dict[str, Any] = value if isinstance(value, dict) else {EVERY_ROUND: value}
    if not table or any(kind not in _ABSTENTIONS for kind in table.values()):
        raise wanted('"impossible" or "ambiguous", or a table of them by round such as { round-2 = "impossible" }')
    return table


def _glob(value: object) -> str:
    if not isinstance(value, str) or not value or value.startswith("/") or ".." in value.split("/"):
        raise wanted('a glob relative to the working directory such as "src/**/*.py"')
    return value


Globs = Annotated[
    tuple[Annotated[str, PlainValidator(_glob, json_schema_input_type=FilledText)], ...], one_or_many(FilledText)
]


class DeclaredRequirement(Section):
    """A requirement in words; ``round`` is the round that introduces it, by default the first."""

    id: FilledText
    """What tests and reports call the requirement."""
    text: FilledText
    """The requirement in words."""
    round: StepName | None = None
    """The round that introduces it. Default: the first."""


class ProcessConfig(Section):
    """What cannot be found out from the workspace, or should not be guessed; every key may be left out."""

    category: Category | None = None
    """The habit of engineering that the task is about."""
    requirements: tuple[DeclaredRequirement, ...] = ()
    """The requirements in words, by which tests of the agent are found to be about one."""
    build: FilledText | None = None
    """A shell line that exits 0 where the project builds; it is run in the working directory."""
    test: FilledText | None = None
    """A shell line that runs the project's own tests, which are the agent's and not the verifier's."""
    source: Globs = ()
    """Globs of the product's files, relative to the working directory, where a directory stands for all below it."""
    tests: Globs = ()
    """Globs of the project's test files."""
    abstain: Annotated[
        Mapping[str, Abstention],
        PlainValidator(_abstain, json_schema_input_type=Abstention | dict[str, Abstention]),
    ] = {}
    """Which rounds cannot be done as asked, and why; a text in task.toml means every round."""

    def abstention(self, round_name: str) -> Abstention | None:
        """Return why a round cannot be done as asked, or None where it can."""
        return self.abstain.get(round_name, self.abstain.get(EVERY_ROUND))


def matches_glob(path: str, patterns: tuple[str, ...]) -> bool:
    """Return whether one of the patterns matches a relative path.

    ``*`` and ``?`` stay within a name, ``**/`` is any number of directories, none included, and a directory stands for
    all that is below it.

    >>> matches_glob("src/a/b.py", ("src/**/*.py",)), matches_glob("src/b.py", ("src/**/*.py",))
    (True, True)
    >>> matches_glob("src/a/b.py", ("src/*.py",)), matches_glob("src/a/b.py", ("src/",)), matches_glob("b.py", ("src",))
    (False, True, False)
    """
    return any(re.fullmatch(_as_expression(pattern), path) for pattern in patterns)


def _as_expression(pattern: str) -> str:
    written = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.removeprefix("./").rstrip("/"))
    return "".join(written.get(part) or re.escape(part) for part in parts) + "(?:/.*)?"


class UserConfig(Section):
    """The user of one round; the agent sees the answers and nothing else of it."""

    model: FilledText
    """The model that plays the user: PROVIDER/MODEL, with the key and the address of that provider's variables."""
    notes: FilledText
    """What the user knows and wants beyond the request; answers are made of the request and these notes alone."""
    persona: FilledText | None = None
    """Who the user is and how they talk. Default: a busy colleague."""
    answers: Annotated[int, Field(ge=1, le=100)] = 3
    """How many questions are answered at most."""


SchemaVersion = Literal["1.0", "1.1", "1.2", "1.3", "1.4"]
NetworkMode = Literal["public", "no-network", "allowlist"]
SidecarStart = Literal["image", "snapshot", "shared"]
VerifyIn = Literal["separate", "clean", "in-place"]
"""How a suite is judged."""
Verify = Literal["clean", "in-place"]
"""What ``--evocode-verify`` may ask for."""
_EARLIER_WORDS = {"fork": "clean", "place": "in-place"}
"""What ``verify_in`` could be in earlier versions, and what it is read as."""


def _in_today_s_words(said: object) -> object:
    return _EARLIER_WORDS.get(said, said) if isinstance(said, str) else said


class NetworkSection(Section):
    """The network access of the environment, or of one phase."""

    network_mode: NetworkMode | None = None
    """What the network is: "public", "no-network", or "allowlist" for allowed_hosts and nothing else. Default: of a
    phase, that of [environment]; there, what the engine gives.
    """
    allowed_hosts: tuple[AllowedHost, ...] = ()
    """What an allowlist allows: names, "*.example.org" for all names below one, addresses, and ranges such as
    "192.0.2.0/24". None of them has a port. Default: nothing.
    """

    @model_validator(mode="after")
    def _hosts_need_an_allowlist(self) -> NetworkSection:
        if self.allowed_hosts and self.network_mode != "allowlist":
            said = f'and here it is "{self.network_mode}"' if self.network_mode else "which has to stand beside it"
            message = f'only means something with network_mode = "allowlist", {said}'
            raise rule(message, "allowed_hosts")
        return self


class Healthcheck(Section):
    """A command that exits 0 once the environment is ready; all times are in seconds."""

    command: FilledText
    """A shell line that exits with 0 once the environment is ready."""
    interval_sec: Pause = 5.0
    """Seconds between two tries."""
    timeout_sec: Seconds = 30.0
    """Seconds that one try may take."""
    start_period_sec: Pause = 0.0
    """Seconds at the start in which a failed try does not count."""
    start_interval_sec: Pause = 5.0
    """Seconds between two tries during the start period."""
    retries: PositiveCount = 3
    """How many tries in a row have to fail before the environment counts as broken."""

    @classmethod
    def of_engine(
        cls, test: Sequence[str], *, interval: float = 0, timeout: float = 0, start_period: float = 0, retries: int = 0
    ) -> Healthcheck | None:
        """Return a check as container engines describe it, whose values of 0 are the engines' own; None for no check.

        The command is the words of the test for a shell, so that they can be had again.

        >>> check = Healthcheck.of_engine(["CMD", "curl", "a b"], interval=2)
        >>> check.command, check.interval_sec, check.start_period_sec
        ("curl 'a b'", 2.0, 2.0)
        """
        if not test or test[0] == "NONE":
            return None
        interval = interval or 30.0
        return cls(
            command=shlex.join(("sh", "-c", *test[1:]) if test[0] == "CMD-SHELL" else test[1:]),
            interval_sec=interval,
            timeout_sec=timeout or 30.0,
            # Engines try it for the first time after an interval. What is tried before that must not count.
            start_period_sec=start_period + interval,
            start_interval_sec=min(1.0, interval),
            retries=retries or 3,
        )


class Artifact(Section):
    """A path to collect from the container; a plain string in task.toml is its source."""

    source: AnySystemPath
    """An absolute path in the container."""
    destination: Destination | None = None
    """Where it is put below the artifacts of a round, as a relative path. Default: its own path."""
    exclude: tuple[FilledText, ...] = ()
    """Globs of names that are not collected."""
    service: FilledText | None = None
    """The container that it is collected from. Default: "main", the one that the agent works in."""


def _of_path(value: Any) -> Any:
    return {"source": value} if isinstance(value, str) else value


Artifacts = tuple[Annotated[Artifact, BeforeValidator(_of_path, json_schema_input_type=AnySystemPath | Artifact)], ...]


class AgentConfig(NetworkSection):
    """``[agent]`` of the task or of a step; a ``timeout_sec`` of None is no limit."""

    timeout_sec: Seconds | None = None
    """Seconds that a turn may take; what it has done by then is verified. Default: no limit."""
    user: User | None = None
    """The name or the id of the user that the agent works as. Default: that of the image."""


class TpuConfig(Section):
    """``[environment.tpu]``."""

    type: FilledText
    """The kind of TPU."""
    topology: FilledText
    """How many there are in each dimension, such as "2x4"."""


class McpServer(Section):
    """An entry of ``[[environment.mcp_servers]]``."""

    name: FilledText
    """What the agent knows the server by."""
    transport: Literal["stdio", "sse", "streamable-http", "http"] = "sse"
    """How it is spoken to; "http" is "streamable-http"."""
    url: FilledText | None = None
    """Where it listens; for all but stdio."""
    command: FilledText | None = None
    """The program that is started; for stdio."""
    args: tuple[Text, ...] = ()
    """The arguments of the program."""
    headers: Env = Field(default_factory=dict)
    """HTTP headers that go with every request."""

    @model_validator(mode="after")
    def _is_complete(self) -> McpServer:
        if self.transport == "stdio" and self.command is None:
            raise rule('a server of transport "stdio" needs a command', "transport")
        if self.transport != "stdio" and self.url is None:
            raise rule(f'a server of transport "{self.transport}" needs a url', "transport")
        return self


class CollectHook(Section):
    """An entry of ``[[verifier.collect]]``: a command that puts what is in memory or in a service into files."""

    command: FilledText
    """A line for bash, run from the working directory. A failure is noted, and the suite runs all the same."""
    service: FilledText = "main"
    """The container that it is run in; "main" is the one that the agent works in."""
    timeout_sec: Seconds = 60.0
    """Seconds that it may take; then every process in the environment is killed."""
    user: User | None = None
    """The name or the id of the user that it is run as. Default: that of the image."""


class EnvironmentConfig(NetworkSection):
    """``[environment]``; memory and storage are in megabytes, whichever of the two spellings gave them."""

    build_timeout_sec: Seconds = 600.0
    """Seconds that building the image may take."""
    docker_image: FilledText | None = None
    """An image to take as it is, in place of building environment/Dockerfile."""
    os: Text = "linux"
    """The operating system."""
    cpus: Number | None = None
    """How many CPUs the environment may use. Default: all."""
    memory_mb: PositiveCount | None = None
    """Megabytes of memory that the environment may use. Default: no limit of its own."""
    storage_mb: PositiveCount | None = None
    """Megabytes of storage that the environment may use. Default: no limit of its own."""
    gpus: Count = 0
    """How many GPUs the task needs."""
    gpu_types: tuple[Text, ...] = ()
    """Kinds of GPUs of which one will do."""
    tpu: TpuConfig | None = None
    """The TPUs that the task needs."""
    env: Env = Field(default_factory=dict)
    """Variables of every program in the environment; ${NAME} and ${NAME:-default} are filled in from where pytest runs.
    """
    healthcheck: Healthcheck | None = None
    """What tells that the environment is ready, before the first round."""
    workdir: AnySystemDirectory | None = None
    """The working directory, an absolute path. Default: the WORKDIR of the image."""
    allow_internet: Flag | None = None
    """The old form of network_mode: true is "public", false is "no-network"."""
    memory: Size | None = None
    """The old form of memory_mb: a size such as "2G"."""
    storage: Size | None = None
    """The old form of storage_mb: a size such as "10G"."""
    mcp_servers: tuple[McpServer, ...] = ()
    """MCP servers for the agent."""
    skills_dir: Text | None = None
    """A directory of skills for the agent, in the container."""

    @model_validator(mode="after")
    def _has_each_server_once(self) -> EnvironmentConfig:
        names = [server.name for server in self.mcp_servers]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise rule(f"the name {twice!r} is given to two servers; rename one", "mcp_servers")
        return self

    @model_validator(mode="after")
    def _read_the_old_sizes(self) -> EnvironmentConfig:
        for old, new in (("memory", "memory_mb"), ("storage", "storage_mb")):
            size = getattr(self, old)
            if size is None:
                continue
            if getattr(self, new) not in (None, megabytes(size)):
                raise rule(f"disagrees with {new} = {getattr(self, new)}; keep {new} only", old)
            object.__setattr__(self, new, megabytes(size))
        return self


class VerifierConfig(NetworkSection):
    """``[verifier]`` of the task or of a step."""

    timeout_sec: Seconds = 600.0
    """Seconds that a suite may take."""
    env: Env = Field(default_factory=dict)
    """Variables of the suite; ${NAME} and ${NAME:-default} are filled in from where pytest runs."""
    user: User | None = None
    """The name or the id of the user that the suite runs as. Default: that of the image."""
    environment_mode: Literal["shared", "separate"] | None = None
    """Where a test.sh runs: "shared" is beside what the agent left, as [metadata.evocode] verify_in says; "separate" is
    in an environment for itself, in which only the declared artifacts are. Default: "separate" where there is an
    environment below, else "shared".
    """
    environment: EnvironmentConfig | None = None
    """The environment that a test.sh has for itself. Of native suites only docker_image counts: an image that has
    Python 3.10 or newer.
    """
    collect: tuple[CollectHook, ...] = ()
    """Commands in the agent's environment between its turn and the suite; those of a step come after the task's."""

    @model_validator(mode="after")
    def _shared_has_no_environment(self) -> VerifierConfig:
        if self.environment_mode == "shared" and self.environment is not None:
            message = "a shared verifier has no environment of its own; remove this, or [verifier.environment]"
            raise rule(message, "environment_mode")
        return self


class SolutionConfig(Section):
    """``[solution]``: the variables of the reference solution, with templates unresolved."""

    env: Env = Field(default_factory=dict)
    """Variables of the reference solutions; ${NAME} and ${NAME:-default} are filled in from where pytest runs."""


# Empty sections share one frozen object each: a thousand tasks of ten steps have many of them.
NO_AGENT = AgentConfig()
NO_VERIFIER = VerifierConfig()
NO_ENVIRONMENT = EnvironmentConfig()
NO_SOLUTION = SolutionConfig()
NO_PROCESS = ProcessConfig()


class StepConfig(Section):
    """An entry of ``[[steps]]`` as it is written; a ``Round`` is the same with the task's values filled in."""

    name: StepName
    """The name of the round and of its directory below steps/. The order of the steps is that of the rounds."""
    agent: AgentConfig = Field(default_factory=lambda: NO_AGENT)
    """What differs from [agent] in this round."""
    verifier: VerifierConfig = Field(default_factory=lambda: NO_VERIFIER)
    """What differs from [verifier] in this round."""
    min_reward: MinReward | None = None
    """The least reward, or rewards by key, that leads on to the next round. Default: none, and the chain goes on."""
    healthcheck: Healthcheck | None = None
    """What tells that the environment is ready before this round."""
    artifacts: Artifacts = ()
    """What is collected after this round, besides the artifacts of the task: paths, or tables."""
    inherit_prior_session: Flag = True
    """Whether the agent goes on with the conversation of the round before; false begins a new one, in the same
    environment.
    """


class Author(Section):
    """One of the authors of the task."""

    name: FilledText
    """What the author is called."""
    email: Text | None = None
    """The author's address."""


class TaskInfo(Section):
    """``[task]``: what the task is called as a published package."""

    name: PackageName
    """The name of the package, organisation/task; the second part is the name of the directory."""
    version: Annotated[Text | None, UNREAD] = None
    """The task's version, a text."""
    description: Annotated[Text, UNREAD] = ""
    """What the task is about, in a sentence."""
    authors: Annotated[tuple[Author, ...], UNREAD] = ()
    """Who wrote the task."""
    keywords: Annotated[tuple[Text, ...], UNREAD] = ()
    """Words to find the task by."""


class EvocodeMetadata(Section):
    """``[metadata.evocode]``: what pytest-evocode adds to Harbor's format."""

    # What holds is Round.verify_in.
    verify_in: Annotated[VerifyIn | None, BeforeValidator(_in_today_s_words)] = None
    """How suites are judged: "separate" (apart from the program), "clean" (the image as built, with what the agent is
    to leave behind) or "in-place" (where the agent works). Default: "separate" for native suites, "clean" for a
    test.sh.
    """
    state: tuple[StatePath, ...] = ()
    """Paths outside the working directory that are part of what the agent is to leave behind."""
    verifier_state: tuple[StatePath, ...] = ()
    """Directories in which suites keep what later suites find: carried from round to round, where no agent is."""
    caches: Annotated[tuple[ContainerPath, ...], UNREAD] = ()
    """Of no effect any more: no suite finds what another one has downloaded."""
    warm_caches: Annotated[Literal["always", "unless-strict", "never"], UNREAD] = "always"
    """Of no effect any more, as ``caches``."""
    keep_processes: Annotated[bool, UNREAD] = True
    """Of no effect any more: with verify_in = "in-place" processes of the agent live on while the suite runs."""
    case_reports: tuple[ContainerPath, ...] = ()
    """Files in which a test.sh lists its cases, in place of those that are found by themselves: CTRF,
    pytest-json-report, JUnit XML, TAP, or JSON of jest, go or libtest.
    """
    safe_path: bool = False
    """Whether a test.sh has PYTHONSAFEPATH=1, with which Python 3.11 and newer import nothing unasked from the working
    directory. Programs that it starts inherit that, and those of several modules may need the directory.
    """
    reward_key: FilledText | None = None
    """Of several rewards, the one that decides. Default: "reward"."""
    sidecars: dict[Text, SidecarStart] = Field(default_factory=dict)
    """How the services of a compose file beside main are started in forks, by their names: "image" is as built,
    "snapshot" with the files and volumes that the agent's had after the turn, and "shared" is one for all forks of an
    attempt, as built and read-only. Default: "snapshot" where the agent's has a volume or changed files, else "image".
    """
    users: dict[StepName, UserConfig] = Field(default_factory=dict)
    """By step, a simulated user who answers the agent's questions inside the round."""
    process: ProcessConfig = Field(default_factory=lambda: NO_PROCESS)
    """What the process of an agent is judged by."""


class Metadata(FreeSection):
    """``[metadata]``: all keys are allowed, and two tables have a meaning here."""

    evocode: EvocodeMetadata = Field(default_factory=EvocodeMetadata)
    """What pytest-evocode adds to the format."""
    requirement_chain: RequirementChain | None = None
    """How the requirements change from step to step."""


class TaskConfig(Section):
    """The contents of task.toml as they are written, without the values that steps take from the task."""

    schema_version: Annotated[SchemaVersion, UNREAD] = Field(
        default="1.4", validation_alias=AliasChoices("schema_version", "version")
    )
    """The version of Harbor's format."""
    source: Annotated[Text | None, UNREAD] = None
    """Where the task comes from; not used."""
    multi_step_reward_strategy: Literal["mean", "final"] = "mean"
    """The reward of an attempt: the mean of its rounds, or the reward of the final round."""
    artifacts: Artifacts = ()
    """What is collected from the container after every round: paths, or tables."""
    task: Annotated[TaskInfo | None, UNREAD] = None
    """What the task is called as a package."""
    agent: AgentConfig = Field(default_factory=lambda: NO_AGENT)
    """The agent's turns."""
    verifier: VerifierConfig = Field(default_factory=lambda: NO_VERIFIER)
    """The suites."""
    environment: EnvironmentConfig = Field(default_factory=lambda: NO_ENVIRONMENT)
    """The environment that an attempt lives in."""
    solution: SolutionConfig = Field(default_factory=lambda: NO_SOLUTION)
    """The reference solutions."""
    steps: tuple[StepConfig, ...] = ()
    """The rounds in the order in which they are played. A task without steps has one round, whose files are at its top.
    """
    metadata: Metadata = Field(default_factory=Metadata)
    """Free, but for the tables that are known here."""

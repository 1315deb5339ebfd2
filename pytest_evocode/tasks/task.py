"""A loaded task: its rounds in order, with every value resolved, and which of them an attempt runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pytest_evocode.errors import BuildError, TaskError
from pytest_evocode.names import TASK_FILE, TRAJECTORY_FILE
from pytest_evocode.tasks.allowlist import Allowlist
from pytest_evocode.tasks.compose_file import ComposeFile, MainBuild
from pytest_evocode.tasks.layout import RoundFiles, SuiteEnvironment, no_environment
from pytest_evocode.tasks.model import Artifact, CollectHook, Healthcheck, ProcessConfig, TaskConfig, Verify, VerifyIn
from pytest_evocode.tasks.native import NativeTest, Requirement, find_requirements

Network = Literal["public", "no-network"] | Allowlist
RewardStrategy = Literal["mean", "final"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round(RoundFiles):
    """One user request, with everything that its agent and its verifier need.

    Values that the step leaves out are the task's, else the format's default. Timeouts are in seconds, and an
    ``agent_timeout`` of None is no limit. A user of None is the image's own, and a network of None is one that the task
    does not mention.
    """

    index: int
    """The place in execution order, from 1."""
    agent_timeout: float | None
    verifier_timeout: float
    agent_user: str | int | None
    verifier_user: str | int | None
    agent_network: Network | None
    verifier_network: Network | None
    setup_network: Network | None
    """That of the environment itself, which ``setup.sh`` and healthchecks have where it can be changed for each phase:
    in an attempt with an allowlist.
    """
    verifier_env: Mapping[str, str]
    """The variables of the suite, the step's over the task's, with templates unresolved; see
    :func:`~pytest_evocode.tasks.resolve_env`.
    """
    verify_in: VerifyIn
    """How the suite is judged: as the task says, else ``separate`` if it is native and ``clean`` for a ``test.sh``."""
    solution_env: Mapping[str, str]
    min_reward: Mapping[str, float] | None
    """The least reward by key that leads on to the next round; a bare number n is ``{"reward": n}``."""
    healthcheck: Healthcheck | None
    """The step's own healthcheck; the environment's is in ``Task.config``."""
    artifacts: tuple[Artifact, ...]
    change_types: tuple[str, ...]
    begins_conversation: bool = False
    """Whether the agent does not go on with the conversation of the rounds before, but with what they left behind."""
    collect: tuple[CollectHook, ...] = ()
    """What runs in the agent's environment after its turn: the task's commands, then the step's."""

    @property
    def suite_has_network(self) -> bool:
        """Whether the task gives the suite a network, be it one of few hosts."""
        network = self.verifier_network
        return bool(network.hosts) if isinstance(network, Allowlist) else network == "public"

    @property
    def instruction(self) -> Path:
        """The file ``instruction.md``, which is not empty."""
        return self.directory / "instruction.md"

    @property
    def trajectory(self) -> Path | None:
        """The file with the conversation that the agent is to begin the round from; None without one."""
        path = self.directory / TRAJECTORY_FILE
        return path if path.is_file() else None

    @property
    def workdir(self) -> Path | None:
        """The directory to copy into the workspace before the agent's turn; it may have a ``setup.sh``."""
        return self.directory / "workdir" if self.has_workdir else None

    @property
    def tests(self) -> tuple[Path, ...]:
        """The directories to lay over one another at ``/tests``, in this order: the task's, then the round's."""
        own = (self.directory / "tests",) if self.has_tests else ()
        return (self.shared_tests, *own) if self.shared_tests else own


@dataclass(frozen=True, slots=True)
class Task:
    """A task directory that has been read and checked."""

    directory: Path
    name: str
    config: TaskConfig
    rounds: tuple[Round, ...]
    tests: tuple[NativeTest, ...] = ()
    """The tests of native suites as they are written, round by round."""
    default_reward_key: str = ""
    """The reward that decides where the task does not say, by the session's choice."""
    verify: Verify | None = None
    """How suites are judged by the session's choice; None for the task's own."""
    build_context: Path | None = None
    """The directory that the image is built from, where that is not the task's ``environment/``."""
    compose: ComposeFile | None = None
    """The compose file, whose services are beside every environment of the task; None without one."""
    main_build: MainBuild | None = None
    """How the image is built, where the compose file says so."""
    unread: tuple[TaskError, ...] = ()
    """What it was loaded without, in the order of the lines: keys that the format does not know, and the like."""

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """The requirements that native suites check, in the order in which they are introduced."""
        return find_requirements(self.tests, tuple(round_.name for round_ in self.rounds))

    def suite(self, round_: Round) -> dict[str, Path]:
        """Return the directories of a round's cumulative native suite, by their places below ``/tests``."""
        shared = {".": round_.shared_tests} if round_.shared_tests else {}
        return shared | {
            each.name: each.directory / "tests"
            for each in self.rounds[: round_.index]
            if each.has_tests and not each.has_script
        }

    @property
    def file(self) -> Path:
        """The task's ``task.toml``."""
        return self.directory / TASK_FILE

    @property
    def environment_directory(self) -> Path:
        """The build context, which need not exist where ``config.environment.docker_image`` is set."""
        if self.build_context is None and self.main_build is not None:
            return self.main_build.context
        return self.build_context or self.directory / "environment"

    @property
    def dockerfile(self) -> Path | None:
        """The Dockerfile; None without one."""
        path = self.environment_directory / "Dockerfile"
        if self.main_build is not None:
            path = self.main_build.dockerfile
        return path if path.is_file() else None

    def dockerfile_to_build(self) -> Path:
        """Return the Dockerfile of a task that names no finished image; raises BuildError without one."""
        if self.dockerfile is None:
            raise BuildError(f"{self.file}: {no_environment(self.directory)}")
        return self.dockerfile

    @property
    def process(self) -> ProcessConfig:
        """What the task declares so that an agent's way of working can be scored."""
        return self.config.metadata.evocode.process

    def with_environment_of(self, suite: SuiteEnvironment) -> Task:
        """Return the task with the environment that a suite has for itself in place of the agent's."""
        config = self.config.model_copy(update={"environment": suite.config})
        if suite.brings_tests:
            return replace(self.alone(), config=config, build_context=suite.context, main_build=None)
        return replace(self, config=config, build_context=suite.context)

    def alone(self) -> Task:
        """Return the task without the services of its compose file: only its image is wanted."""
        return replace(self, compose=None) if self.compose is not None else self

    @property
    def suite_environments(self) -> tuple[SuiteEnvironment, ...]:
        """The environments that suites have for themselves, each image once."""
        found = (round_.suite_environment for round_ in self.rounds)
        images = {(each.context, each.config.docker_image): each for each in found if each is not None}
        return tuple(images.values())

    def judged(self, verify: Verify | None) -> Task:
        """Return the task as ``--evocode-verify`` asks for it to be judged; None leaves it as it says itself.

        ``clean`` takes suites out of the agent's system. ``in-place`` puts those of a task there that are all a
        ``test.sh`` beside what the agent left.
        """
        if verify is None:
            return self
        rounds = self.rounds
        if verify == "clean" and self.in_place:
            rounds = tuple(replace(round_, verify_in="clean") for round_ in rounds)
        elif verify == "in-place" and all(each.has_script and each.suite_environment is None for each in rounds):
            rounds = tuple(replace(round_, verify_in="in-place") for round_ in rounds)
        return replace(self, rounds=rounds, verify=verify)

    def with_reward_key(self, key: str) -> Task:
        """Return the task with a key for its verdicts where it has none, as ``--evocode-reward-key`` asks for."""
        return replace(self, default_reward_key=key) if key else self

    @property
    def environment_network(self) -> Network | None:
        """The network that the attempt's environment starts with, before the first phase.

        It is an allowlist where any phase there has one, and where agents' turns differ, because no other network can
        be changed later.
        """
        agents = [round_.agent_network for round_ in self.rounds]
        suites = [round_.verifier_network for round_ in self.rounds if round_.verify_in == "in-place"]
        found = next((each for each in (*agents, *suites) if isinstance(each, Allowlist)), None)
        if found is not None or len(set(agents)) == 1:
            return found or agents[0]
        return Allowlist()

    @property
    def in_place(self) -> bool:
        """Whether suites run where the agent works."""
        return self.rounds[0].verify_in == "in-place"

    @property
    def state(self) -> tuple[str, ...]:
        """The paths outside the working directory that are part of what an agent leaves behind."""
        return self.config.metadata.evocode.state

    @property
    def case_reports(self) -> tuple[str, ...]:
        """The files in which a ``test.sh`` lists its cases; empty where they are found by themselves."""
        return self.config.metadata.evocode.case_reports

    @property
    def reward_key(self) -> str | None:
        """The key of the reward that decides where a verdict has several."""
        return self.config.metadata.evocode.reward_key or self.default_reward_key or None

    @property
    def reward_strategy(self) -> RewardStrategy:
        """How the rewards of the rounds make the reward of an attempt."""
        return self.config.multi_step_reward_strategy


@dataclass(frozen=True, slots=True)
class RoundSelection:
    """The rounds of one attempt; indexes count from 1.

    >>> RoundSelection(begin_with=3).rounds_before, RoundSelection.single(2)
    (2, RoundSelection(begin_with=2, first_wanted=2, last=2, wanted=None))
    """

    begin_with: int | None = None
    """The round that the agent begins with by choice, at the state that the reference solutions of those before lead
    to; these have no record. None has the agent play from the first round on."""
    first_wanted: int = 1
    """The first round that was asked for. Those between where the agent begins and here run only where needed."""
    last: int | None = None
    """The last round that is run; None is the task's last."""
    wanted: frozenset[int] | None = None
    """The rounds that were asked for; the others that are run are brought along. None is all."""

    @classmethod
    def single(cls, index: int) -> RoundSelection:
        """Select one round, to be run by itself."""
        return cls(index, index, index)

    @property
    def rounds_before(self) -> int:
        """How many rounds are left to the reference solutions."""
        return (self.begin_with or 1) - 1

    def including(self, index: int) -> RoundSelection:
        """Return the selection with one more round asked for."""
        return replace(
            self,
            first_wanted=min(self.first_wanted, index),
            last=max(self.last or 0, index),
            wanted=(self.wanted or frozenset()) | {index},
        )

    def brings_along(self, index: int) -> bool:
        """Return whether a round is run only because a later one that was asked for needs it."""
        return self.wanted is not None and index not in self.wanted


TEMPLATE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")

FROM_AGENT = (
    "a secret that the agent does not declare, so it goes nowhere that the agent can read; have the agent name it in "
    "its 'secrets', name it where the agent is not: in [solution.env], or in [verifier.env] where no suite "
    "runs in place"
)

FROM_SOLUTION = (
    "a secret, and in this mode the agent begins where the solution's work ends, so it could read it; run whole "
    "chains, from the first round on"
)


def resolve_env(
    env: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    path: Path,
    withheld: Callable[[str], bool] = lambda name: False,
    withheld_because: str = FROM_AGENT,
) -> dict[str, str]:
    """Return ``env`` with the templates in its values replaced by the variables of ``environ``.

    ``${VAR:-default}`` takes the default where VAR is unset or empty, as a shell does; ``$VAR``, ``$$`` and all else
    stay as they are.

    >>> resolve_env({"URL": "http://${HOST}:${PORT:-80}"}, {"HOST": "db"}, path=Path("task.toml"))
    {'URL': 'http://db:80'}

    Args:
        env: The variables as the task has them.
        environ: The host's variables.
        path: The task.toml that ``env`` comes from.
        withheld: Which of the host's variables count as unset.
        withheld_because: Why they do, and what to do about it besides giving a default.

    Raises:
        TaskError: Variables are unset or withheld and have no default; the message names all of them.
    """
    missing: list[str] = []

    def fill(match: re.Match[str]) -> str:
        name, default = match["name"], match["default"]
        value = None if withheld(name) else environ.get(name)
        if default is not None:
            return value or default
        if value is None:
            missing.append(name)
            return ""
        return value

    resolved = {key: TEMPLATE.sub(fill, value) for key, value in env.items()}
    if missing:
        names = list(dict.fromkeys(missing))
        if secret := next((name for name in names if withheld(name)), None):
            key = next(key for key, value in env.items() if f"${{{secret}}}" in value)
            message = f"{key} asks for {secret}, {withheld_because}, or give a default: ${{{secret}:-value}}"
            raise TaskError(message, path, _line_of(f"${{{secret}}}", path))
        message = f"{', '.join(names)} not set in the environment; export it or give a default: ${{{names[0]}:-value}}"
        raise TaskError(message, path, _line_of(f"${{{names[0]}}}", path))
    return resolved


def resolve_solution_env(
    task: Task, round_: Round, environ: Mapping[str, str], withheld: Callable[[str], bool]
) -> dict[str, str]:
    """Return the variables of a round's solution, with templates resolved as :func:`resolve_env` does."""
    return resolve_env(round_.solution_env, environ, path=task.file, withheld=withheld, withheld_because=FROM_SOLUTION)


def _line_of(template: str, path: Path) -> int | None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((number for number, line in enumerate(lines, 1) if template in line), None)

"""What a session was asked to do: its options and ini settings, read and checked once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.names import REPORT_DIRECTORY, ForkPoint, protocol
from pytest_evocode.plugin.options import default_of, nearest
from pytest_evocode.plugin.pytest_private import names_of_settings

if TYPE_CHECKING:
    from pytest_evocode.llm.budget import Budget
    from pytest_evocode.results.records import Mode
    from pytest_evocode.tasks import Task, Verify
    from pytest_evocode.trial.storage import AttemptStorage


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a session, in the form that the rest of the plugin uses."""

    agents: tuple[str, ...]
    """The agents' names as given."""
    attempts: int
    """Attempts of every agent at every task."""
    mode: Mode
    from_round: str | None
    """The name of the round that chains begin with, at the state that the reference solutions lead to."""
    fork_from: ForkPoint | None
    """The agent whose attempts, and the round after which these attempts go on from their states."""
    speculate: bool
    """Whether an agent's next turn begins ahead of a verdict that may end the attempt."""
    environment: str
    """The engine's name, or ``auto``."""
    images: Mapping[str, Path]
    """Where images are that sandboxes are made of, absolute, by the names that they have in FROM."""
    results: Path
    """The results directory, absolute."""
    report: Path | None
    """The directory of the HTML report, absolute; None where none is written."""
    cases: Literal["summary", "subtests"]
    case: tuple[str, ...]
    """What the only cases are called that are run, with wildcards, for no verdict; empty to run all."""
    fail_under: float | None
    """Dataset Score, 0 to 100."""
    resume: str | None
    """The run to continue by name, ``latest`` for the newest, ``auto`` for that or a new one, None for a new one."""
    timeout_multiplier: float
    """What timeouts of agents and suites are multiplied by."""
    verify_times: int
    """How often each suite is run."""
    strict: bool
    """Whether suites find nothing of the agent's system that the task does not declare."""
    strict_keys: bool
    """Whether a key of a task.toml that the format does not know is an error, and no warning."""
    verify: Verify | None
    """How suites are judged by the session's choice; None for the tasks' own."""
    reward_key: str
    """The reward that decides where a suite writes several and the task does not say; empty for none."""
    replay: bool
    """Whether reference solutions are applied anew where the state that they lead to is cached."""
    reuse: bool
    """Whether the oracle's rounds are verified in the states that are kept of the reference solutions."""
    agent_options: tuple[str, ...]
    """Options of agents as given: ``option=value``."""
    budget: Budget
    process: float | None
    """Seconds to execute the states that an attempt went through, to score its process; None to not score it."""
    judge: str | None
    """The model that judges processes beside the rules."""
    storage: str | None
    """The directory, absolute, or the URL where attempts are saved; None for nowhere."""
    max_connections: int | None
    """Requests at once for each provider and key; None is the default number."""
    waiting_limit: float
    """Seconds that a turn may wait for its model's provider."""
    verifiers: int | None
    """Suites at once on this machine; None is one per core."""
    check: bool
    """Whether tasks are checked, and no agents run."""
    warm: bool
    """Whether images are built and reference solutions played for later runs, and no agents run."""
    pin: bool
    """Whether the cases of this run are written into each task's ``evocode.lock``."""
    shell: Literal["failed", "always"] | None
    """Whether a shell is opened in the fork of a failed round, or of every round."""
    keep: bool
    """Whether the forks of failed rounds outlive the session."""
    shard: tuple[int, int] | None
    """Which part of the attempts this session makes, from 1, of how many; None is all of them."""
    jobs: int
    """How many attempts this process makes at once."""
    cluster: str | None
    """The cluster whose nodes make the attempts, as given; None is this machine."""
    shard_times: Path | None
    """The results whose times tell how long attempts take, absolute; None is to go by timeouts."""
    snapshots: bool
    """Whether the state that every round was left in is kept, for ``evocode regrade``."""
    debug: bool
    """Whether pytest has ``--pdb``."""

    @property
    def protocol(self) -> str:
        """How attempts go through the rounds, where that is not all of them in order."""
        return protocol(self.mode, self.start)

    @property
    def start(self) -> str | None:
        """What chains begin with: a round by its name, or of forks ``A:round-3``; None is the first round."""
        return self.from_round if self.fork_from is None else self.fork_from.label

    def load(self, directory: Path) -> Task:
        """Load a task, to be verified as this session was asked to; who collects it warns of unknown keys.

        Raises:
            TaskError: Something is wrong with it.
        """
        from pytest_evocode.tasks import load_task

        # The check lint names them, beside what else there is to say of the task.
        is_refused = self.strict_keys and not self.check
        task = load_task(directory, unknown_keys="error" if is_refused else "ignore")
        return task.with_reward_key(self.reward_key).judged(self.verify)

    def open_storage(self) -> AttemptStorage | None:
        """Return where attempts are saved; None for nowhere."""
        if self.storage is None:
            return None
        from pytest_evocode.trial.storage import AttemptStorage

        return AttemptStorage(self.storage)

    @property
    def holds_forks(self) -> bool:
        """Whether the forks of failed rounds are still needed when their suites have ended."""
        return self.shell is not None or self.keep or self.debug


_AS_GIVEN = (
    *("attempts", "mode", "speculate", "fail_under", "resume", "timeout_multiplier", "verify_times", "strict"),
    *("verify", "replay", "reuse", "judge", "jobs", "cluster", "check", "warm", "pin", "keep", "snapshots"),
)
"""The options that need no reading."""


def read_settings(config: pytest.Config) -> Settings:
    """Return the session's settings; raises pytest.UsageError for options that make no sense."""
    refuse_unknown_settings(config)
    _refuse_combinations(config)
    if config.getoption("reruns", None):
        raise pytest.UsageError("--reruns cannot be used with --evocode-agent: a round depends on those before it")
    results = (config.invocation_params.dir / config.getoption("evocode_results")).resolve()
    settings = Settings(
        **{name: config.getoption(f"evocode_{name}") for name in _AS_GIVEN},
        agents=_read_agents(config),
        from_round=config.getoption("evocode_from"),
        fork_from=_read_fork(config),
        environment=config.getoption("evocode_env"),
        images=_read_images(config),
        results=results,
        report=_read_report(config, results),
        cases=_read_cases(config),
        case=tuple(config.getoption("evocode_case") or ()),
        reward_key=config.getoption("evocode_reward_key") or config.getini("evocode_reward_key").strip(),
        strict_keys=config.getini("evocode_strict_keys"),
        agent_options=tuple(config.getoption("evocode_agent_option")),
        budget=_read_budget(config),
        process=_read_process(config),
        storage=_read_storage(config),
        max_connections=read_count(config, "evocode_max_connections"),
        waiting_limit=60 * read_amount(config, "evocode_waiting_minutes", "minutes"),
        verifiers=read_count(config, "evocode_verifiers"),
        shell=_read_shell(config),
        shard=_read_shard(config),
        shard_times=_read_shard_times(config),
        debug=config.getoption("usepdb", False),
    )
    _refuse_nonsense(settings)
    return settings


def has_workers(config: pytest.Config) -> bool:
    """Tell whether pytest-xdist is asked for workers."""
    return config.getoption("dist", "no") != "no" and bool(config.getoption("tx"))


def _is_given(config: pytest.Config, name: str) -> bool:
    """Tell whether an option has another value than without it; 0 is one."""
    if name == "single-round":
        return bool(config.getoption("evocode_mode") == name)
    if name in ("-n", "--pdb"):
        return has_workers(config) if name == "-n" else config.getoption("usepdb", False)
    value = config.getoption(f"evocode_{name.replace('-', '_')}")
    return value is not None and value is not False and value != default_of(name)


def _refuse_combinations(config: pytest.Config) -> None:
    """Raise pytest.UsageError for options that make no sense beside one another."""

    def refuse(option: str, others: str, why: str) -> None:
        """Refuse other options beside one; ``why`` says that, with the other's name, and ``given`` with its value."""
        for name in others.split() if _is_given(config, option) else ():
            if _is_given(config, name):
                value = config.getoption(f"evocode_{name.replace('-', '_')}", None)
                raise pytest.UsageError(why.format(f"--evocode-{name}", given=f"--evocode-{name}={value}"))

    of_runs = "pin resume fail-under report shell keep shard shard-times mode from fork-from process snapshots"
    why = "--evocode-case runs some cases for their author, which is no verdict; leave out {}"
    refuse("case", "check pin resume fail-under report shard snapshots process", why)
    why = "--evocode-check runs no agent and pins nothing; leave out {}"
    refuse("check", f"agent warm speculate reuse {of_runs}", why)
    why = "--evocode-warm runs no agent and writes no results; leave out {}"
    refuse("warm", f"case replay reuse judge speculate {of_runs}", why)
    why = "--evocode-pin writes into tasks, and a dataset stays as it is; leave one of them out"
    refuse("pin", "dataset", why)
    refuse("pin", "mode from", "--evocode-pin plays whole chains; leave out --evocode-mode and --evocode-from")
    leads = "every round begins where the reference solutions lead; leave"
    why = f"about chains, and with --evocode-mode=single-round {leads}"
    refuse("single-round", "fork-from", f"{{given}} is {why} one of them out")
    refuse("single-round", "from", f"{{}} is {why} it out, and select rounds with -k or ::")
    why = "no round waits for another's verdict; leave it out"
    refuse("single-round", "speculate", f"{{}} is about chains, and with --evocode-mode=single-round {why}")
    goes_on = "{given} goes on from what an agent left, and --evocode-"
    refuse("from", "fork-from", f"{goes_on}from begins where the reference solutions lead; leave one out")
    refuse("pin", "fork-from", f"{goes_on}pin plays whole chains; leave one out")
    refuse("reuse", "fork-from", f"{goes_on}reuse takes no turn; leave one out")
    why = "cluster makes attempts on machines that have not what is kept here; leave one out"
    refuse("cluster", "fork-from", f"{goes_on}{why}")
    reuses = "--evocode-reuse takes no turn, and {}"
    refuse("reuse", "replay", f"{reuses} has every turn taken anew; leave one of them out")
    refuse("reuse", "snapshots", f"{reuses} keeps what turns of this run lead to; leave one of them out")
    one_process = "leave out -n, or use -n0"
    refuse("jobs", "-n", f"--evocode-jobs makes attempts at once in one process; {one_process}")
    refuse("cluster", "-n", f"--evocode-cluster makes attempts at once on the cluster's nodes; {one_process}")
    refuse("shell", "-n", f"--evocode-shell needs one process with a terminal; {one_process}")
    why = "would have no effect; leave one of them out"
    several = f"--evocode-jobs makes several attempts at once, where {{}} {why}"
    refuse("jobs", "check warm shell keep cluster", several)
    refuse("jobs", "--pdb", "--pdb looks into one attempt at a time; leave out --evocode-jobs")
    others = f"--evocode-cluster makes attempts on other machines, where {{}} {why}"
    refuse("cluster", "check warm pin case shell keep snapshots image", others)
    refuse("cluster", "--pdb", "--pdb cannot enter what runs on other machines; leave out --evocode-cluster")


def _refuse_nonsense(settings: Settings) -> None:
    """Raise pytest.UsageError for numbers that are out of range, and for agents that do not fit."""
    for agent in settings.agents if settings.case else ():
        if agent not in ("oracle", "nop") and not agent.startswith("replay:"):
            raise pytest.UsageError(
                f"--evocode-case keeps no results, so it takes no agent that may cost something, such as {agent}; "
                "use --evocode-agent=oracle, nop or replay:PATH"
            )
    if settings.reuse and "oracle" not in settings.agents:
        raise pytest.UsageError(
            "--evocode-reuse has the oracle take no turn where its state is kept; add --evocode-agent=oracle"
        )
    if settings.attempts < 1:
        raise pytest.UsageError(f"--evocode-attempts={settings.attempts}: it has to be 1 or more")
    if settings.verify_times < 1:
        raise pytest.UsageError(f"--evocode-verify-times={settings.verify_times}: it has to be 1 or more")
    if settings.jobs < 1:
        raise pytest.UsageError(f"--evocode-jobs={settings.jobs}: it has to be a number of attempts, such as 8")
    if settings.fail_under is not None and not 0 <= settings.fail_under <= 100:
        raise pytest.UsageError(f"--evocode-fail-under={settings.fail_under}: a Dataset Score lies between 0 and 100")
    if not 0 < (multiplier := settings.timeout_multiplier) < math.inf:
        raise pytest.UsageError(f"--evocode-timeout-multiplier={multiplier}: it has to be a number above 0")
    if settings.judge is not None and settings.process is None:
        raise pytest.UsageError("--evocode-judge judges how agents went about it; add --evocode-process")


def _read_agents(config: pytest.Config) -> tuple[str, ...]:
    pin = config.getoption("evocode_pin")
    agents = tuple(config.getoption("evocode_agent") or (["oracle"] if pin else []))
    if pin and agents != ("oracle",):
        raise pytest.UsageError("--evocode-pin writes down what the oracle passes; leave out --evocode-agent")
    for position, agent in enumerate(agents):
        if agent in agents[:position]:
            raise pytest.UsageError(
                f"--evocode-agent: {agent} is there twice; for more attempts of it use --evocode-attempts=2"
            )
    return agents


def _read_fork(config: pytest.Config) -> ForkPoint | None:
    text: str | None = config.getoption("evocode_fork_from")
    if text is None:
        return None
    try:
        return ForkPoint.parse(text)
    except ValueError:
        raise pytest.UsageError(
            f"--evocode-fork-from={text}: write it as AGENT:ROUND, such as gpt-5:round-3, or AGENT:ROUND@RUN for the "
            "attempts of a run"
        ) from None


def _read_report(config: pytest.Config, results: Path) -> Path | None:
    given: str | None = config.getoption("evocode_report")
    if given is None:
        return None
    # Beside the results, because whoever looks for them finds it there.
    return (config.invocation_params.dir / given).resolve() if given else results.parent / REPORT_DIRECTORY


def _read_shard(config: pytest.Config) -> tuple[int, int] | None:
    text: str | None = config.getoption("evocode_shard")
    if text is None:
        return None
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise pytest.UsageError(f"--evocode-shard={text}: write it as 2/8, for the second of eight parts")
    return int(number), int(of)


def _read_shard_times(config: pytest.Config) -> Path | None:
    text: str | None = config.getoption("evocode_shard_times")
    if text is None:
        return None
    given = f"--evocode-shard-times={text}"
    if config.getoption("evocode_shard") is None:
        raise pytest.UsageError(f"{given} says how parts are made; add --evocode-shard, such as 1/8")
    here = config.invocation_params.dir
    times, results = (here / text).resolve(), (here / config.getoption("evocode_results")).resolve()
    if not times.is_dir():
        raise pytest.UsageError(f"{given}: there is no such directory; name the results of an earlier run")
    if times == results or times in results.parents or results in times.parents:
        raise pytest.UsageError(
            f"{given}: this session writes results there, so the parts would change; name a copy of earlier results"
        )
    return times


def _read_images(config: pytest.Config) -> Mapping[str, Path]:
    """Return where the images are that are given; those of the command line win."""
    if not (config.getini("evocode_images") or config.getoption("evocode_image")):
        return {}
    from pytest_evocode.environments.sandbox.given_images import parse_given

    setting = setting_name(config, "evocode_images")
    given = [(setting, text, config.rootpath) for text in config.getini("evocode_images")]
    given += [
        ("--evocode-image", text, config.invocation_params.dir) for text in config.getoption("evocode_image") or ()
    ]
    images: dict[str, Path] = {}
    for where, text, place in given:
        try:
            name, path = parse_given(text)
        except UsageError as error:
            raise pytest.UsageError(f"{where}: {error}") from None
        images[name] = (place / path).resolve()
    return images


def _read_budget(config: pytest.Config) -> Budget:
    from pytest_evocode.llm.budget import parse_budget

    try:
        return parse_budget(config.getoption("evocode_budget"))
    except UsageError as error:
        raise pytest.UsageError(f"--evocode-budget: {error}") from None


def _read_cases(config: pytest.Config) -> Literal["summary", "subtests"]:
    text: str = config.getini("evocode_cases").strip()
    if text not in ("summary", "subtests"):
        raise wrong_setting(config, "evocode_cases", text, "summary or subtests")
    if text == "subtests" and not hasattr(pytest, "Subtests") and not config.pluginmanager.has_plugin("subtests"):
        raise pytest.UsageError("evocode_cases=subtests needs pytest 9, or the plugin pytest-subtests")
    return cast("Literal['summary', 'subtests']", text)


def _read_shell(config: pytest.Config) -> Literal["failed", "always"] | None:
    when: str | None = config.getoption("evocode_shell")
    if when not in (None, "failed", "always"):
        raise pytest.UsageError(f"--evocode-shell={when}: it has to be failed, as without a value, or always")
    return cast("Literal['failed', 'always'] | None", when)


def _read_process(config: pytest.Config) -> float | None:
    if not config.getoption("evocode_process"):
        return None
    return read_amount(config, "evocode_process_budget", "seconds")


def _read_storage(config: pytest.Config) -> str | None:
    text: str = config.getini("evocode_storage").strip()
    if not text or "://" in text:
        return text or None
    return str((config.rootpath / text).resolve())


def refuse_unknown_settings(config: pytest.Config) -> None:
    """Raise pytest.UsageError for a setting called like ours that there is none of; pytest only warns of it."""
    unknown, known = names_of_settings(config)
    for name in sorted(unknown):
        if name.startswith(prefix := "evocode_"):
            ours = [each.removeprefix(prefix) for each in known if each.startswith(prefix)]
            where = "-o" if _is_overridden(config, name) else config.inipath
            raise pytest.UsageError(
                f"{where}: unknown setting {name}{nearest(prefix, name.removeprefix(prefix), ours)}"
            )


def setting_name(config: pytest.Config, name: str) -> str:
    """Return a setting's name for a message, with where its value is from: pytest's ini file, or ``-o``."""
    return f"-o {name}" if _is_overridden(config, name) else f"{config.inipath}: {name}"


def _is_overridden(config: pytest.Config, name: str) -> bool:
    given: list[str] = config.getoption("override_ini") or []
    return any(each.partition("=")[0] == name for each in given)


def read_amount(config: pytest.Config, name: str, unit: str) -> float:
    """Return a setting that is an amount of ``unit``; raises pytest.UsageError for what is none."""
    text: str = config.getini(name).strip()
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise wrong_setting(config, name, text, f"{unit}, 0 or more")
    return amount


def read_count(config: pytest.Config, name: str) -> int | None:
    """Return a setting that is a number of things, None where it is empty; raises pytest.UsageError for others."""
    text: str = config.getini(name).strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise wrong_setting(config, name, text, "a whole number, 1 or more")
    return int(text)


def wrong_setting(config: pytest.Config, name: str, text: str, wanted: str) -> pytest.UsageError:
    """Return the error about the value of a setting that has to be what is ``wanted``."""
    equals = "=" if _is_overridden(config, name) else " = "
    return pytest.UsageError(f"{setting_name(config, name)}{equals}{text}: it has to be {wanted}")

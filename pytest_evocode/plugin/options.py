"""The command line, read once into one frozen object."""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from pytest_evocode.llm.budget import Budget
    from pytest_evocode.results.records import Mode

#: What ``--evocode-resume`` without a name continues.
LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a session was asked to do."""

    agents: tuple[str, ...]
    attempts: int
    mode: Mode
    from_round: str | None
    """The name of the round that chains begin with, at the state that the reference solutions lead to."""
    environment: str
    results: Path
    """The results directory, absolute."""
    cases: Literal["summary", "subtests"]
    fail_under: float | None
    """Dataset Score, 0 to 100."""
    resume: str | None
    """The run to continue by name, ``latest`` for the newest, None to begin a new one."""
    timeout_multiplier: float
    strict: bool
    replay: bool
    """Whether the oracle plays rounds that lead to a state which is known."""
    agent_options: tuple[str, ...]
    """As given: ``option=value``."""
    budget: Budget
    process: float | None
    """Seconds to execute what an attempt left on its way, where its process is scored; None where it is not."""
    judge: str | None
    """The model that judges processes beside the rules."""
    verifiers: int | None
    """Suites at once on this machine; None is one per core."""
    check: bool
    """Whether tasks are checked, and no agents run."""
    pin: bool
    """Whether the cases of this run are written into each task's ``evocode.lock``."""
    shell: bool
    """Whether a shell is opened in the fork of a failed round."""
    keep: bool
    """Whether the forks of failed rounds outlive the session."""
    shard: tuple[int, int] | None
    """Which part of the attempts this session makes, from 1, of how many; None is all of them."""
    snapshots: bool
    """Whether the state that every round was left in is kept, for ``evocode regrade``."""
    debug: bool
    """Whether pytest has ``--pdb``."""

    @property
    def protocol(self) -> str:
        """How attempts go through the rounds, where that is not all of them in order."""
        from pytest_evocode.names import protocol

        return protocol(self.mode, self.from_round)

    @property
    def holds_forks(self) -> bool:
        """Whether the forks of failed rounds are still needed when their suites have ended."""
        return self.shell or self.keep or self.debug


def add_options(parser: pytest.Parser) -> None:
    """Declare our options, as one group."""
    group = parser.getgroup("evocode", "multi-round coding benchmarks (pytest-evocode)")
    group.addoption(
        "--evocode-agent",
        action="append",
        metavar="AGENT",
        help="run the tasks with this agent (oracle plays the reference solutions; openai/MODEL, anthropic/MODEL, "
        "claude-code:MODEL, codex:MODEL, replay:PATH, cmd:NAME, ... or a declared name); may be given several times",
    )
    group.addoption(
        "--evocode-agent-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of the agents that take it, such as effort=high or base_url=URL; may be given several times",
    )
    group.addoption(
        "--evocode-budget",
        default="",
        metavar="LIMITS",
        help="end an agent's turns at these limits, as in tokens=200000,cost=3,turns=100,minutes=60 for each attempt "
        "and total-cost=50 for the run",
    )
    group.addoption(
        "--evocode-attempts",
        type=int,
        default=1,
        metavar="K",
        help="attempts of every agent at every task (default: %(default)s)",
    )
    group.addoption(
        "--evocode-shard",
        metavar="I/N",
        help="make the I-th of N parts of the attempts only, for N jobs that know nothing of each other",
    )
    group.addoption(
        "--evocode-mode",
        choices=("chain", "fail-stop", "single-round"),
        default="chain",
        help="chain: all rounds, one after the other (default); fail-stop: up to the first that does not pass; "
        "single-round: each by itself, where the reference solutions of those before lead",
    )
    group.addoption(
        "--evocode-from",
        metavar="ROUND",
        help="begin chains with this round, where the reference solutions of those before lead, which do not count",
    )
    group.addoption(
        "--evocode-env",
        default="auto",
        metavar="ENV",
        help="where attempts live: docker, sandbox, or auto (docker where a daemon answers; default)",
    )
    group.addoption(
        "--evocode-results",
        default="evocode-results",
        metavar="DIR",
        help="results directory, relative to where pytest is started (default: %(default)s)",
    )
    group.addoption(
        "--evocode-cases",
        choices=("summary", "subtests"),
        default="summary",
        help="show the cases of a suite in the report of a failed round (default), or each as a subtest",
    )
    group.addoption(
        "--evocode-fail-under",
        type=float,
        metavar="SCORE",
        help="take failed rounds as data: exit with 0 when every agent's Dataset Score is at least SCORE (0 to 100)",
    )
    group.addoption(
        "--evocode-resume",
        nargs="?",
        const=LATEST,
        metavar="RUN",
        help="continue the unfinished attempts of a run, named as in the results directory (default: the newest)",
    )
    group.addoption(
        "--evocode-timeout-multiplier",
        type=float,
        default=1.0,
        metavar="X",
        help="multiply the tasks' timeouts of agents and suites (default: %(default)s)",
    )
    group.addoption(
        "--evocode-strict",
        action="store_true",
        help="fail a round in which the agent had changed tools of the image, such as /usr/bin/python3",
    )
    group.addoption(
        "--evocode-shell",
        action="store_true",
        help="after a failed round open a shell in the copy of the container where its suite failed",
    )
    group.addoption(
        "--evocode-keep",
        action="store_true",
        help="leave that copy of every failed round behind, and print how to enter it",
    )
    group.addoption(
        "--evocode-snapshots",
        action="store_true",
        help="keep the files that every round was left with, so that evocode regrade can verify them again",
    )
    group.addoption(
        "--evocode-check",
        action="store_true",
        help="check the tasks themselves, with their reference solutions, and run no agent",
    )
    group.addoption(
        "--evocode-pin",
        action="store_true",
        help="write the cases that the oracle passes into each task's evocode.lock: later scores count by them",
    )
    group.addoption(
        "--evocode-replay",
        action="store_true",
        help="have the oracle play all rounds before a selected one, and not begin at the state they led to before",
    )
    parser.addini(
        "evocode_agent_options",
        type="linelist",
        default=[],
        help="options of agents, one KEY=VALUE a line; --evocode-agent-option wins",
    )
    group.addoption(
        "--evocode-process",
        action="store_true",
        help="score how agents went about it: RigorBench's seven pillars, beside the scores",
    )
    group.addoption(
        "--evocode-judge",
        metavar="PROVIDER/MODEL",
        help="with --evocode-process: have a model judge, too, what rules judge of a process",
    )
    parser.addini(
        "evocode_process_budget",
        type="string",
        default="300",
        help="seconds in which --evocode-process may build and test what an attempt left on its way (default: 300)",
    )
    parser.addini(
        "evocode_verifiers",
        type="string",
        default="",
        help="how many suites may run at once on this machine, over all workers and sessions (default: one per core)",
    )


def spell_out(args: list[str], known: argparse.Namespace) -> None:
    """Give a bare ``--evocode-resume`` its value: argparse would take the path that follows it."""
    for position, argument in enumerate(args):
        if argument == "--":
            return
        if argument == "--evocode-resume":
            args[position] = f"--evocode-resume={LATEST}"
            if known.evocode_resume != LATEST:
                known.file_or_dir = [known.evocode_resume, *known.file_or_dir]
                known.evocode_resume = LATEST


def in_use(config: pytest.Config) -> bool:
    """Whether the session runs tasks at all."""
    known = config.known_args_namespace
    return any(getattr(known, name, None) for name in ("evocode_agent", "evocode_check", "evocode_pin"))


def read_settings(config: pytest.Config) -> Settings:
    """The session's settings; raises pytest.UsageError for what cannot be meant."""
    check, pin = config.getoption("evocode_check"), config.getoption("evocode_pin")
    agents = _read_agents(config)
    attempts = config.getoption("evocode_attempts")
    fail_under = config.getoption("evocode_fail_under")
    timeout_multiplier = config.getoption("evocode_timeout_multiplier")
    if not 0 < timeout_multiplier < math.inf:
        raise pytest.UsageError(f"--evocode-timeout-multiplier={timeout_multiplier}: it has to be a number above 0")
    if attempts < 1:
        raise pytest.UsageError(f"--evocode-attempts={attempts}: it has to be 1 or more")
    if fail_under is not None and not 0 <= fail_under <= 100:
        raise pytest.UsageError(f"--evocode-fail-under={fail_under}: a Dataset Score lies between 0 and 100")
    if config.getoption("reruns", None):
        raise pytest.UsageError("--reruns cannot be used with --evocode-agent: a round depends on those before it")
    mode, from_round = config.getoption("evocode_mode"), config.getoption("evocode_from")
    if mode == "single-round" and from_round is not None:
        raise pytest.UsageError(
            "--evocode-from is about chains, and with --evocode-mode=single-round every round begins where the "
            "reference solutions lead; leave it out, and select rounds with -k or ::"
        )
    return Settings(
        agents=agents,
        attempts=attempts,
        mode=mode,
        from_round=from_round,
        environment=config.getoption("evocode_env"),
        results=(config.invocation_params.dir / config.getoption("evocode_results")).resolve(),
        cases=config.getoption("evocode_cases"),
        fail_under=fail_under,
        resume=config.getoption("evocode_resume"),
        timeout_multiplier=timeout_multiplier,
        strict=config.getoption("evocode_strict"),
        replay=config.getoption("evocode_replay"),
        agent_options=tuple(config.getoption("evocode_agent_option")),
        budget=_read_budget(config),
        process=_read_process(config),
        judge=_read_judge(config),
        verifiers=_read_verifiers(config),
        check=check,
        pin=pin,
        shell=_read_shell(config),
        keep=config.getoption("evocode_keep"),
        shard=_read_shard(config),
        snapshots=config.getoption("evocode_snapshots"),
        debug=config.getoption("usepdb", False),
    )


def _read_agents(config: pytest.Config) -> tuple[str, ...]:
    check, pin = config.getoption("evocode_check"), config.getoption("evocode_pin")
    agents = tuple(config.getoption("evocode_agent") or (["oracle"] if pin else []))
    if check:
        _refuse_options_of_runs(config)
    if pin and agents != ("oracle",):
        raise pytest.UsageError("--evocode-pin writes down what the oracle passes; leave out --evocode-agent")
    if pin and (config.getoption("evocode_mode") != "chain" or config.getoption("evocode_from") is not None):
        raise pytest.UsageError("--evocode-pin plays whole chains; leave out --evocode-mode and --evocode-from")

    from pytest_evocode.names import agent_id

    names = [agent_id(agent) for agent in agents]
    for position, name in enumerate(names):
        if name in names[:position]:
            raise pytest.UsageError(f"--evocode-agent: {agents[position]} is named {name!r}, as another agent is")
    return agents


def _refuse_options_of_runs(config: pytest.Config) -> None:
    for name in (
        "agent",
        "pin",
        "resume",
        "fail-under",
        "shell",
        "keep",
        "shard",
        "mode",
        "from",
        "process",
        "snapshots",
    ):
        if config.getoption(f"evocode_{name.replace('-', '_')}") not in (None, False, "chain"):
            raise pytest.UsageError(f"--evocode-check runs no agent and pins nothing; leave out --evocode-{name}")


def _read_shard(config: pytest.Config) -> tuple[int, int] | None:
    text: str | None = config.getoption("evocode_shard")
    if text is None:
        return None
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise pytest.UsageError(f"--evocode-shard={text}: write it as 2/8, for the second of eight parts")
    return int(number), int(of)


def _read_shell(config: pytest.Config) -> bool:
    if not config.getoption("evocode_shell"):
        return False
    if config.getoption("dist", "no") != "no" and config.getoption("tx"):
        raise pytest.UsageError("--evocode-shell needs one process with a terminal; leave out -n, or use -n0")
    return True


def require_terminal(known: argparse.Namespace) -> None:
    """Raise pytest.UsageError where a terminal is needed and there is none; to be called before output is captured."""
    if known.evocode_shell and not os.isatty(0):
        raise pytest.UsageError("--evocode-shell needs a terminal, and standard input is none; --evocode-keep does not")


def _read_budget(config: pytest.Config) -> Budget:
    from pytest_evocode.errors import UsageError
    from pytest_evocode.llm.budget import parse_budget

    try:
        return parse_budget(config.getoption("evocode_budget"))
    except UsageError as error:
        raise pytest.UsageError(f"--evocode-budget: {error}") from None


def _read_judge(config: pytest.Config) -> str | None:
    judge: str | None = config.getoption("evocode_judge")
    if judge is not None and not config.getoption("evocode_process"):
        raise pytest.UsageError("--evocode-judge judges how agents went about it; add --evocode-process")
    return judge


def _read_process(config: pytest.Config) -> float | None:
    if not config.getoption("evocode_process"):
        return None
    text: str = config.getini("evocode_process_budget").strip()
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise pytest.UsageError(f"{config.inipath}: evocode_process_budget = {text}: it has to be seconds, 0 or more")
    return seconds


def _read_verifiers(config: pytest.Config) -> int | None:
    text: str = config.getini("evocode_verifiers").strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise pytest.UsageError(f"{config.inipath}: evocode_verifiers = {text}: it has to be a whole number, 1 or more")
    return int(text)

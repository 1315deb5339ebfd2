"""The command-line options and ini settings of pytest-evocode, as ``pytest --help`` shows them."""

from __future__ import annotations

import argparse
import copy
import glob
import os
from collections.abc import Callable, Iterable
from typing import Any, Literal

import pytest

#: What ``--evocode-resume`` without a name continues.
LATEST = "latest"
#: Options that may stand alone, and the values that they then have.
_BARE = {"--evocode-resume": LATEST, "--evocode-shell": "failed", "--evocode-report": ""}
_PREFIX = "--evocode-"
_Add = Callable[..., None]


def add_options(parser: pytest.Parser) -> None:
    """Declare the options, as one group, and the settings that do not change from run to run."""
    group = parser.getgroup("evocode", "multi-round coding benchmarks (pytest-evocode)")

    def option(name: str, metavar: str, help: str, **how: Any) -> None:
        group.addoption(f"{_PREFIX}{name}", metavar=metavar, help=help, **how)

    def flag(name: str, help: str) -> None:
        group.addoption(f"{_PREFIX}{name}", action="store_true", help=help)

    def setting(name: str, help: str, default: str | bool | list[str] = "") -> None:
        kinds: dict[type, Literal["string", "bool", "linelist"]] = {str: "string", bool: "bool", list: "linelist"}
        parser.addini(f"evocode_{name}", type=kinds[type(default)], default=default, help=help)

    for add in (_add_attempt_options, _add_suite_options, _add_run_options, _add_flags_for_authors):
        add(option, flag)
    _add_ini_settings(setting)


def _add_attempt_options(option: _Add, flag: _Add) -> None:
    """Declare who attempts the tasks, how, and with which limits."""
    option(
        "agent",
        "AGENT",
        "run the tasks with AGENT: oracle, nop, openai/MODEL, codex:MODEL, replay:PATH, ...; repeatable",
        action="append",
    )
    option(
        "agent-option",
        "KEY=VALUE",
        "set an option of the agents (effort=high); repeatable",
        action="append",
        default=[],
    )
    option("attempts", "K", "let every agent attempt every task K times (default: %(default)s)", type=int, default=1)
    option(
        "mode",
        "MODE",
        "chain: all rounds in order (default); fail-stop: stop at the first failure; single-round: each by itself",
        choices=("chain", "fail-stop", "single-round"),
        default="chain",
    )
    option("from", "ROUND", "start at ROUND, where reference solutions lead to")
    flag(
        "speculate",
        "let agents begin their next turn ahead of a verdict that may end the attempt, and drop it if it does",
    )
    option(
        "env",
        "ENV",
        "docker, sandbox, or auto: docker if it answers (default)",
        default="auto",
    )
    option(
        "image",
        "NAME=PATH",
        "have PATH, an OCI layout or archive, for FROM NAME",
        action="append",
    )
    option(
        "budget",
        "LIMITS",
        "stop at LIMITS: tokens, cost, turns, minutes=N of an attempt, N/round of a round, total-cost=USD of all",
        default="",
    )
    option(
        "timeout-multiplier", "X", "multiply all timeouts of tasks by X (default: %(default)s)", type=float, default=1.0
    )


def _add_suite_options(option: _Add, flag: _Add) -> None:
    """Declare how rounds are verified."""
    option(
        "verify-times",
        "N",
        "run every suite N times; each has to pass (default: %(default)s)",
        type=int,
        default=1,
    )
    flag("strict", "judge by nothing that the agent changed outside of its workspace and the task's declared state")
    option(
        "verify",
        "WHERE",
        "in-place: run every test.sh where the agent worked, as Harbor does; clean: run none there",
        choices=("clean", "in-place"),
    )
    option("reward-key", "KEY", "the reward that decides if a suite writes several")


def _add_run_options(option: _Add, flag: _Add) -> None:
    """Declare what a run is of, and what it writes, scores and exits with."""
    option(
        "dataset",
        "GIT",
        "run the tasks of git+URL@COMMIT#PATH; repeatable",
        action="append",
        default=[],
    )
    flag("dry-run", "start nothing; print what a run would take")
    option("results", "DIR", "write results to DIR (default: %(default)s)", default="evocode-results")
    option("resume", "RUN", "continue a run's unfinished attempts (default: newest)", nargs="?", const=LATEST)
    option(
        "report",
        "DIR",
        "write an HTML report to DIR, or beside the results",
        nargs="?",
        const=_BARE["--evocode-report"],
    )
    option("jobs", "N", "make N attempts at once", type=int, default=1)
    option("cluster", "ray[:ADDR]", "make attempts on the nodes of a Ray cluster")
    option("shard", "I/N", "make only the I-th of N equal parts of the attempts")
    option("shard-times", "DIR", "make shards equally long by the times in DIR")
    option("fail-under", "SCORE", "exit with 0 if all Dataset Scores reach SCORE (0-100)", type=float)
    flag("process", "also score how agents work, by RigorBench's pillars")
    option("judge", "PROVIDER/MODEL", "with --evocode-process: let a model judge it as well")


def _add_flags_for_authors(option: _Add, flag: _Add) -> None:
    """Declare what is left of rounds to look at, and what authors of tasks need besides."""
    option(
        "case",
        "PATTERN",
        "run only the cases called PATTERN ('test_price*') of the selected rounds, for no verdict; repeatable",
        action="append",
    )
    option(
        "shell",
        "WHEN",
        "open a shell where a suite failed (=always: wherever)",
        nargs="?",
        const=_BARE["--evocode-shell"],
    )
    flag("keep", "keep environments where suites failed, to be entered")
    flag("snapshots", "keep the files of every round for 'evocode regrade'")
    flag("warm", "make images and reference states ready; run no agent")
    flag("check", "check the tasks themselves, and run no agent")
    flag("pin", "write the cases that the oracle passes to evocode.lock")
    flag("replay", "use nothing that is kept of reference solutions")
    flag("reuse", "run the oracle's suites only, in states that are kept")


def _add_ini_settings(setting: _Add) -> None:
    """Declare what a project sets once."""
    setting("agent_options", "options of agents, one KEY=VALUE a line; --evocode-agent-option wins", default=[])
    setting(
        "reward_key",
        "the reward that decides where a suite writes several and the task does not say which; "
        "--evocode-reward-key wins",
    )
    setting(
        "cases",
        "show a suite's cases in the report of a failed round (summary, the default), or each as a subtest (subtests)",
        default="summary",
    )
    setting(
        "cluster_resources",
        "with --evocode-cluster: resources that an agent's attempts need, one AGENT: NAME=AMOUNT a line",
        default=[],
    )
    setting(
        "images",
        "images that sandboxes are made of, one NAME=PATH a line, relative to the root directory; --evocode-image wins",
        default=[],
    )
    setting("max_connections", "requests under way at once per model provider and key, over all workers (default: 100)")
    setting(
        "process_budget",
        "seconds in which --evocode-process may build and test what an attempt left on its way (default: 300)",
        default="300",
    )
    setting(
        "storage", "a directory or URL (s3://bucket/prefix) where attempts are saved, for another machine to resume"
    )
    setting(
        "waiting_minutes",
        "minutes that a turn may wait for rate limits and failures of its model's provider (default: 60)",
        default="60",
    )
    setting("strict_keys", "refuse tasks with keys that the format does not know (default: false, warn)", default=False)
    setting(
        "verifiers", "how many slots for suites this machine has, over all workers and sessions (default: one per core)"
    )


def spell_out_bare(args: list[str], namespace: argparse.Namespace) -> None:
    """Give options that stand alone their values: argparse would take the path that follows one for its value."""
    for position, argument in enumerate(args):
        if argument == "--":
            return
        if (value := _BARE.get(argument)) is not None:
            args[position] = f"{argument}={value}"
            name = argument.removeprefix("--").replace("-", "_")
            if (taken := getattr(namespace, name)) != value:
                namespace.file_or_dir = [taken, *namespace.file_or_dir]
                setattr(namespace, name, value)


def starts_of(config: pytest.Config) -> list[str]:
    """Return the paths that pytest is going to start from, as far as is known before conftest files are loaded."""
    namespace, here = config.known_args_namespace, config.invocation_params.dir
    if namespace.file_or_dir:
        return list(namespace.file_or_dir)
    patterns: list[str] = config.getini("testpaths") if here == config.rootpath else []
    return [path for pattern in patterns for path in sorted(glob.iglob(pattern, recursive=True))] or [str(here)]


def directories_of_tests(path: str) -> list[str]:
    """Return the directories below one that pytest is called with in which it looks for conftest files at once."""
    return glob.glob(os.path.join(glob.escape(path), "test*"))


def refuse_unknown(parser: pytest.Parser, args: list[str], config: pytest.Config) -> None:
    """Raise pytest.UsageError for an option that is called like ours and that nobody declares, with the nearest one.

    pytest refuses it too, without a hint. To be called once all plugins have declared their options.
    """
    if not any(argument.startswith(_PREFIX) for argument in args):
        return
    ours = (name for name in vars(config.known_args_namespace) if name.startswith("evocode_"))
    known = [name.removeprefix("evocode_").replace("_", "-") for name in ours]
    for argument in parser.parse_known_and_unknown_args(args, copy.copy(config.option))[1]:
        if argument.startswith(_PREFIX):
            name = argument.removeprefix(_PREFIX).partition("=")[0]
            raise pytest.UsageError(f"unrecognized arguments: {argument}{nearest(_PREFIX, name, known)}")


def nearest(prefix: str, given: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the known one that is meant, or all of them.

    >>> nearest("--evocode-", "agnet", ["agent", "env"]), nearest("evocode_", "x", ["b", "a"])
    ('; did you mean --evocode-agent?', '; there are evocode_a, evocode_b')
    """
    from difflib import get_close_matches

    found = get_close_matches(given, known := sorted(known), n=1)
    return (
        f"; did you mean {prefix}{found[0]}?" if found else f"; there are {', '.join(prefix + each for each in known)}"
    )


def in_use(config: pytest.Config) -> bool:
    """Tell whether the session runs, warms or checks tasks at all."""
    namespace = config.known_args_namespace
    return any(
        getattr(namespace, name, None) for name in ("evocode_agent", "evocode_check", "evocode_warm", "evocode_pin")
    )


def require_terminal(namespace: argparse.Namespace) -> None:
    """Raise pytest.UsageError where a terminal is needed and there is none; to be called before output is captured."""
    if namespace.evocode_shell and not os.isatty(0):
        raise pytest.UsageError("--evocode-shell needs a terminal, and standard input is none; --evocode-keep does not")

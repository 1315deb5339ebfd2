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
#: What continues the newest run that fits, and begins a new one where there is none.
AUTO = "auto"
#: Options that may stand alone, and the values that they then have.
_BARE = {"--evocode-resume": LATEST, "--evocode-shell": "failed", "--evocode-report": ""}
_PREFIX = "--evocode-"
_Add = Callable[..., None]
Counts = bool | Callable[[str], str]
"""Whether an option or a setting can change a verdict or a score, so that it is among the conditions of an attempt. All
are that do not say otherwise. What records have as a field of its own, such as the agent and the mode, says that it
does not count, too. A function returns the part of the value that counts.
"""


def conditions(config: pytest.Config, *, only_changed: bool = False) -> dict[str, str]:
    """Return the options and settings of a session that can change a verdict or a score, as texts by name.

    What is not given, and has no default, is left out; with ``only_changed`` all that is as its default. An option
    comes before the setting of its name.
    """
    found: dict[str, str] = {}

    def note(name: str, value: object, default: object, counts: Counts) -> None:
        text = counts(_plain(value)) if callable(counts) else _plain(value)
        if counts and text and not (only_changed and text == _plain(default)):
            found.setdefault(name, text)

    def option(name: str, metavar: str, help: str, *, counts: Counts = True, **how: Any) -> None:
        note(name, config.getoption(f"evocode_{name.replace('-', '_')}"), how.get("default"), counts)

    def flag(name: str, help: str, *, counts: Counts = True) -> None:
        option(name, "", help, counts=counts)

    def setting(name: str, help: str, default: str | bool | list[str] = "", *, counts: Counts = True) -> None:
        note(name.replace("_", "-"), config.getini(f"evocode_{name}"), default, counts)

    _declare(option, flag, setting)
    return found


def _plain(value: object) -> str:
    """Return the value of an option as a text, the same for the same number; empty where nothing is given.

    >>> _plain(1.0), _plain("60.0"), _plain(True), _plain(["b", "a"]), _plain(None), _plain(False), _plain("clean")
    ('1', '60', 'yes', 'b, a', '', '', 'clean')
    """
    if value is None or isinstance(value, bool):
        return "yes" if value else ""
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value).strip()
    try:
        return f"{float(text):g}"
    except ValueError:
        return text


def add_options(parser: pytest.Parser) -> None:
    """Declare the options, as one group, and the settings that do not change from run to run."""
    group = parser.getgroup("evocode", "multi-round coding benchmarks (pytest-evocode)")

    def option(name: str, metavar: str, help: str, *, counts: Counts = True, **how: Any) -> None:
        group.addoption(f"{_PREFIX}{name}", metavar=metavar, help=help, **how)

    def flag(name: str, help: str, *, counts: Counts = True) -> None:
        group.addoption(f"{_PREFIX}{name}", action="store_true", help=help)

    def setting(name: str, help: str, default: str | bool | list[str] = "", *, counts: Counts = True) -> None:
        kinds: dict[type, Literal["string", "bool", "linelist"]] = {str: "string", bool: "bool", list: "linelist"}
        parser.addini(f"evocode_{name}", type=kinds[type(default)], default=default, help=help)

    _declare(option, flag, setting)


def _declare(option: _Add, flag: _Add, setting: _Add) -> None:
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
        counts=False,
    )
    option(
        "agent-option",
        "KEY=VALUE",
        "set an option of the agents (effort=high); repeatable",
        action="append",
        default=[],
        counts=False,
    )
    option(
        "attempts",
        "K",
        "let every agent attempt every task K times (default: %(default)s)",
        type=int,
        default=1,
        counts=False,
    )
    option(
        "mode",
        "MODE",
        "chain: all rounds in order (default); fail-stop: stop at the first failure; single-round: each by itself",
        choices=("chain", "fail-stop", "single-round"),
        default="chain",
        counts=False,
    )
    option("from", "ROUND", "start at ROUND, where reference solutions lead to", counts=False)
    option(
        "fork-from",
        "A:ROUND",
        "go on from what agent A left after ROUND (A:ROUND@RUN)",
        counts=False,
    )
    flag(
        "speculate",
        "begin turns ahead of verdicts that may end the attempt",
        counts=False,
    )
    option("env", "ENV", "docker, sandbox, or auto: docker if it answers (default)", default="auto", counts=False)
    option("image", "NAME=PATH", "have PATH, an OCI layout or archive, for FROM NAME", action="append", counts=False)
    option(
        "budget",
        "LIMITS",
        "stop at LIMITS: tokens, cost, turns, minutes=N of an attempt, N/round of a round, total-cost=USD of all",
        default="",
        counts=_limits_of_attempts,
    )
    option(
        "timeout-multiplier", "X", "multiply all timeouts of tasks by X (default: %(default)s)", type=float, default=1.0
    )


def _limits_of_attempts(budget: str) -> str:
    """Return the limits in order, without that of the whole run, at which attempts wait and none fails.

    >>> _limits_of_attempts("turns=30/round, total-cost=5,tokens=1000")
    'tokens=1000,turns=30/round'
    """
    limits = sorted(limit.strip() for limit in budget.split(",") if limit.strip())
    return ",".join(limit for limit in limits if not limit.startswith("total-cost="))


def _add_suite_options(option: _Add, flag: _Add) -> None:
    """Declare how rounds are verified."""
    option(
        "verify-times",
        "N",
        "run every suite N times; each has to pass (default: %(default)s)",
        type=int,
        default=1,
    )
    flag("strict", "judge by no change outside workspace and declared state")
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
        "dataset", "GIT", "run the tasks of git+URL@COMMIT#PATH; repeatable", action="append", default=[], counts=False
    )
    flag("dry-run", "start nothing; print what a run would take", counts=False)
    option("results", "DIR", "write results to DIR (default: %(default)s)", default="evocode-results", counts=False)
    option(
        "resume",
        "RUN",
        "continue RUN (default: newest; auto: or begin one)",
        nargs="?",
        const=LATEST,
        counts=False,
    )
    option(
        "report",
        "DIR",
        "write an HTML report to DIR, or beside the results",
        nargs="?",
        const=_BARE["--evocode-report"],
        counts=False,
    )
    option("jobs", "N", "make N attempts at once", type=int, default=1, counts=False)
    option("cluster", "ray[:ADDR]", "make attempts on the nodes of a Ray cluster", counts=False)
    option("shard", "I/N", "make only the I-th of N equal parts of the attempts", counts=False)
    option("shard-times", "DIR", "make shards equally long by the times in DIR", counts=False)
    option("fail-under", "SCORE", "exit with 0 if Dataset Scores but controls' reach SCORE", type=float, counts=False)
    flag("process", "also score how agents work, by RigorBench's pillars", counts=False)
    option("judge", "PROVIDER/MODEL", "with --evocode-process: let a model judge it as well", counts=False)


def _add_flags_for_authors(option: _Add, flag: _Add) -> None:
    """Declare what is left of rounds to look at, and what authors of tasks need besides."""
    option(
        "case",
        "PATTERN",
        "run only the cases called PATTERN ('test_price*') of the selected rounds, for no verdict; repeatable",
        action="append",
        counts=False,
    )
    option(
        "shell",
        "WHEN",
        "open a shell where a suite failed (=always: wherever)",
        nargs="?",
        const=_BARE["--evocode-shell"],
        counts=False,
    )
    flag("keep", "keep environments where suites failed, to be entered", counts=False)
    flag("snapshots", "keep each round's files for forks and 'evocode regrade'", counts=False)
    flag("warm", "make images and reference states ready; run no agent", counts=False)
    flag("check", "check the tasks themselves, and run no agent", counts=False)
    flag("pin", "write the cases that the oracle passes to evocode.lock", counts=False)
    flag("replay", "use nothing that is kept of reference solutions", counts=False)
    flag("reuse", "run the oracle's suites only, in states that are kept", counts=False)


def _add_ini_settings(setting: _Add) -> None:
    """Declare what a project sets once."""
    _add_settings_of_tasks(setting)
    _add_settings_of_machines(setting)


def _add_settings_of_tasks(setting: _Add) -> None:
    """Declare what a project sets once about its agents and tasks."""
    setting(
        "agent_options",
        "options of agents, one KEY=VALUE a line; --evocode-agent-option wins",
        default=[],
        counts=False,
    )
    setting(
        "reward_key",
        "the reward that decides where a suite writes several and the task does not say which; "
        "--evocode-reward-key wins",
    )
    setting(
        "cases",
        "show a suite's cases in the report of a failed round (summary, the default), or each as a subtest (subtests)",
        default="summary",
        counts=False,
    )
    setting(
        "strict_keys",
        "refuse tasks with keys that the format does not know (default: false, warn)",
        default=False,
        counts=False,
    )
    setting(
        "process_budget",
        "seconds in which --evocode-process may build and test what an attempt left on its way (default: 300)",
        default="300",
        counts=False,
    )


def _add_settings_of_machines(setting: _Add) -> None:
    """Declare what a project sets once about machines, providers and storage."""
    setting(
        "cluster_resources",
        "with --evocode-cluster: resources that an agent's attempts need, one AGENT: NAME=AMOUNT a line",
        default=[],
        counts=False,
    )
    setting(
        "images",
        "images that sandboxes are made of, one NAME=PATH a line, relative to the root directory; --evocode-image wins",
        default=[],
        counts=False,
    )
    setting(
        "max_connections",
        "requests under way at once per model provider and key, over all workers (default: 100)",
        counts=False,
    )
    setting(
        "storage",
        "a directory or URL (s3://bucket/prefix) where attempts are saved, for another machine to resume",
        counts=False,
    )
    setting(
        "waiting_minutes",
        "minutes that a turn may wait for rate limits and failures of its model's provider (default: 60)",
        default="60",
        counts=False,  # A turn that waits too long has no verdict, and a session with more minutes goes on with it.
    )
    setting(
        "verifiers",
        "how many slots for suites this machine has, over all workers and sessions (default: one per core)",
        counts=False,
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

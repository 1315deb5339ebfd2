"""The command-line options and ini settings of pytest-evocode, as ``pytest --help`` shows them."""

from __future__ import annotations

import argparse
import copy
import glob
import os
from collections.abc import Iterable
from typing import Any

import pytest

#: What ``--evocode-resume`` without a name continues.
LATEST = "latest"
#: What continues the newest run that fits, and begins a new one where there is none.
AUTO = "auto"
_PREFIX = "--evocode-"
_How = dict[str, Any]
"""What argparse, or pytest's parser of ini files, is told of an option or a setting."""


def _option(name: str, metavar: str, help: str, **how: Any) -> tuple[str, _How]:
    return name, {"metavar": metavar, "help": help, **how}


def _flag(name: str, help: str) -> tuple[str, _How]:
    return name, {"action": "store_true", "help": help}


def _setting(name: str, help: str, default: str | bool | list[str] = "") -> tuple[str, _How]:
    kinds = {str: "string", bool: "bool", list: "linelist"}
    return name, {"type": kinds[type(default)], "default": default, "help": help}


_OPTIONS = [
    # Who attempts the tasks, how, and with which limits.
    _option(
        "agent",
        "AGENT",
        "run the tasks with AGENT: oracle, nop, openai/MODEL, codex:MODEL, replay:PATH, ...; repeatable",
        action="append",
    ),
    _option(
        "agent-option",
        "KEY=VALUE",
        "set an option of the agents (effort=high); repeatable",
        action="append",
        default=[],
    ),
    _option("attempts", "K", "let every agent attempt every task K times (default: %(default)s)", type=int, default=1),
    _option(
        "mode",
        "MODE",
        "chain: all rounds in order (default); fail-stop: stop at the first failure; single-round: each by itself",
        choices=("chain", "fail-stop", "single-round"),
        default="chain",
    ),
    _option("from", "ROUND", "start at ROUND, where reference solutions lead to"),
    _option("fork-from", "A:ROUND", "go on from what agent A left after ROUND (A:ROUND@RUN)"),
    _flag("speculate", "begin turns ahead of verdicts that may end the attempt"),
    _option("env", "ENV", "docker, sandbox, or auto: docker if it answers (default)", default="auto"),
    _option("image", "NAME=PATH", "have PATH, an OCI layout or archive, for FROM NAME", action="append"),
    _option(
        "budget",
        "LIMITS",
        "stop at LIMITS: tokens, cost, turns, minutes=N of an attempt, N/round of a round, total-cost=USD of all",
        default="",
    ),
    _option(
        "timeout-multiplier", "X", "multiply all timeouts of tasks by X (default: %(default)s)", type=float, default=1.0
    ),
    # How rounds are verified.
    _option(
        "verify-times", "N", "run every suite N times; each has to pass (default: %(default)s)", type=int, default=1
    ),
    _flag("strict", "judge by no change outside workspace and declared state"),
    _option(
        "verify",
        "WHERE",
        "in-place: run every test.sh where the agent worked, as Harbor does; clean: run none there",
        choices=("clean", "in-place"),
    ),
    _option("reward-key", "KEY", "the reward that decides if a suite writes several"),
    # What a run is of, and what it writes, scores and exits with.
    _option("dataset", "GIT", "run the tasks of git+URL@COMMIT#PATH; repeatable", action="append", default=[]),
    _flag("dry-run", "start nothing; print what a run would take"),
    _option("results", "DIR", "write results to DIR (default: %(default)s)", default="evocode-results"),
    _option("resume", "RUN", "continue RUN (default: newest; auto: or begin one)", nargs="?", const=LATEST),
    _option("report", "DIR", "write an HTML report to DIR, or beside the results", nargs="?", const=""),
    _option("jobs", "N", "make N attempts at once", type=int, default=1),
    _option("cluster", "ray[:ADDR]", "make attempts on the nodes of a Ray cluster"),
    _option("shard", "I/N", "make only the I-th of N equal parts of the attempts"),
    _option("shard-times", "DIR", "make shards equally long by the times in DIR"),
    _option("fail-under", "SCORE", "exit with 0 if Dataset Scores but controls' reach SCORE", type=float),
    _flag("process", "also score how agents work, by RigorBench's pillars"),
    _option("judge", "PROVIDER/MODEL", "with --evocode-process: let a model judge it as well"),
    # What is left of rounds to look at, and what authors of tasks need besides.
    _option(
        "case",
        "PATTERN",
        "run only the cases called PATTERN ('test_price*') of the selected rounds, for no verdict; repeatable",
        action="append",
    ),
    _option("shell", "WHEN", "open a shell where a suite failed (=always: wherever)", nargs="?", const="failed"),
    _flag("keep", "keep environments where suites failed, to be entered"),
    _flag("snapshots", "keep each round's files for forks and 'evocode regrade'"),
    _flag("warm", "make images and reference states ready; run no agent"),
    _flag("check", "check the tasks themselves, and run no agent"),
    _flag("pin", "write the cases that the oracle passes to evocode.lock"),
    _flag("replay", "use nothing that is kept of reference solutions"),
    _flag("reuse", "run the oracle's suites only, in states that are kept"),
]
_SETTINGS = [
    # What a project sets once about its agents and tasks.
    _setting("agent_options", "options of agents, one KEY=VALUE a line; --evocode-agent-option wins", default=[]),
    _setting(
        "reward_key",
        "the reward that decides where a suite writes several and the task does not say which; "
        "--evocode-reward-key wins",
    ),
    _setting(
        "cases",
        "show a suite's cases in the report of a failed round (summary, the default), or each as a subtest (subtests)",
        default="summary",
    ),
    _setting("strict_keys", "refuse tasks with keys that the format does not know (default: false, warn)", False),
    _setting(
        "process_budget",
        "seconds in which --evocode-process may build and test what an attempt left on its way (default: 300)",
        default="300",
    ),
    # What it sets once about machines, providers and storage.
    _setting(
        "cluster_resources",
        "with --evocode-cluster: resources that an agent's attempts need, one AGENT: NAME=AMOUNT a line",
        default=[],
    ),
    _setting(
        "images",
        "images that sandboxes are made of, one NAME=PATH a line, relative to the root directory; --evocode-image wins",
        default=[],
    ),
    _setting(
        "max_connections", "requests under way at once per model provider and key, over all workers (default: 100)"
    ),
    _setting(
        "storage", "a directory or URL (s3://bucket/prefix) where attempts are saved, for another machine to resume"
    ),
    _setting(
        "waiting_minutes",
        "minutes that a turn may wait for rate limits and failures of its model's provider (default: 60)",
        default="60",
    ),
    _setting(
        "verifiers", "how many slots for suites this machine has, over all workers and sessions (default: one per core)"
    ),
]
_BARE = {f"{_PREFIX}{name}": how["const"] for name, how in _OPTIONS if "const" in how}
"""Options that may stand alone, and the values that they then have."""
_CHANGE_NOTHING = (
    *("agent", "agent-option", "agent-options", "attempts", "mode", "from", "fork-from", "speculate", "env", "image"),
    *("images", "dataset", "dry-run", "results", "resume", "report", "jobs", "cluster", "cluster-resources", "shard"),
    *("shard-times", "fail-under", "process", "process-budget", "judge", "case", "cases", "shell", "keep", "snapshots"),
    *("warm", "check", "pin", "replay", "reuse", "strict-keys", "max-connections", "storage", "waiting-minutes"),
    "verifiers",
)
"""The options and settings that can change no verdict and no score, or that records have as a field of its own, such as
the agent and the mode. All others are among the conditions of an attempt. (A turn that waits too long has no verdict,
and a session with more minutes goes on with it.)
"""


def conditions(config: pytest.Config, *, only_changed: bool = False) -> dict[str, str]:
    """Return the options and settings of a session that can change a verdict or a score, as texts by name.

    What is not given, and has no default, is left out; with ``only_changed`` all that is as its default. An option
    comes before the setting of its name.
    """
    found: dict[str, str] = {}
    options = ((name, how, config.getoption(f"evocode_{name.replace('-', '_')}")) for name, how in _OPTIONS)
    settings = ((name.replace("_", "-"), how, config.getini(f"evocode_{name}")) for name, how in _SETTINGS)
    for name, how, value in (*options, *settings):
        text = _limits_of_attempts(value) if name == "budget" else _plain(value)
        if name not in _CHANGE_NOTHING and text and not (only_changed and text == _plain(how.get("default"))):
            found.setdefault(name, text)
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


def _limits_of_attempts(budget: str) -> str:
    """Return the limits in order, without that of the whole run, at which attempts wait and none fails.

    >>> _limits_of_attempts("turns=30/round, total-cost=5,tokens=1000")
    'tokens=1000,turns=30/round'
    """
    limits = sorted(limit.strip() for limit in budget.split(",") if limit.strip())
    return ",".join(limit for limit in limits if not limit.startswith("total-cost="))


def add_options(parser: pytest.Parser) -> None:
    """Declare the options, as one group, and the settings that do not change from run to run."""
    group = parser.getgroup("evocode", "multi-round coding benchmarks (pytest-evocode)")
    for name, how in _OPTIONS:
        group.addoption(f"{_PREFIX}{name}", **how)
    for name, how in _SETTINGS:
        parser.addini(f"evocode_{name}", **how)


def default_of(name: str) -> Any:
    """Return the value that an option has without being given."""
    return dict(_OPTIONS)[name].get("default")


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

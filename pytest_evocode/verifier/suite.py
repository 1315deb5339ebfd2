"""Running a round's suite in a fork of its snapshot and reading the verdict."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pytest_evocode.environments import Environment, Unreadable, found_or_refused
from pytest_evocode.errors import VerifierFault
from pytest_evocode.results.models import Case, Verdict
from pytest_evocode.tasks import Round, Task
from pytest_evocode.verifier.cases import CASE_FILES, UnreadableCases, parse_case_file, parse_case_lines
from pytest_evocode.verifier.rewards import REWARD_FILES, deciding_reward
from pytest_evocode.verifier.tools import changed_tools, python_caches

_LOGS = "/logs/verifier"
#: Directories of a fork that hold nothing of what the agent put there.
FRESH = ("/tests", _LOGS)
_LISTED_TOOLS = 50
_REWARD_LIMIT = 2**20  # bytes
_CASES_LIMIT = 64 * 2**20  # bytes


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """A suite that was run: its output, how long it took, and the verdict or why there is none."""

    output: str
    seconds: float
    verdict: Verdict | None
    fault: str = ""
    left_out: tuple[str, ...] = ()
    """Artifacts that were not collected, with reasons."""
    changed_tools: tuple[str, ...] = ()
    """Tools of the image that the agent had changed."""


def run_suite(
    fork: Environment,
    task: Task,
    round_: Round,
    *,
    env: Mapping[str, str],
    timeout: float,
    changed: Sequence[str] = (),
    artifacts: Path | None,
) -> SuiteRun:
    """Verify one round: put the tests into the fork, run ``test.sh``, read rewards and cases.

    ``fork`` comes from the round's snapshot with :data:`FRESH` directories; the caller starts and stops it. ``env`` is
    the verifier's, resolved; ``timeout`` is in seconds. ``changed`` are the paths that are not as in the image.
    ``artifacts`` is where to collect what the task declares, None for nowhere. Raises
    :class:`~pytest_evocode.errors.EnvironmentFault` when the engine fails.
    """
    started = time.monotonic()
    tools = _shortened(changed_tools(changed))
    if caches := python_caches(changed):
        # What Python would load from there unseen. Its own rm: if that was changed, it is among the tools.
        fork.exec(["rm", "-rf", "--", *caches], user="0", cwd="/", timeout=60)
    fork.upload(round_.tests, "/tests", writable=True)
    result = fork.exec(["bash", "/tests/test.sh"], user=round_.verifier_user, env=env, timeout=timeout)
    verdict, fault = None, ""
    if result.timed_out:
        # The program under test may hang as well as the suite: the round has failed, and says so.
        cases, _ = _cases(_read_logs(fork), result.output)
        verdict = Verdict(reward=0.0, rewards={"reward": 0.0}, timed_out=True, cases=cases)
    else:
        try:
            verdict = _read_verdict(fork, result.output, task.reward_key)
        except VerifierFault as error:
            fault = f"{error}\ntest.sh ended with exit code {result.exit_code}; its last lines:\n{_tail(result.output)}"
    if verdict is not None and tools:
        verdict = verdict.model_copy(update={"changed_tools": tools})
    left_out = _collect_artifacts(fork, round_, artifacts) if artifacts is not None else ()
    return SuiteRun(result.output, time.monotonic() - started, verdict, fault, left_out, tools)


def suite_not_run(why: str, changed: Sequence[str]) -> SuiteRun:
    """What there is to say of a suite whose fork failed; ``changed`` as for :func:`run_suite`."""
    return SuiteRun("", 0.0, None, why, changed_tools=_shortened(changed_tools(changed)))


def _read_logs(fork: Environment) -> Mapping[str, bytes | Unreadable | None]:
    """All that the suite may have left, at once, by name."""
    limits = dict.fromkeys(REWARD_FILES, _REWARD_LIMIT) | dict.fromkeys(CASE_FILES, _CASES_LIMIT)
    found = fork.read_all({f"{_LOGS}/{name}": limit for name, limit in limits.items()})
    return {name: found[f"{_LOGS}/{name}"] for name in limits}


def _read_verdict(fork: Environment, output: str, reward_key: str | None) -> Verdict:
    logs = _read_logs(fork)
    rewards = _rewards(logs)
    reward = deciding_reward(rewards, reward_key)
    cases, flags = _cases(logs, output)
    verdict = Verdict(reward=reward, rewards=rewards, cases=cases, flags=flags)
    failing = sum(case.failing for case in cases)
    if verdict.passed and failing:
        flags += (f"the reward is {reward:g}, but {failing} of {len(cases)} cases failed",)
    elif not verdict.passed and cases and not failing:
        flags += (f"the reward is {reward:g}, but none of {len(cases)} cases failed",)
    return verdict.model_copy(update={"flags": flags})


def _rewards(logs: Mapping[str, bytes | Unreadable | None]) -> dict[str, float]:
    """The rewards of the first reward file there is."""
    for name, parse in REWARD_FILES.items():
        try:
            contents = found_or_refused(logs[name])
        except Unreadable as error:
            raise VerifierFault(f"{error}; a reward has to be a small regular file") from None
        if contents is not None:
            return parse(contents.decode("utf-8", "replace"))
    raise VerifierFault(
        f"test.sh wrote no reward; it has to write a number from 0 to 1 to {_LOGS}/reward.txt or {_LOGS}/reward.json"
    )


def _cases(logs: Mapping[str, bytes | Unreadable | None], output: str) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Cases of the first source found and what is odd about it; an unreadable source is passed over with a flag."""
    flags: list[str] = []
    for name in CASE_FILES:
        try:
            contents = found_or_refused(logs[name])
            if contents is not None:
                return parse_case_file(name, contents.decode("utf-8", "replace")), tuple(flags)
        except (Unreadable, UnreadableCases) as error:
            flags.append(f"cases: {error}")
    cases, odd = parse_case_lines(output)
    return cases, (*flags, *odd)


def _collect_artifacts(fork: Environment, round_: Round, target: Path) -> tuple[str, ...]:
    left_out = list(fork.download("/logs/artifacts", target))
    for artifact in round_.artifacts:
        destination = target / (artifact.destination or PurePosixPath(artifact.source).name)
        left_out += fork.download(artifact.source, destination, exclude=artifact.exclude)
    return tuple(left_out)


def _shortened(paths: tuple[str, ...]) -> tuple[str, ...]:
    if len(paths) <= _LISTED_TOOLS:
        return paths
    return (*paths[:_LISTED_TOOLS], f"and {len(paths) - _LISTED_TOOLS} more")


def _tail(output: str, lines: int = 20) -> str:
    return "\n".join(output.rstrip().splitlines()[-lines:]) or "(no output)"

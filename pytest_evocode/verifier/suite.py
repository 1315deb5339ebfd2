"""Runs a round's suite, native or script, in a fork of its snapshot and reads the verdict."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from pytest_evocode.environments import Environment, ProgramEnvironment
from pytest_evocode.tasks import Round, Task
from pytest_evocode.verifier.clock import put_clock_forward
from pytest_evocode.verifier.fork_session import ForkSession
from pytest_evocode.verifier.native import run_native
from pytest_evocode.verifier.native_session import NativeSession
from pytest_evocode.verifier.script import run_script
from pytest_evocode.verifier.separate_session import SeparateSession
from pytest_evocode.verifier.suite_run import SuiteRun, SuiteSettings


def run_suite(
    fork: Environment,
    task: Task,
    round_: Round,
    settings: SuiteSettings,
    *,
    verifier: ProgramEnvironment | None = None,
) -> SuiteRun:
    """Run the suite of one round and return what came of it.

    ``fork`` comes from the round's snapshot, with the verifier's directories empty; the caller starts and stops it.
    ``verifier`` is where a native suite runs apart from the fork; with None it runs in it.
    Raises :class:`~pytest_evocode.errors.EnvironmentFault` when the engine fails.
    """
    started = time.monotonic()
    clock = _clock(fork, verifier, round_, settings) if settings.days else {}
    settings = replace(settings, env={**settings.env, **clock})
    if round_.has_script:
        suite = run_script(fork, task, round_, settings)
    else:
        suite = run_native(native_session(fork, verifier, task, round_, settings, clock), task, round_, settings)
    verdict = suite.verdict
    if verdict is not None:
        pinned = None
        if settings.pinned is not None:
            passed = {case.id for case in verdict.cases if case.status == "passed"}
            pinned = (len(passed & settings.pinned.keys()), len(settings.pinned))
        verdict = verdict.model_copy(update={"pinned": pinned})
    return replace(
        suite,
        verdict=verdict,
        seconds=time.monotonic() - started,
        days=settings.days if clock else 0,
    )


def native_session(
    fork: Environment,
    verifier: ProgramEnvironment | None,
    task: Task,
    round_: Round,
    settings: SuiteSettings,
    program_env: Mapping[str, str],
) -> NativeSession:
    """Return what runs a native suite, in the fork or, where there is a verifier environment, there."""
    if verifier is None:
        return ForkSession(fork, task, round_, settings)
    assert isinstance(fork, ProgramEnvironment)
    return SeparateSession(verifier, fork, task, round_, settings, program_env)


def _clock(
    fork: Environment, verifier: ProgramEnvironment | None, round_: Round, settings: SuiteSettings
) -> Mapping[str, str]:
    """Return variables with which the suite and its programs see another date; none unless both do."""
    if round_.has_script:
        return put_clock_forward(fork, ["date", "+%s"], settings.days)
    assert settings.toolbox is not None
    by_python = [settings.toolbox.python, "-I", "-c", "import time; print(time.time())"]
    if verifier is None:
        return put_clock_forward(fork, by_python, settings.days)
    return put_clock_forward(fork, ["date", "+%s"], settings.days) and put_clock_forward(
        verifier, by_python, settings.days
    )

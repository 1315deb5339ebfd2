"""Runs a native suite in the fork of the snapshot, beside the program under test, and reads its sealed report."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import logging
import secrets
from pathlib import Path

from pytest_evocode.environments import Command, Environment, ExecResult, require_readable
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import UnreadableFile
from pytest_evocode.tasks import Round, Task
from pytest_evocode.verifier.in_container.memory import OWN
from pytest_evocode.verifier.in_container.protocol import Plan, SuiteReport
from pytest_evocode.verifier.native_session import bring_suite, broken_off
from pytest_evocode.verifier.suite_run import LOGS, SuiteSettings

logger = logging.getLogger(__name__)

_REPORT, _SEAL, _RUNNING = f"{LOGS}/report.json", f"{LOGS}/report.seal", f"{OWN}/running.json"
_LIMITS = {_REPORT: 64 * 2**20, _SEAL: 2**10, _RUNNING: 2**16}  # bytes


class ForkSession:
    """A :class:`~pytest_evocode.verifier.native_session.NativeSession` in the fork."""

    def __init__(self, fork: Environment, task: Task, round_: Round, settings: SuiteSettings) -> None:
        self._fork = fork
        self._task = task
        self._round = round_
        self._settings = settings

    def run(self, plan: Plan) -> tuple[ExecResult, SuiteReport]:
        """See :class:`~pytest_evocode.verifier.native_session.NativeSession`."""
        key = secrets.token_hex(32)
        argv = self._bring({**plan, "key": key})
        settings = self._settings
        settings.stopwatch.begin("suite")
        result = self._fork.exec(argv, user=self._round.verifier_user, env=settings.env, timeout=settings.timeout)
        settings.stopwatch.begin("reading")
        logger.debug("%s, %s: pytest ended with %s", self._task.name, self._round.name, result.exit_code)
        found = self._fork.read_files(_LIMITS)
        try:
            report, seal = require_readable(found[_REPORT]), require_readable(found[_SEAL])
        except UnreadableFile:
            report = seal = None
        if report is None or seal is None or not hmac.compare_digest(_seal(key, report), seal):
            return result, broken_off(result, *_running_case(found[_RUNNING]), settings.timeout)
        sealed: SuiteReport = json.loads(report)
        return result, sealed

    def debug(self, plan: Plan) -> tuple[Environment, Command]:
        """See :class:`~pytest_evocode.verifier.native_session.NativeSession`."""
        return self._fork, Command(tuple(self._bring(plan)), user=self._round.verifier_user, env=self._settings.env)

    def close(self) -> None:
        """See :class:`~pytest_evocode.verifier.native_session.NativeSession`."""

    def _bring(self, plan: Plan) -> list[str]:
        with scratch_directory() as directory:
            Path(directory, "plan.json").write_text(json.dumps(plan))
            return bring_suite(self._fork, self._task, self._round, self._settings, Path(directory))


def _seal(key: str, report: bytes) -> bytes:
    return hmac.new(key.encode(), report, hashlib.sha256).hexdigest().encode()


def _running_case(running: bytes | UnreadableFile | None) -> tuple[str, str]:
    """Return the case that had begun, and where it is; empty where that is not known."""
    # A program under test may have written it.
    with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
        noted = json.loads(running if isinstance(running, bytes) else b"{}")
        return str(noted["id"]), str(noted["where"])
    return "", ""

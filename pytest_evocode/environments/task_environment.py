"""The environment of a task: started, and made ready for every round, in one way for whoever plays the rounds."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_evocode.environments.engines import BuildWish, Engine, Installation
from pytest_evocode.environments.entry_points import EnteredProgram
from pytest_evocode.environments.protocol import Environment, Snapshot
from pytest_evocode.errors import Cancelled, EnvironmentFault, TaskError
from pytest_evocode.secrets import Scrubber
from pytest_evocode.tasks import Healthcheck, Round, Task, resolve_env
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.tasks.compose_file import MAIN

VERIFIER_DIRECTORIES = ("/tests", "/logs/verifier")
"""What a suite finds as its own, whatever the agent put there."""
SOLUTION = "/solution"
HIDDEN_FROM_AGENT = (*VERIFIER_DIRECTORIES, SOLUTION)
"""What must not exist while an agent works."""
STOPPED = "the session was stopped"

_SETUP_TIMEOUT = 600.0  # seconds for a round's setup.sh
_BUILT_IN = "the image's HEALTHCHECK"
_SHOWN_LINES = 3  # of the output of a collect command that failed

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TaskEnvironment:
    """How environments of one task are made in one engine and made ready for the agent.

    Methods that wait raise :class:`~pytest_evocode.errors.Cancelled` once ``cancelled`` is set, and
    :class:`~pytest_evocode.errors.TaskError` for what the task's author has to correct.
    """

    task: Task
    engine: Engine
    environ: Mapping[str, str]
    """Resolves the ``${VAR}`` of task.toml."""
    withheld: Callable[[str], bool]
    """Says which of these variables count as unset, because the agent could read them."""
    cancelled: threading.Event = field(default_factory=threading.Event)

    def build(self, installation: Installation | None = None) -> None:
        """Build the image, which :meth:`create` and others then find; this is the one who can be told to stop."""
        self.engine.build(self.task, installation, BuildWish(self.cancelled))

    def create(self, *, snapshot: Snapshot | None = None, installation: Installation | None = None) -> Environment:
        """Return an environment with the task's variables, not started; see :meth:`Engine.create`."""
        self.build(installation)
        declared = self.task.config.environment.env
        env = resolve_env(declared, self.environ, path=self.task.file, withheld=self.withheld)
        network = self.task.environment_network
        return self.engine.create(self.task, env=env, network=network, snapshot=snapshot, installation=installation)

    def start(self, environment: Environment) -> None:
        """Start an environment and make it ready."""
        self.refuse_when_cancelled()
        environment.start()
        self.make_ready(environment)

    def make_ready(self, environment: Environment) -> None:
        """Remove what the image must not bring, run its ENTRYPOINT, and wait until the task's or its check passes."""
        environment.remove(HIDDEN_FROM_AGENT)
        environment.allow_network(self.task.rounds[0].setup_network)
        self._wait_until_ready(environment, environment.enter())

    def enter_fork(self, fork: Environment) -> tuple[str, ...]:
        """Run the image's ENTRYPOINT anew in a fork, wait as :meth:`make_ready` does, and return what is to be said.

        What fails there may be the agent's doing, and no mistake of the task's.
        """
        entered = fork.enter()
        if entered is None:
            return ()
        try:
            self._wait_until_ready(fork, entered)
        except TaskError as error:
            return (f"before the suite: {error.message}",)
        return ()

    def enter_again(self, environment: Environment) -> None:
        """Run the ENTRYPOINT again where every process has been killed, if it was run there before."""
        if (entered := environment.enter(killed=True)) is not None:
            with contextlib.suppress(TaskError):  # What fails now may be the agent's doing.
                self._wait_until_ready(environment, entered)

    def _wait_until_ready(self, environment: Environment, entered: EnteredProgram | None) -> None:
        check, what = self.task.config.environment.healthcheck, "the healthcheck of the environment"
        if check is None:
            check, what = environment.healthcheck, _BUILT_IN
        if check is not None:
            self._wait_until_healthy(environment, check, what, entered)
        elif entered is not None:
            entered.wait_until_settled()
            self._refuse_failed(entered)
        if entered is not None:
            environment.entry_point_settled()

    def _refuse_failed(self, entered: EnteredProgram | None) -> None:
        if entered is not None and entered.failed:
            raise TaskError(f"{entered.describe_end()}\nCorrect it.", self.task.dockerfile or self.task.file)

    def prepare_round(self, environment: Environment, round_: Round, *, wait_until_healthy: bool = True) -> None:
        """Bring a round's files, run its ``setup.sh`` and wait until its healthcheck passes.

        Where that can be changed, the network is the environment's own meanwhile, and the agent's until then.
        """
        self.refuse_when_cancelled()
        if round_.workdir is not None or round_.healthcheck is not None:
            environment.allow_network(round_.setup_network)
        if round_.workdir is not None:
            # An agent that is not root, by the task or by the image, has to be able to edit what it is given.
            environment.upload([round_.workdir], environment.workdir, writable=True)
            if (round_.workdir / "setup.sh").is_file():
                logger.debug("%s, %s: running setup.sh", self.task.name, round_.name)
                result = environment.exec(["bash", "setup.sh"], timeout=_SETUP_TIMEOUT)
                if not result.ok:
                    ending = "did not end in time" if result.timed_out else f"ended with exit code {result.exit_code}"
                    why = f"{ending}; correct it. Its last lines:\n{result.tail()}"
                    raise TaskError(why, round_.workdir / "setup.sh")
        if round_.healthcheck is not None and wait_until_healthy:
            self._wait_until_healthy(environment, round_.healthcheck, f"the healthcheck of {round_.name}")

    def collect(self, environment: Environment, round_: Round) -> tuple[str, ...]:
        """Run a round's collect commands after the agent's turn, and return what is to be said of those that failed."""
        notes = []
        for hook in round_.collect:
            self.refuse_when_cancelled()
            logger.debug("%s, %s: collecting by %s", self.task.name, round_.name, hook.command)
            if hook.service != MAIN:
                done = environment.exec_in(hook.service, hook.command, user=hook.user, timeout=hook.timeout_sec)
            else:
                done = environment.exec(hook.command, user=hook.user, timeout=hook.timeout_sec)
            if not done.ok:
                ending = "was stopped at its timeout" if done.timed_out else f"ended with exit code {done.exit_code}"
                last = done.tail(_SHOWN_LINES)
                notes.append(f"the collect command {hook.command!r} {ending}" + (f": {last}" if last else ""))
        return tuple(notes)

    def refuse_when_cancelled(self) -> None:
        """Raise :class:`~pytest_evocode.errors.Cancelled` once the session is being stopped."""
        if self.cancelled.is_set():
            raise Cancelled(STOPPED)

    def _wait_until_healthy(
        self, environment: Environment, check: Healthcheck, what: str, entered: EnteredProgram | None = None
    ) -> None:
        """Apply Docker's rules: failures count after the start period, and ``retries`` in a row are too many."""
        started = time.monotonic()
        failures = 0
        while True:
            self.refuse_when_cancelled()
            result = environment.exec(check.command, timeout=check.timeout_sec)
            if result.ok:
                return
            self._refuse_failed(entered)
            starting = time.monotonic() - started < check.start_period_sec
            failures += not starting
            logger.debug("%s: %s failed, counted %d times", self.task.name, what, failures)
            if failures >= check.retries:
                raise TaskError(
                    f"{what} failed {failures} times in a row: {check.command}\n{result.output[-2000:]}",
                    (self.task.dockerfile if what is _BUILT_IN else None) or self.task.file,
                )
            self.cancelled.wait(check.start_interval_sec if starting else check.interval_sec)


SERVICES = "services"
"""The directory of what is written, in that of a round, and in that of its suite's logs."""
STATES = "services.json"


def record_services(environment: Environment, directory: Path, scrubber: Scrubber) -> None:
    """Write the states and logs of an environment's services into a directory, without secrets.

    What the engine does not tell is left out. Raises OSError.
    """
    try:
        states = environment.service_states()
        logs = {name: environment.service_log(name) for name in states}
    except EnvironmentFault as error:
        logger.info("nothing is written of services: %s", error)
        return
    if states:
        write_atomically(directory / STATES, json.dumps(states, indent=1) + "\n")
    for name, printed in logs.items():
        write_atomically(directory / f"{name}.log", scrubber.text(printed.decode("utf-8", "replace")))

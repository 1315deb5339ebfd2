"""The process that runs one attempt on a node of a cluster, and sends records and files through a connection.

It is started as a program with the number of the connection's descriptor, prints its own number, and goes on by itself:
it outlives the process that started it for as long as it takes to stop the attempt and remove what belongs to it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import shutil
import signal
import sys
import threading
import time
from collections.abc import Hashable, Iterator
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from pytest_evocode.agents import Agent
from pytest_evocode.agents.protocol import installation_of
from pytest_evocode.agents.specs import make_agent
from pytest_evocode.environments import Engine, choose_engine
from pytest_evocode.environments.kept_tasks import KeptTasks, attempt_home, lock_of
from pytest_evocode.errors import Cancelled, EnvironmentFault, RecordFault, describe_error
from pytest_evocode.llm.connection_limits import ConnectionLimits, Paced, connections_shared_by
from pytest_evocode.plugin.cluster.node import BrokerAnswer
from pytest_evocode.plugin.cluster.orders import (
    ASK,
    BEGUN,
    ENDED,
    FAILED,
    NOTE,
    PROGRESS,
    RECORD,
    SPENT,
    AttemptOrder,
    FileChanges,
    Message,
    write_tree,
)
from pytest_evocode.results.directory import STATE_FILE, AttemptDirectory
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial

_INTERVAL = 1.0  # seconds between two looks at the progress
_ANSWER = 30.0  # seconds for the broker to say what the run has spent
_ELSEWHERE = 60.0
"""Seconds for an earlier try at the attempt on this machine to stop."""


class Line:
    """The connection to Ray's process, with a thread that takes what comes from there."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sending = threading.Lock()
        self._stops = threading.Event()
        self._answered = threading.Condition()
        self._questions = itertools.count(1)
        self._answers: dict[int, Any] = {}

    def send(self, *messages: Message) -> None:
        """Send messages; nothing where nobody listens any more."""
        with self._sending, contextlib.suppress(OSError):
            for message in messages:
                self._connection.send(message)

    def begin(self, stop: threading.Event) -> None:
        """Begin to listen, and set ``stop`` when the attempt is to stop, or when nobody is there any more."""
        self._stops = stop
        threading.Thread(target=self._listen, name="evocode-line", daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                answer: BrokerAnswer = self._connection.recv()
                with self._answered:
                    self._answers.update(answer.answers)
                    if answer.stop:
                        self._stops.set()
                    self._answered.notify_all()
        self._stops.set()
        with self._answered:
            self._answered.notify_all()

    def ask(self, operation: str, *arguments: Any, patience: float | None = None) -> Any:
        """Ask the broker; raises Cancelled when the attempt is to stop, or so many seconds have passed."""
        question = next(self._questions)
        self.send((ASK, question, operation, *arguments))
        with self._answered:
            self._answered.wait_for(lambda: question in self._answers or self._stops.is_set(), timeout=patience)
            if question not in self._answers:
                raise Cancelled("the attempt is to stop")
            return self._answers.pop(question)


class ClusterSpending:
    """What a run has cost over all nodes; stands for :class:`~pytest_evocode.llm.budget.RunSpending`."""

    def __init__(self, line: Line, spent: float) -> None:
        self._line = line
        self._spent = spent

    def add(self, cost_usd: float) -> None:
        """Add an amount."""
        self._line.send((SPENT, cost_usd))

    @property
    def cost_usd(self) -> float:
        """Sum so far."""
        with contextlib.suppress(Cancelled):
            self._spent = max(self._spent, self._line.ask("spent", patience=_ANSWER))
        return self._spent


_LOOK = 0.5
"""Seconds between two looks for a place: each goes through the network."""


class ClusterConnections(ConnectionLimits):
    """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`; for the process of one attempt."""

    look = _LOOK

    def __init__(self, line: Line, most: int) -> None:
        self.most = most
        self._line = line
        self._places = itertools.count(1)

    def take(self, account: str, most: int) -> Hashable | None:
        """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`."""
        place = next(self._places)
        return place if self._line.ask("take", account, most, place) else None

    def give_back(self, account: str, place: Hashable) -> None:
        """See :class:`~pytest_evocode.llm.connection_limits.ConnectionLimits`."""
        self._line.ask("give_back", account, place)

    def _paced(self, account: str, operation: Paced, *arguments: Any) -> Any:
        return self._line.ask(operation, account, *arguments)


def main(descriptor: int) -> None:
    """Run the attempt that the connection brings."""
    os.set_inheritable(descriptor, False)  # The programs of environments would keep it open.
    if os.fork():
        os._exit(0)
    os.setsid()
    print(os.getpid(), flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    connection = Connection(descriptor)
    order, task = connection.recv()
    line = Line(connection)
    os.environ.update(order.environ)
    sys.path += [path for path in order.search_path if path not in sys.path]
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    line.begin(stop)
    try:
        AttemptRun(order, Path(task), line, stop).run()
    except BaseException as error:
        line.send((FAILED, describe_error(error)))


class AttemptRun:
    """One attempt on this machine."""

    def __init__(self, order: AttemptOrder, task: Path, line: Line, stop: threading.Event) -> None:
        self._order = order
        self._task = task
        self._line = line
        self._stop = stop

    def run(self) -> None:
        """Make the attempt, and remove its files here when it has ended."""
        home = attempt_home(self._order.name)
        with self._alone(home):
            engine, _ = choose_engine(self._order.engine, hidden=[home.parent, self._task.parent])
            limits = ClusterConnections(self._line, self._order.max_connections)
            with (
                contextlib.closing(engine),
                connections_shared_by(limits),
                KeptTasks().used(self._order.task_hash, self._order.directory_name),
            ):
                ended = self._make(engine, home)
            if not any(home.rglob(STATE_FILE)):  # Else it can go on, from a state that is kept for these files.
                shutil.rmtree(home, ignore_errors=True)
        self._line.send(ended)

    @contextlib.contextmanager
    def _alone(self, home: Path) -> Iterator[None]:
        """Wait for an earlier try at the attempt on this machine, which may still be stopping."""
        home.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(lock_of(home))
        try:
            lock.acquire(timeout=_ELSEWHERE)
        except Timeout:
            raise EnvironmentFault(f"an earlier try at it still runs on this node after {_ELSEWHERE:g} s") from None
        try:
            yield
        finally:
            lock.release()
            with contextlib.suppress(OSError):
                os.unlink(lock.lock_file)

    def _make(self, engine: Engine, home: Path) -> Message:
        order = self._order
        task = load_task(self._task, unknown_keys="ignore")
        task = task.judged(order.verify)
        directory = AttemptDirectory.of(
            home, order.task, order.agent.id, order.run, order.number, only_round=order.only_round
        )
        self._bring_back(directory, engine, task)
        changes = FileChanges(directory.path)
        trial = self._trial(task, engine, directory)
        ended = threading.Event()

        def send_changes() -> None:
            self._line.send(*changes.messages())

        watch = threading.Thread(target=self._watch, args=(trial, ended), name="evocode-watch", daemon=True)
        fault = ""
        try:
            with trial:
                watch.start()
                self._line.send((BEGUN, first := trial.first_played()))
                for index in range(first, (order.rounds.last or len(task.rounds)) + 1):
                    record = trial.wait(index)
                    if self._stop.is_set():
                        break
                    send_changes()
                    sent = record.model_dump(mode="json", exclude_defaults=True)  # The driver keeps it to the end.
                    self._line.send((RECORD, sent, trial.output_of(index)))
        except EnvironmentFault as error:
            fault = str(error)
        finally:
            ended.set()
            if watch.ident is not None:
                watch.join()
            send_changes()
        self._line.send(*((NOTE, note) for note in trial.storage_notes))
        return ENDED, fault

    def _agent(self) -> Agent:
        order = self._order
        if order.made_agent:
            made: Agent = pickle.loads(order.made_agent)
            return made
        return make_agent(order.agent.spec, order.agent.options, order.declarations)

    def _trial(self, task: Task, engine: Engine, directory: AttemptDirectory) -> Trial:
        order = self._order
        spending: Any = ClusterSpending(self._line, order.spent)
        return Trial(
            task,
            self._agent(),
            engine,
            name=order.agent.id,
            attempt=order.number,
            rounds=order.rounds,
            directory=directory,
            options=TrialOptions(**order.options, run_spending=spending, resume=order.resume),
        )

    def _bring_back(self, directory: AttemptDirectory, engine: Engine, task: Task) -> None:
        """Bring what there is of the attempt to where it goes on: what is here, else what the driver has or a storage.

        What cannot be gone on from, because the state after its last turn is on another machine, is left out.
        """
        order = self._order
        if not order.resume:
            shutil.rmtree(directory.path, ignore_errors=True)
            return
        last, why = _found(directory, engine)
        if order.files and (why or not last):
            write_tree(directory.path, order.files)
        if (storage := order.options.get("storage")) is not None:
            restored = storage.restore(directory, engine, task, installation_of(self._agent()))
            self._line.send(*((NOTE, note) for note in restored.notes))
        _, why = _found(directory, engine)
        if why:
            shutil.rmtree(directory.path, ignore_errors=True)
            self._line.send((NOTE, f"{why}, so it begins anew"))

    def _watch(self, trial: Trial, ended: threading.Event) -> None:
        """Send the progress, and stop the trial when it is to stop."""
        shown = None
        looked_at = 0.0
        while not ended.wait(0.1):
            if self._stop.is_set():
                with contextlib.suppress(EnvironmentFault):  # Its end says so as well.
                    trial.close()
                return
            if time.monotonic() - looked_at < _INTERVAL:
                continue
            looked_at = time.monotonic()
            progress = trial.progress
            if progress != shown:
                shown = progress
                self._line.send((PROGRESS, None if progress is None else asdict(progress)))


def _found(directory: AttemptDirectory, engine: Engine) -> tuple[int, str]:
    """Return the last turn that a directory tells of, 0 without one, and why it cannot be gone on from, if so."""
    try:
        state = directory.read_state()
    except RecordFault:
        return 0, "its state cannot be read"
    if state is None:
        return 0, ""
    if any(engine.find_snapshot(turn.snapshot) is None for turn in state.turns):
        return state.last_turn, f"the state after its round {state.last_turn} is not on this node"
    return state.last_turn, ""


if __name__ == "__main__":
    main(int(sys.argv[1]))

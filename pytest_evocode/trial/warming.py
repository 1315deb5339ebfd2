"""Gets ready what later attempts at a task need, by building its images and playing its reference solutions."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import BuildWish, Engine, Installation
from pytest_evocode.environments.builds import builds_at_once
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import Cancelled, EnvironmentFault, EvocodeError
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.tasks.lockfile import content_hash
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.references import ReferenceStates
from pytest_evocode.trial.suites.suite_environments import prepare_image
from pytest_evocode.trial.trial import Trial

logger = logging.getLogger(__name__)

IMAGE = "image"
SOLUTIONS = "solutions"
INSTALL = "install-"
"""The beginning of the name of what is installed for an agent; its id follows."""
_FORMAT = "1"
"""Part of what notes are called; changed when a later version needs more of what they stand for."""
Wanted = tuple[Task, Installation | None]
"""A task and what lies on top of its image."""


class ImagesAhead:
    """Prepares the images of several tasks in threads of its own, before anybody needs them.

    What goes wrong is not told: it goes wrong once more, without another build, where the image is needed.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._wish = BuildWish(threading.Event(), ahead=True)
        self._pool = ThreadPoolExecutor(builds_at_once(), thread_name_prefix="image")

    def begin(self, wanted: Iterable[Callable[[], Wanted]]) -> None:
        """Begin with some images, in this order; each is named by a function, which is called when its turn comes."""
        for each in wanted:
            self._pool.submit(self._prepare, each)

    def close(self) -> None:
        """End what is under way, and begin nothing more."""
        self._wish.cancelled.set()
        self._pool.shutdown(cancel_futures=True)

    def _prepare(self, wanted: Callable[[], Wanted]) -> None:
        try:
            task, installation = wanted()
            prepare_image(self._engine, task, installation, self._wish)
        except EvocodeError as error:
            logger.info("an image is not prepared ahead: %s", str(error).partition("\n")[0])
        except Exception:
            logger.warning("an image is not prepared ahead", exc_info=True)


@dataclass(frozen=True, slots=True)
class Warmed:
    """What came of getting one thing ready."""

    made: bool
    """Whether it had to be made; else it was there."""
    seconds: float = 0.0
    """How long that took."""
    size: int = 0
    """Bytes of the image, or of the states that the solutions' rounds lead to."""
    rounds: int = 0
    """Rounds that were played."""
    failed: RoundRecord | None = None
    """The round in which a reference solution failed."""
    output: str = ""
    """What the suite of that round printed."""


class TaskWarming:
    """Gets ready what attempts at one task need: its image, what agents need on top, and its reference solutions.

    A note in the cache says what the solutions lead to, so that they are not played again while all of it is there.
    """

    def __init__(
        self,
        task: Task,
        engine: Engine,
        parts: Sequence[str],
        installations: Mapping[str, Installation],
        options: TrialOptions,
        *,
        anew: bool = False,
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            task: The task.
            engine: Builds images and plays the solutions.
            parts: What is to be made ready: :data:`IMAGE`, :data:`SOLUTIONS`, and the names of ``installations``.
            installations: What is installed on the task's image.
            options: How the solutions are played.
            anew: Whether to play the solutions, too, where all that they lead to is there.
        """
        self._task = task
        self._engine = engine
        self._parts: dict[str, Future[Warmed]] = {part: Future() for part in parts}
        self._installations = installations
        self._options = replace(options, references=True)
        self._anew = anew
        self._cancelled = threading.Event()
        self._ended = threading.Event()
        self._trial: Trial | None = None

    def result(self, part: str) -> Warmed:
        """Wait for a part and return what came of it; raises EvocodeError where it cannot be had."""
        return self._parts[part].result()

    def run(self) -> None:
        """Make all parts ready, one after the other; returns when there are all, and may be called once."""
        try:
            for part, future in self._parts.items():
                try:
                    self._refuse_when_cancelled()
                    future.set_result(self._make(part))
                except BaseException as error:
                    future.set_exception(error)
        finally:
            self._ended.set()

    def cancel(self) -> None:
        """Have parts that are not ready yet come to nothing."""
        self._cancelled.set()

    def close(self) -> None:
        """End what still runs; may be called from any thread, and more than once."""
        if all(future.done() for future in self._parts.values()):
            return
        self.cancel()
        while not self._ended.wait(0.05):
            if (trial := self._trial) is not None:
                with contextlib.suppress(EnvironmentFault):
                    trial.close()

    def _refuse_when_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled(STOPPED)

    def _make(self, part: str) -> Warmed:
        started = time.monotonic()
        made = self._play_unless_known() if part == SOLUTIONS else self._build(self._installations.get(part))
        return replace(made, seconds=time.monotonic() - started)

    def _build(self, installation: Installation | None) -> Warmed:
        made = prepare_image(self._engine, self._task, installation, BuildWish(self._cancelled, ahead=True))
        return Warmed(made, size=self._engine.image_size(self._task, installation))

    # The reference solutions.

    @property
    def last_solved(self) -> int:
        """The index of the last round up to which all have a reference solution; 0 where the first has none."""
        without = (round_.index for round_ in self._task.rounds if round_.solution is None)
        return next(without, len(self._task.rounds) + 1) - 1

    def _play_unless_known(self) -> Warmed:
        states = ReferenceStates(self._engine, self._task, self._options.environ)
        note = self._note()
        kept = self._kept(states)
        if not self._anew and (known := _read(note)) is not None and known <= kept.keys():
            return Warmed(made=False, size=sum(kept.values()))
        records, output = self._play()
        if not records[-1].passed:
            return Warmed(made=True, rounds=len(records), failed=records[-1], output=output)
        kept = self._kept(states)
        write_atomically(note, json.dumps(sorted(kept)))
        return Warmed(made=True, rounds=len(records), size=sum(kept.values()))

    def _note(self) -> Path:
        """Return the file that says what the task's solutions lead to, named by all that this depends on."""
        parts = (_FORMAT, self._engine.name, self._engine.image_key(self._task), str(self._task.verify))
        digest = hashlib.sha256("\0".join((*parts, content_hash(self._task.directory))).encode()).hexdigest()
        directory = cache_directory() / "warm"
        directory.mkdir(exist_ok=True)
        return directory / f"{digest[:32]}.json"

    def _kept(self, states: ReferenceStates) -> dict[str, int]:
        """Return the bytes of the reference states of the task that are kept."""
        return {f"state {index}": size for index, size in states.kept().items()}

    def _play(self) -> tuple[list[RoundRecord], str]:
        """Play the solutions up to the first that fails; return the records and what the last suite printed."""
        rounds = RoundSelection(last=self.last_solved)
        self._trial = trial = Trial(self._task, OracleAgent(), self._engine, rounds=rounds, options=self._options)
        records: list[RoundRecord] = []
        with trial:
            for index in range(1, self.last_solved + 1):
                records.append(trial.wait(index))
                self._refuse_when_cancelled()
                if not records[-1].passed:
                    break
            return records, trial.output_of(len(records))


def _read(note: Path) -> set[str] | None:
    try:
        return set(json.loads(note.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None

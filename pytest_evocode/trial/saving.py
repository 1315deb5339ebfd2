"""Saves an attempt to its storage beside what it does, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from pytest_evocode.environments import Snapshot
from pytest_evocode.errors import EnvironmentFault, ResumeRefused, StorageFault, TakenOver
from pytest_evocode.results.directory import STATE_FILE, AttemptDirectory
from pytest_evocode.results.records import AttemptState
from pytest_evocode.trial.attempt_storage import StoredCopy
from pytest_evocode.trial.context import TrialContext

logger = logging.getLogger(__name__)

_INTERVAL = 15.0
"""Seconds between two looks at what is new while a turn goes on: the journal of what was paid for in it."""
_PATIENCE = 60.0
"""Seconds that the end of an attempt waits for an upload."""
_TRIES = 5
"""How often what changed while it was read is read again; later changes have it saved anyway."""


@dataclass(frozen=True, slots=True)
class WrittenState:
    """The state of an attempt as ``state.json`` has it, and the snapshots that it mentions."""

    contents: bytes | None = None
    state: AttemptState | None = None
    snapshots: Mapping[int, Snapshot] = field(default_factory=dict)
    """By the index of the round."""

    @classmethod
    def of(cls, directory: AttemptDirectory, snapshots: Mapping[int, Snapshot]) -> WrittenState:
        """Read the state, of which some session has the snapshots by round."""
        try:
            contents = (directory.state_directory / STATE_FILE).read_bytes()
        except OSError:
            return cls()
        state = AttemptState.model_validate_json(contents)
        indexes = [turn.index for turn in state.turns]
        if not all(index in snapshots for index in indexes):
            return cls()
        return cls(contents, state, {index: snapshots[index] for index in indexes})


Holding = Callable[[], AbstractContextManager[WrittenState | None]]
"""Holds the snapshots of the state that is written as long as the context lasts."""


class AttemptSaver:
    """Saves one attempt whenever its state has changed, and every 15 seconds what else is new.

    What keeps it from that is told once, and does not disturb the attempt: another machine then goes on from what was
    saved before.
    """

    def __init__(self, copy: StoredCopy, context: TrialContext) -> None:
        self._copy = copy
        self._context = context
        self._notes: dict[str, None] = {}
        self._wake = threading.Event()
        self._ends = threading.Event()
        self._is_over = False
        self._thread: threading.Thread | None = None
        self._image = ""

    @classmethod
    def of(cls, context: TrialContext) -> AttemptSaver | None:
        """Return what saves an attempt; None where it has no storage or nothing is recorded."""
        storage, directory = context.options.storage, context.directory
        if storage is None or directory is None:
            return None
        return cls(storage.saver(directory, context.engine), context)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know."""
        return tuple(self._notes)

    def restore(self) -> None:
        """Bring the attempt to this machine where the storage has more of it.

        Raises:
            ResumeRefused: It cannot be read, and to begin anew would be paid for a second time.
            EnvironmentFault: A snapshot cannot be put into the engine.
        """
        try:
            restored = self._copy.restore(self._context.task, self._context.options.installation)
        except StorageFault as error:
            raise ResumeRefused(f"{error}\nThe attempt cannot be continued without its storage") from error
        for note in restored.notes:
            self._note(note)

    def changed(self, holding: Holding) -> None:
        """Have saved what has changed; returns at once."""
        if self._thread is None and not self._ends.is_set():
            self._thread = threading.Thread(target=self._run, args=(holding,), name="storage", daemon=True)
            self._thread.start()
        self._wake.set()

    def stop(self) -> None:
        """Begin to save nothing more, and wait for what is under way, for a minute at most."""
        self._ends.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_PATIENCE)
            if self._thread.is_alive():
                self._note(f"the storage did not take the last of {self._context.task.name} within {_PATIENCE:g} s")
                self._is_over = True

    def save_last(self, holding: Holding) -> None:
        """Save how the attempt was left, once it has stopped."""
        self._save(holding)

    def _run(self, holding: Holding) -> None:
        while not self._ends.is_set():
            self._save(holding)
            self._wake.wait(_INTERVAL)
            self._wake.clear()

    def _save(self, holding: Holding) -> None:
        if self._is_over:
            return
        try:
            for _ in range(_TRIES):
                with holding() as written:
                    if written is None or self._save_written(written):
                        return
        except TakenOver as error:
            self._is_over = True
            self._note(str(error))
        except (StorageFault, EnvironmentFault, OSError) as error:
            self._note(f"{error}; what was saved before holds")
        except Exception:  # In a thread of its own nobody would hear of it.
            logger.exception("%s: the attempt is not saved", self._context.task.name)

    def _save_written(self, written: WrittenState) -> bool:
        snapshots = {each.reference: each for each in written.snapshots.values()}
        if snapshots and not self._image:
            self._image = self._context.engine.image_key(self._context.task)
        return self._copy.save(written.state, written.contents, snapshots, self._image)

    def _note(self, text: str) -> None:
        text = self._context.scrubber.text(text)  # An implementation may show what it was given.
        if text not in self._notes:
            logger.warning("%s", text)
            self._notes[text] = None

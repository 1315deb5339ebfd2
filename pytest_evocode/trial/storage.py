"""Saves attempts in a storage that several machines reach, so that another machine can go on with them.

That is done beside what an attempt does, in a thread of its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from pytest_evocode.environments import Engine, Installation, Snapshot
from pytest_evocode.environments.engines import ExportedLayer
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import DamagedObject, EnvironmentFault, ResumeRefused, StorageFault, TakenOver
from pytest_evocode.results.directory import STATE_FILE, AttemptDirectory
from pytest_evocode.results.records import AttemptState
from pytest_evocode.results.storage import (
    AttemptCopy,
    AttemptManifest,
    LayerKeys,
    ObjectStore,
    SnapshotKeys,
    archive_parts,
)
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.atomic_write import replacing
from pytest_evocode.trial.context import TrialContext

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RestoredAttempt:
    """What was brought from a storage."""

    found: bool = False
    """Whether the storage has, or this directory had, something to go on from."""
    last_turn: int = 0
    """The round after which the attempt goes on; 0 where it begins anew, or has ended."""
    notes: tuple[str, ...] = ()
    """What the user should know, such as that a layer is damaged and a round is therefore repeated."""


@dataclass(frozen=True, slots=True)
class AttemptStorage(ObjectStore):
    """A directory or bucket that several machines reach, in which attempts are saved.

    :class:`~pytest_evocode.trial.Trial` does all of it with ``TrialOptions(storage=...)``: it saves after every turn
    and every verdict, and with ``resume`` restores before it looks for what is to be continued. An object can be
    pickled and serves any number of attempts and threads.

    Args:
        url: A directory, or a URL for ``fsspec`` such as ``s3://bucket/prefix``.
        options: What the implementation of the protocol is given; keys and endpoints are better in its variables.
    """

    @property
    def store(self) -> ObjectStore:
        """The files of the storage."""
        return self

    def saver(self, directory: AttemptDirectory, engine: Engine | None = None) -> StoredCopy:
        """Return what one session saves an attempt by, and restores it."""
        return StoredCopy(AttemptCopy(self, directory), engine)

    def restore(
        self,
        directory: AttemptDirectory,
        engine: Engine | None = None,
        task: Task | None = None,
        installation: Installation | None = None,
    ) -> RestoredAttempt:
        """Bring an attempt to this machine; see :meth:`StoredCopy.restore`."""
        return self.saver(directory, engine).restore(task, installation)

    def save_run(self, results: Path, run: str) -> None:
        """Save the record of a run, without which no other machine can resume it; raises StorageFault and OSError."""
        name = f"runs/{run}.json"
        self.write({name: (results / name).read_bytes()})

    def restore_run(self, results: Path, run: str) -> None:
        """Bring the record of a run, unless there is one here or none in the storage; raises StorageFault."""
        path = results / "runs" / f"{run}.json"
        if not path.exists() and (contents := self.read(f"runs/{run}.json")) is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.write(contents)

    def forget(self, directory: AttemptDirectory) -> None:
        """Remove all that the storage has of an attempt; raises StorageFault."""
        AttemptCopy(self, directory).forget()


class StoredCopy:
    """The copy of one attempt, as one session writes and reads it."""

    def __init__(self, copy: AttemptCopy, engine: Engine | None) -> None:
        self._copy = copy
        self._engine = engine
        self._layers: dict[str, LayerKeys] = {}
        """The layers that the storage has, by their names."""

    def save(
        self, state: AttemptState | None, contents: bytes | None, snapshots: Mapping[str, Snapshot], image: str = ""
    ) -> bool:
        """Upload what is new: files, layers, and a manifest that names them, written last.

        Args:
            state: The state that the attempt can be gone on from; None where there is none.
            contents: The same as ``state.json`` has it.
            snapshots: The snapshots that the state mentions, by reference; they are made, and stay meanwhile.
            image: The engine's key of what they lie over.

        Returns:
            Whether that is done; not so where the state has changed meanwhile.

        Raises:
            StorageFault: The storage cannot be read or written; what was stored before holds.
            EnvironmentFault: A snapshot cannot be read.
        """
        travels = self._engine is not None
        stored = {name: self._put(snapshot, image) for name, snapshot in snapshots.items()} if travels else {}
        last = state.last_turn if state is not None and travels else 0
        return self._copy.save(stored, state=contents, last_turn=last, travels=travels)

    def _put(self, snapshot: Snapshot, image: str) -> SnapshotKeys:
        assert self._engine is not None
        with scratch_directory("storage") as scratch:
            layers = []
            for layer in self._engine.export_snapshot(snapshot, self._layers.keys(), Path(scratch)):
                if layer.archive is not None:
                    with layer.archive.open("rb") as archive:
                        parts = self._copy.put(archive_parts(archive))
                    self._layers[layer.name] = LayerKeys(name=layer.name, parts=parts)
                    layer.archive.unlink()
                layers.append(self._layers[layer.name])
            return SnapshotKeys(environment=self._engine.name, image=image, layers=tuple(layers))

    def restore(self, task: Task | None = None, installation: Installation | None = None) -> RestoredAttempt:
        """Bring the attempt to this machine, for a trial with ``resume`` to go on from its last recorded round.

        What the directory has of the attempt stays where it is as new as the storage, and otherwise is moved to
        ``.replaced`` in the results directory. From here on no other session may save anything of the attempt.

        Args:
            task: The task that the snapshots' image is built of; None brings the files alone.
            installation: What is on top of the image.

        Raises:
            StorageFault: The storage cannot be read, or another version of this program wrote what it has.
            EnvironmentFault: A snapshot cannot be put into the engine.
        """
        notes: list[str] = []
        for manifest in self._copy.manifests():
            try:
                here = self._needed_here(manifest, task) if not notes else None
                files = {} if here is not None else self._copy.read_files(manifest)
                self._bring_snapshots(manifest, here, task, installation, notes)
            except DamagedObject as error:
                notes.append(_damaged(self._copy, manifest, error))
                continue
            if here is None and (aside := self._copy.put_back(files)) is not None:
                notes.append(f"what was here of the attempt is older than what the storage has, and now in {aside}")
            self._copy.claim(manifest)
            self._layers = {layer.name: layer for each in manifest.snapshots.values() for layer in each.layers}
            return RestoredAttempt(True, manifest.last_turn, tuple(notes))
        return RestoredAttempt(notes=tuple(notes))

    def _needed_here(self, manifest: AttemptManifest, task: Task | None) -> set[str] | None:
        """Return the references of the snapshots that the attempt's directory needs; None where it cannot be used.

        It is as new as the storage, or newer, where the writer of the manifest wrote here. Where that was on another
        machine, its last snapshots may be neither here nor in the storage.
        """
        if not self._copy.is_here(manifest):
            return None
        state = self._copy.directory.read_state()
        needed = {turn.snapshot for turn in state.turns} if state is not None else set()
        if self._engine is not None and task is not None:
            for reference in needed - manifest.snapshots.keys():
                if self._engine.find_snapshot(reference) is None:
                    return None
        return needed

    def _bring_snapshots(
        self,
        manifest: AttemptManifest,
        needed: Collection[str] | None,
        task: Task | None,
        installation: Installation | None,
        notes: list[str],
    ) -> None:
        """Put the snapshots of a manifest into the engine, where it has them not; with ``needed`` only those."""
        engine = self._engine
        if engine is None or task is None:
            return
        for reference, snapshot in manifest.snapshots.items():
            if needed is not None and reference not in needed:
                continue
            if snapshot.environment != engine.name or engine.find_snapshot(reference) is not None:
                continue  # A resumed attempt says itself that it was begun in another environment.
            image = engine.image_key(task)
            if snapshot.image and image != snapshot.image:
                notes.append(
                    f"the image of {task.name} is another here ({image[:19]}, not {snapshot.image[:19]}), though made "
                    "of the same files; what the attempt changed lies over it as it is"
                )
            with scratch_directory("storage") as scratch:
                layers = []
                for number, layer in enumerate(snapshot.layers):
                    path = Path(scratch, f"{number}.tar")
                    with path.open("wb") as file:
                        file.writelines(map(self._copy.get, layer.parts))
                    layers.append(ExportedLayer(layer.name, path))
                engine.import_snapshot(task, installation, reference, layers, self._copy.directory.state_directory)


def _damaged(copy: AttemptCopy, manifest: AttemptManifest, error: DamagedObject) -> str:
    after = f"round {manifest.last_turn}" if manifest.last_turn else "the attempt's end"
    return (
        f"{copy.place}: what is stored after {after} is not used, and the turns since the state before are taken "
        f"again: {error}"
    )


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


class AttemptSaver:
    """Saves one attempt whenever its state has changed, and every 15 seconds what else is new.

    What keeps it from that is told once, and does not disturb the attempt: another machine then goes on from what was
    saved before.
    """

    def __init__(
        self,
        storage: ObjectStore,
        directory: AttemptDirectory,
        context: TrialContext,
        holding: Callable[[], AbstractContextManager[WrittenState | None]],
    ) -> None:
        """Save nothing yet; ``holding`` keeps the snapshots of the state that is written while it lasts."""
        self._copy = StoredCopy(AttemptCopy(storage, directory), context.engine)
        self._context = context
        self._holding = holding
        self._notes: dict[str, None] = {}
        self._wake = threading.Event()
        self._ends = threading.Event()
        self._is_over = False
        self._thread: threading.Thread | None = None
        self._image = ""

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

    def changed(self) -> None:
        """Have saved what has changed; returns at once."""
        if self._thread is None and not self._ends.is_set():
            self._thread = threading.Thread(target=self._run, name="storage", daemon=True)
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

    def _run(self) -> None:
        while not self._ends.is_set():
            self.save()
            self._wake.wait(_INTERVAL)
            self._wake.clear()

    def save(self) -> None:
        """Save how the attempt is now."""
        if self._is_over:
            return
        try:
            for _ in range(_TRIES):
                with self._holding() as written:
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

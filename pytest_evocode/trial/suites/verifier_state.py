"""What suites keep for later ones in the directories of ``verifier_state``; the host carries it from suite to suite."""

from __future__ import annotations

import logging
import shutil
import tempfile
from pathlib import Path
from typing import IO, BinaryIO, cast

from pytest_evocode.environments import Environment
from pytest_evocode.environments.artifact_archives import BoundedFile
from pytest_evocode.environments.tree_archives import CHUNK
from pytest_evocode.errors import EnvironmentFault, UnreadableFile
from pytest_evocode.tasks import Round
from pytest_evocode.tasks.atomic_write import replacing
from pytest_evocode.trial.context import TrialContext, writing_results

logger = logging.getLogger(__name__)

#: Beside the state of an unfinished attempt: what the suite of each round has left, for its owner alone.
DIRECTORY = "verifier-state"
_LIMIT = 256 * 2**20  # bytes of what a suite leaves for the next one
_NOT_CARRIED = (
    "verifier_state is empty: no suite of an earlier round has run in this attempt, which begins at a later one"
)


class VerifierState:
    """Carries the directories of ``verifier_state`` from suite to suite, which are to run in the order of their rounds.

    Without such directories nothing is carried, and suites run in any order. Methods raise EnvironmentFault.
    """

    def __init__(self, context: TrialContext) -> None:
        self.paths = context.task.config.metadata.evocode.verifier_state
        """The directories, of which each suite has those that the one before has left."""
        self._context = context
        self._kept: dict[int, IO[bytes]] = {}

    def give(self, place: Environment, round_: Round, *, empty: bool) -> tuple[str, ...]:
        """Put the directories where a suite is about to run, and return what is to be said of them.

        They replace whatever is there: an agent's files at these paths are no suite's. ``empty`` says that they are
        empty there.
        """
        if not self.paths:
            return ()
        if not empty:
            place.remove(self.paths)
            place.make_directories(self.paths)
        found = self._before(round_)
        if found is None:
            return () if round_.index == 1 else (_NOT_CARRIED,)
        with found:
            place.put_trees(self.paths, (), cast(BinaryIO, found))
        return ()

    def keep(self, place: Environment, round_: Round) -> None:
        """Take what a suite has left in the directories, whatever its verdict."""
        if not self.paths:
            return
        packed: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - kept until the attempt ends
        try:
            place.pack_trees(self.paths, cast(BinaryIO, BoundedFile(packed, _LIMIT)))
        except UnreadableFile:
            packed.close()
            raise EnvironmentFault(
                f"{round_.name}: the suite has left more than {_LIMIT // 2**20} MiB in {', '.join(self.paths)}, which "
                "verifier_state carries to later suites; keep less there"
            ) from None
        packed.flush()
        if (older := self._kept.pop(round_.index, None)) is not None:
            older.close()
        self._kept[round_.index] = packed
        self._write(round_, packed)

    def end(self, *, finished: bool) -> None:
        """Remove what is kept for a later session where the attempt has ended and nothing can be forked from it."""
        if finished and not self._context.options.keep_snapshots and (directory := self._directory) is not None:
            shutil.rmtree(directory, ignore_errors=True)

    def close(self) -> None:
        """Let go of what is kept for this session."""
        while self._kept:
            self._kept.popitem()[1].close()

    @property
    def _directory(self) -> Path | None:
        directory = self._context.directory
        return None if directory is None or not self.paths else directory.state_directory / DIRECTORY

    def _before(self, round_: Round) -> IO[bytes] | None:
        """Return what the last suite before a round's has left; None where none has run in this attempt."""
        for earlier in reversed(self._context.task.rounds[: round_.index - 1]):
            if (packed := self._kept.get(earlier.index)) is not None:
                # Opened anew, because a suite may run several times.
                return open(f"/proc/self/fd/{packed.fileno()}", "rb")
            directory = self._context.directory
            if self._directory is None or directory is None or directory.only_round:
                continue
            path = self._directory / f"{earlier.index}.tar"
            if path.is_file():
                return path.open("rb")
            if directory.read_rounds([earlier.name]):
                raise EnvironmentFault(
                    f"{round_.name} cannot be verified: what the suite of {earlier.name} left in "
                    f"{', '.join(self.paths)} is not in {self._directory}; run the attempt anew"
                )
        return self._inherited()

    def _inherited(self) -> IO[bytes] | None:
        """Return what the last suite before a fork has left; None in an attempt that is no fork."""
        if (fork := self._context.options.fork) is None:
            return None
        for index in range(fork.source.index, 0, -1):
            path = fork.directory / DIRECTORY / f"{index}.tar"
            if path.is_file():
                return path.open("rb")
        raise EnvironmentFault(
            f"what the suites of {fork.directory} left in {', '.join(self.paths)} is not there any more; run that "
            "attempt anew with --evocode-snapshots"
        )

    def _write(self, round_: Round, packed: IO[bytes]) -> None:
        """Write what a suite has left where a later session finds it, unless there is a secret of the host's in it."""
        if (directory := self._directory) is None:
            return
        packed.seek(0)
        if self._context.scrubber.finds(iter(lambda: packed.read(CHUNK), b"")):
            logger.info("%s: what the suite has left holds a secret, and is not written down", round_.name)
            return
        packed.seek(0)
        with writing_results():
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            with replacing(directory / f"{round_.index}.tar", mode=0o600) as written:
                shutil.copyfileobj(packed, written, CHUNK)

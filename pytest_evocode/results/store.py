"""The results directory: Harbor's layout, written so that a killed run leaves whole files or none."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel

from pytest_evocode.results.models import AttemptRecord, RoundRecord, RunRecord
from pytest_evocode.results.scrubbing import scrubbed
from pytest_evocode.secrets import Scrubber

STAMP = "%Y-%m-%d__%H-%M-%S"


def now() -> str:
    """The time as records hold it: ISO 8601 with offset, to the millisecond."""
    return datetime.now(UTC).astimezone().isoformat(timespec="milliseconds")


def write_atomically(path: Path, text: str) -> None:
    """Write a file under another name and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            os.fchmod(descriptor, 0o644)
            file.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _as_json(record: BaseModel, *, nulls: bool = True) -> str:
    # Not pydantic's own writer: it refuses half a surrogate pair, which programs and models print now and then.
    values = record.model_dump(mode="json", exclude_none=not nulls)
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True)
class AttemptDirectory:
    """``<task>/harbor_jobs/<agent>/<stamp>/<task>__a<attempt>`` below a results directory.

    Nothing is written with a secret of the host in it, or left in the artifacts: see :mod:`pytest_evocode.secrets`.
    """

    path: Path
    scrubber: Scrubber = field(default_factory=Scrubber, compare=False)

    @classmethod
    def of(
        cls, results: Path, task: str, agent: str, run: str, attempt: int, scrubber: Scrubber | None = None
    ) -> AttemptDirectory:
        """The directory of one attempt of a run; without a scrubber it has one of the process's environment."""
        path = results / task / "harbor_jobs" / agent / run / f"{task}__a{attempt}"
        return cls(path, scrubber or Scrubber())

    def artifacts(self, round_name: str) -> Path:
        """Where a round's artifacts go."""
        return self.path / "steps" / round_name / "artifacts"

    def verifier_output(self, round_name: str) -> Path:
        """Where a round's suite output is."""
        return self.path / "steps" / round_name / "verifier" / "test-stdout.txt"

    def write_round(self, record: RoundRecord, *, output: str | None, trajectory: BaseModel | None) -> None:
        """Write what a round leaves: ``output`` is its suite's, ``trajectory`` its agent's in ATIF."""
        step = self.path / "steps" / record.round
        record = scrubbed(record, self.scrubber)
        # First, so that they lie there unscrubbed for as short a time as can be.
        self.scrubber.tree(self.artifacts(record.round))
        if trajectory is not None:
            # Others take an absent list for an empty one, and trip over null.
            text = _as_json(scrubbed(trajectory, self.scrubber), nulls=False)
            write_atomically(step / "agent" / "trajectory.json", text)
        if output is not None:
            write_atomically(self.verifier_output(record.round), self.scrubber.text(output))
        if record.verdict is not None:
            cases = [case.model_dump(exclude_defaults=True) for case in record.verdict.cases]
            write_atomically(step / "verifier" / "cases.json", json.dumps(cases, indent=1) + "\n")
            # Last, because its presence says that the round has a verdict.
            write_atomically(step / "verifier" / "reward.txt", f"{record.verdict.reward!r}\n")

    def write_attempt(self, record: AttemptRecord) -> None:
        """Write ``result.json``."""
        write_atomically(self.path / "result.json", _as_json(scrubbed(record, self.scrubber)))


def claim_run(results: Path, record: RunRecord) -> RunRecord:
    """Write a session's first record under a name that no other session has: its time, or the next free second.

    The name is claimed by linking a complete file, so even a run killed at once leaves a whole record.
    """
    runs = results / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    seconds = datetime.now().timestamp()
    while True:
        named = record.model_copy(update={"run": datetime.fromtimestamp(seconds).strftime(STAMP)})
        with tempfile.NamedTemporaryFile("w", dir=runs, prefix=".claim.", encoding="utf-8", errors="replace") as file:
            file.write(_as_json(named))
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            try:
                os.link(file.name, runs / f"{named.run}.json")
                return named
            except FileExistsError:
                seconds += 1


def write_run(results: Path, record: RunRecord) -> None:
    """Write ``runs/<run>.json``."""
    write_atomically(results / "runs" / f"{record.run}.json", _as_json(record))

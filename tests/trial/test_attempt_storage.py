"""Attempts that are broken off on one machine and go on on another, from what their storage has.

A machine is a cache and a results directory of its own. There is one Docker engine, so the images of snapshots are
removed from it in between.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.environments import Engine
from pytest_evocode.environments.docker.engine import DockerEngine, connect
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.errors import AgentFault, TakenOver, UsageError
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.results.storage import AttemptCopy, ContentKey, ObjectStore
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.storage import AttemptStorage
from pytest_evocode.trial.trial import Trial

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask

RUN, NAME = "2026-01-01__00-00-00", "remembering"
#: Passes where every turn so far was taken once, on top of the one before; what turns delete stays deleted.
SUITE = """
    echo 0 > /logs/verifier/reward.txt
    set -e
    round=$(wc -l < log.txt)
    seq 1 $round | diff - log.txt
    [ ! -e image/old ]
    [ "$(cat image/new)" = new ]
    [ "$(ls whole)" = made ]
    [ "$(stat -c %a,%U,%Y s)" = 750,nobody,1000000000 ]
    [ "$(readlink link)" = log.txt ]
    [ image/new -ef hard ]
    echo 1 > /logs/verifier/reward.txt
"""
DOCKERFILE = """FROM python:3.11-slim-bookworm
WORKDIR /app
RUN mkdir image whole && echo old > image/old && echo old > whole/old && touch image/kept
"""
FIRST = """
    rm image/old; echo new > image/new; rm -r whole; mkdir whole; echo made > whole/made
    echo x > s; chown nobody s; chmod 4750 s; touch -d @1000000000 s; ln -s log.txt link; ln image/new hard
"""


class Remembering:
    """Appends the round's number to ``log.txt``; its third turn never ends on the first machine."""

    name = NAME

    def __init__(self, *, breaks_in: int = 0, is_saved: Callable[[int], bool] = lambda index: True) -> None:
        self.asked: list[int] = []
        self.said: list[int] = []
        self.paid: list[object] = []
        """What journals had when their turns began."""
        self._breaks_in = breaks_in
        self._is_saved = is_saved

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """Take the turn, and pay for it with an entry of the journal."""
        index = context.round.index
        self.asked.append(index)
        self.paid += context.journal.earlier
        while not self._is_saved(index - 1):  # Or the next round may end before the upload begins.
            time.sleep(0.01)
        if index == self._breaks_in:
            context.journal.add({"paid": index})
            raise AgentFault("the machine is lost")
        # No suite sees who a program could become; the next turn does.
        first = FIRST if index == 1 else "[ $(stat -c %a s) = 4750 ]"
        result = context.environment.exec(f"set -e\n{first}\necho {index} >> log.txt", user="root")
        assert result.ok, result.output
        self.said.append(index)
        return RoundTranscript(output="")

    def save_state(self) -> list[int]:
        """See :class:`~pytest_evocode.agents.protocol.ResumableAgent`."""
        return self.said

    def load_state(self, state: list[int]) -> None:
        """See :meth:`save_state`."""
        self.said = state


class Machine:
    """One of several machines, which have nothing in common but the storage."""

    def __init__(self, kind: str, place: Path, monkeypatch: pytest.MonkeyPatch, finish: Finish) -> None:
        self.results = place / "results"
        self.directory = AttemptDirectory.of(self.results, "small", NAME, RUN, 1)
        self._kind = kind
        self._cache = place / "cache"
        self._monkeypatch = monkeypatch
        self._finish = finish
        self.notes: tuple[str, ...] = ()

    def play(self, task: Task, agent: Remembering, storage: AttemptStorage, resume: bool = True) -> list[RoundRecord]:
        """Run the attempt as far as it goes."""
        self._monkeypatch.setenv("EVOCODE_CACHE", str(self._cache))
        engine = self._start()
        try:
            options = TrialOptions(resume=resume, storage=storage)
            trial = Trial(task, agent, engine, name=NAME, directory=self.directory, options=options)
            records = self._finish(trial)
            self.notes = trial.storage_notes
            return records
        finally:
            engine.close()

    def _start(self) -> Engine:
        return SandboxEngine() if self._kind == "sandbox" else DockerEngine()


@pytest.fixture(params=["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
def kind(request: pytest.FixtureRequest) -> str:
    """The engine of all machines of a test."""
    return str(request.param)


@pytest.fixture
def machines(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finish: Finish) -> tuple[Machine, Machine]:
    """Two machines."""
    first, second = (Machine(kind, tmp_path / name, monkeypatch, finish) for name in ("first", "second"))
    return first, second


@pytest.fixture
def task(make_task: MakeTask) -> Task:
    """Three rounds."""
    return make_task(SUITE, SUITE, SUITE, dockerfile=DOCKERFILE)


@pytest.fixture
def storage(tmp_path: Path) -> AttemptStorage:
    """A directory that both machines reach."""
    return AttemptStorage(str(tmp_path / "shared"))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the objects that are uploaded, as often as they are."""
    names: list[str] = []
    write = ObjectStore.write

    def note(store: ObjectStore, files: Mapping[str, bytes]) -> None:
        names.extend(name for name in files if "/objects/" in name)
        write(store, files)

    monkeypatch.setattr(ObjectStore, "write", note)
    return names


def lose_images(kind: str, machine: Machine) -> None:
    """Remove from the one Docker engine the snapshots that the other machine would not have."""
    state = machine.directory.read_state()
    if kind == "docker" and state is not None:
        client = connect()
        for turn in state.turns:
            client.remove_image(turn.snapshot, force=True)
        client.close()


def stored_files(tmp_path: Path, kind: str) -> list[Path]:
    """The files of that kind in the storage, in order."""
    return sorted((tmp_path / "shared").glob(f"small/harbor_jobs/*/*/small__a1/{kind}/*"))


@pytest.fixture
def is_saved(tmp_path: Path) -> Callable[[int], bool]:
    """Tells whether the storage has the state after a round."""

    def look(index: int) -> bool:
        with contextlib.suppress(IndexError, OSError, ValueError):  # None is there, or it is just being written.
            return not index or newest_manifest(tmp_path)["last_turn"] >= index
        return False

    return look


def newest_manifest(tmp_path: Path) -> dict[str, Any]:
    """What the storage has of the attempt."""
    found: dict[str, Any] = json.loads(stored_files(tmp_path, "manifests")[-1].read_bytes())
    return found


@pytest.mark.matrix
def test_an_attempt_goes_on_on_another_machine(
    machines: tuple[Machine, Machine],
    kind: str,
    task: Task,
    storage: AttemptStorage,
    written: list[str],
    tmp_path: Path,
) -> None:
    first, second = machines
    broken = first.play(task, Remembering(breaks_in=3), storage)
    assert ([each.outcome for each in broken], first.notes) == (["passed", "passed", "error"], ())
    lose_images(kind, first)
    agent = Remembering()
    records = second.play(task, agent, storage)
    assert (agent.asked, agent.said, agent.paid) == ([3], [1, 2, 3], [{"paid": 3}])
    assert records[:2] == broken[:2]
    assert records[2].outcome == "passed"
    assert second.directory.read_state() is None
    assert second.notes == ()
    assert len(written) == len(set(written)), "something was uploaded twice"
    # Once it has ended, what is stored are the records.
    manifest = newest_manifest(tmp_path)
    assert (manifest["snapshots"], "result.json" in manifest["files"]) == ({}, True)
    assert {path.name for path in stored_files(tmp_path, "objects")} == {
        key["sha256"] for key in manifest["files"].values()
    }


@pytest.mark.matrix
def test_where_a_layer_is_damaged_its_round_is_repeated(
    machines: tuple[Machine, Machine],
    kind: str,
    task: Task,
    storage: AttemptStorage,
    is_saved: Callable[[int], bool],
    tmp_path: Path,
) -> None:
    first, second = machines
    first.play(task, Remembering(breaks_in=3, is_saved=is_saved), storage)
    lose_images(kind, first)
    (snapshot,) = newest_manifest(tmp_path)["snapshots"].values()
    layers = [layer for layer in snapshot["layers"] if not layer["name"].startswith("evocode.changes")]
    (damaged,) = [path for path in stored_files(tmp_path, "objects") if path.name == layers[-1]["parts"][-1]["sha256"]]
    damaged.write_bytes(bytes(damaged.stat().st_size))
    if kind == "docker":
        make_another_image(task)
    agent = Remembering()
    records = second.play(task, agent, storage)
    assert (agent.asked, agent.said) == ([2, 3], [1, 2, 3])
    assert [each.outcome for each in records] == ["passed"] * 3
    note, *others = second.notes
    if kind == "docker":
        assert "the image of small is another here" in note
        (note,) = others
    assert damaged.name in note
    assert "what is stored after round 2 is not used, and the turns since the state before are taken again" in note


def make_another_image(task: Task) -> None:
    """Have the one Docker engine another image for the files of a task, as another machine's build may give."""
    engine = DockerEngine()
    image = engine.image_key(task)
    with contextlib.closing(engine), contextlib.closing(connect()) as client:
        described = client.inspect_image(image)  # type: ignore[no-untyped-call]
        (name,) = described["RepoTags"]
    dockerfile = f"FROM {name}\nRUN touch /of-another-build\n"
    subprocess.run(
        ["docker", "build", "--tag", name, "-"], input=dockerfile, text=True, check=True, capture_output=True
    )


class TestInSandboxes:
    """What has nothing to do with the engine."""

    @pytest.fixture
    def kind(self) -> str:
        """The one that takes less time."""
        return "sandbox"

    @pytest.mark.parametrize("is_behind", [False, True])
    @pytest.mark.nightly
    def test_a_results_directory_that_both_machines_see_needs_the_snapshots_alone(
        self,
        machines: tuple[Machine, Machine],
        task: Task,
        storage: AttemptStorage,
        is_saved: Callable[[int], bool],
        tmp_path: Path,
        is_behind: bool,
    ) -> None:
        first, second = machines
        first.play(task, Remembering(breaks_in=3, is_saved=is_saved), storage)
        second.directory = first.directory
        if is_behind:  # The machine was lost before the last upload.
            stored_files(tmp_path, "manifests")[-1].unlink()
        agent = Remembering()
        records = second.play(task, agent, storage)
        assert (agent.asked, agent.said) == ([2, 3] if is_behind else [3], [1, 2, 3])
        assert [each.outcome for each in records] == ["passed"] * 3
        assert [".replaced" in note for note in second.notes] == [True] * is_behind

    @pytest.mark.nightly
    def test_an_upload_that_was_killed_leaves_the_state_before(
        self,
        machines: tuple[Machine, Machine],
        task: Task,
        storage: AttemptStorage,
        is_saved: Callable[[int], bool],
        tmp_path: Path,
    ) -> None:
        first, second = machines
        first.play(task, Remembering(breaks_in=3, is_saved=is_saved), storage)
        newest = stored_files(tmp_path, "manifests")[-1]
        newest.write_bytes(newest.read_bytes()[:100])
        agent = Remembering()
        records = second.play(task, agent, storage)
        assert (agent.asked, agent.said) == ([2, 3], [1, 2, 3])
        assert [each.outcome for each in records] == ["passed"] * 3

    def test_an_object_that_was_cut_off_is_uploaded_again(self, storage: AttemptStorage, tmp_path: Path) -> None:
        directory = AttemptDirectory.of(tmp_path / "results", "small", NAME, RUN, 1)
        write_atomically(directory.path / "steps" / "round-1" / "notes", "what was written")
        key = ContentKey.of(b"what was written")
        cut = tmp_path / "shared" / AttemptCopy(storage.store, directory).place / "objects" / key.sha256
        cut.parent.mkdir(parents=True)
        cut.write_bytes(b"what")
        assert storage.saver(directory).save(None, None, {})
        assert cut.read_bytes() == b"what was written"

    def test_a_session_that_was_taken_for_lost_saves_nothing_more(
        self, storage: AttemptStorage, tmp_path: Path
    ) -> None:
        first, second = (AttemptDirectory.of(tmp_path / name, "small", NAME, RUN, 1) for name in "ab")
        write_atomically(first.path / "steps" / "round-1" / "notes", "1")
        lost = storage.saver(first)
        lost.save(None, None, {})
        assert storage.restore(second).found
        assert (second.path / "steps" / "round-1" / "notes").read_text() == "1"
        write_atomically(first.path / "steps" / "round-1" / "notes", "2")
        with pytest.raises(TakenOver, match="another session goes on with small/harbor_jobs"):
            lost.save(None, None, {})
        assert storage.restore(AttemptDirectory.of(tmp_path / "c", "small", NAME, RUN, 1)).found
        assert (second.path / "steps" / "round-1" / "notes").read_text() == "1"

    def test_what_is_older_here_than_in_the_storage_is_set_aside(self, storage: AttemptStorage, tmp_path: Path) -> None:
        here, there = (AttemptDirectory.of(tmp_path / name, "small", NAME, RUN, 1) for name in "ab")
        write_atomically(here.path / "notes", "older")
        storage.saver(here).save(None, None, {})
        storage.restore(there)
        write_atomically(there.path / "notes", "newer")
        saver = storage.saver(there)
        assert saver.restore().notes == ()
        saver.save(None, None, {})
        (note,) = storage.restore(here).notes
        (aside,) = (tmp_path / "a" / ".replaced").iterdir()
        assert str(aside) in note
        assert ((here.path / "notes").read_text(), (aside / "notes").read_text()) == ("newer", "older")

    def test_a_storage_that_cannot_be_written_does_not_disturb_the_attempt(
        self, machines: tuple[Machine, Machine], task: Task, tmp_path: Path
    ) -> None:
        (tmp_path / "file").touch()
        first, _ = machines
        agent = Remembering()
        records = first.play(task, agent, AttemptStorage(str(tmp_path / "file" / "below")), resume=False)
        assert [each.outcome for each in records] == ["passed"] * 3
        assert all("the storage " in note and "what was saved before holds" in note for note in first.notes)
        assert first.notes

    def test_what_is_forgotten_is_gone(self, storage: AttemptStorage, tmp_path: Path) -> None:
        directory = AttemptDirectory.of(tmp_path / "results", "small", NAME, RUN, 1)
        write_atomically(directory.path / "notes", "1")
        storage.saver(directory).save(None, None, {})
        storage.forget(directory)
        assert storage.store.tree("") == []
        assert not storage.restore(AttemptDirectory.of(tmp_path / "b", "small", NAME, RUN, 1)).found

    def test_a_password_in_the_url_is_refused(self) -> None:
        with pytest.raises(UsageError, match="has a password in it") as refused:
            AttemptStorage("ftp://me:open-sesame@host/x").store.tree("")
        assert "open-sesame" not in str(refused.value)

    def test_options_are_not_shown(self) -> None:
        storage = AttemptStorage("s3://bucket", {"secret": "open-sesame"})
        assert "open-sesame" not in f"{storage!r} {storage.store!r}"

"""Records and files lose the host's secrets and stay what they are."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pytest_evocode.results.records import Case, RoundRecord, Verdict
from pytest_evocode.results.scrubbing import scrub_file, scrub_tree, scrubbed
from pytest_evocode.secrets import Scrubber
from pytest_evocode.trajectories.atif import AgentInfo, Step, Trajectory

KEY = "sk-0123456789"
SCRUBBER = Scrubber({"API_KEY": KEY})


def record(said: str) -> RoundRecord:
    case = Case(id=said, status="failed", reason=said, failure="regression")
    verdict = Verdict(reward=0.5, rewards={"reward": 0.5, said: 1.0}, cases=(case,), flags=(said,))
    return RoundRecord(
        task="ledger",
        agent="oracle",
        attempt=1,
        round="round-1",
        index=1,
        declared_rounds=1,
        outcome="failed",
        cause=said,
        verdict=verdict,
    )


def test_every_text_of_a_record_is_scrubbed() -> None:
    assert scrubbed(record(f"<{KEY}>"), SCRUBBER) == record("<[API_KEY]>")


def test_a_record_without_secrets_is_the_same_object() -> None:
    clean = record("nothing")
    assert scrubbed(clean, SCRUBBER) is clean


def test_a_record_stays_valid_whatever_words_are_secret() -> None:
    scrubber = Scrubber({"A_PASSWORD": "regression", "B_PASSWORD": "ledger-x"})
    clean = record("a regression").model_copy(update={"task": "ledger-x"})
    found = scrubbed(clean, scrubber)
    assert RoundRecord.model_validate(found.model_dump(mode="json")) == found
    assert found.verdict is not None
    assert (found.task, found.verdict.cases[0].failure, found.cause) == ("ledger-x", "regression", "a [A_PASSWORD]")


def test_a_trajectory_is_scrubbed_with_fields_of_later_versions() -> None:
    def talk(said: str) -> Trajectory:
        step = Step.model_validate({"step_id": 1, "source": "agent", "message": [said], "later": {said: [said, 7]}})
        agent = AgentInfo(name="a", version="1", model_name=said)
        return Trajectory(session_id=said, agent=agent, steps=(step,))

    assert scrubbed(talk(KEY), SCRUBBER) == talk("[API_KEY]")


def test_a_large_file_keeps_every_other_byte_and_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    blocks = [os.urandom(2**20 - 20), os.urandom(2**20), os.urandom(10)]
    path.write_bytes(KEY.encode().join(blocks))
    path.chmod(0o750)
    assert scrub_file(path, SCRUBBER)
    assert path.read_bytes() == b"[API_KEY]".join(blocks)
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert os.listdir(tmp_path) == ["model.bin"]


def test_a_file_with_the_longest_name_and_every_mode_bit_is_scrubbed(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 127 + "x")
    path.write_text(f"key={KEY}")
    path.chmod(0o6755)
    scrub_tree(tmp_path, SCRUBBER)
    assert path.read_text() == "key=[API_KEY]"
    assert stat.S_IMODE(path.stat().st_mode) == 0o6755
    assert os.listdir(tmp_path) == [path.name]


def test_a_file_without_secrets_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(os.urandom(2**21))
    before = path.stat()
    assert not scrub_file(path, SCRUBBER)
    assert path.stat() == before or path.stat().st_mtime_ns == before.st_mtime_ns
    assert path.stat().st_ino == before.st_ino


def test_a_tree_is_scrubbed_with_its_names(tmp_path: Path) -> None:
    deep = tmp_path / f"in-{KEY}" / "deep"
    deep.mkdir(parents=True)
    (deep / KEY).write_text(f"key={KEY}")
    (deep / f"{KEY[:-1]}").write_text("cut")
    scrub_tree(tmp_path, SCRUBBER)
    found = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert found == ["in-[API_KEY]/deep/[API_KEY]", "in-[API_KEY]/deep/[API_KEY].2"]
    texts = sorted((tmp_path / path).read_text() for path in found)
    assert texts == ["cut", "key=[API_KEY]"]


def test_a_tree_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    scrub_tree(tmp_path / "missing", SCRUBBER)

"""The list of what an agent changed: whole, once for the same contents, without secrets."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

from pytest_evocode.results.directory import recorded_changes, write_changes
from pytest_evocode.results.records import ChangesFile
from pytest_evocode.secrets import Scrubber

MANY = ChangesFile(paths={"left behind": tuple(f"/etc/{number}" for number in range(20_000)), "carried": ("/root/Ü",)})


def test_a_file_is_named_by_its_contents(tmp_path: Path) -> None:
    scrubber = Scrubber({})
    recorded = recorded_changes(MANY, scrubber)
    assert recorded.counts == {"left behind": 20_000, "carried": 1}
    for _ in range(2):
        write_changes(tmp_path, MANY, scrubber)
    (file,) = (tmp_path / "changes").iterdir()
    contents = gzip.decompress(file.read_bytes())
    assert file.name == f"{hashlib.sha256(contents).hexdigest()}.json.gz" == f"{recorded.address}.json.gz"
    assert ChangesFile.model_validate_json(contents) == MANY


def test_where_nothing_was_changed_there_is_none(tmp_path: Path) -> None:
    nothing = ChangesFile(paths={})
    write_changes(tmp_path, nothing, Scrubber({}))
    assert recorded_changes(nothing, Scrubber({})).address == ""
    assert list(tmp_path.iterdir()) == []


def test_secrets_in_names_are_taken_out(tmp_path: Path) -> None:
    secret = "sk-0123456789abcdef0123456789"
    scrubber = Scrubber({"OPENAI_API_KEY": secret})
    write_changes(tmp_path, ChangesFile(paths={"carried": (f"/srv/{secret}",)}), scrubber)
    (file,) = (tmp_path / "changes").iterdir()
    assert secret.encode() not in gzip.decompress(file.read_bytes())

"""What is public changes only with a changelog entry that explains it; docs/stability.md says what is public."""

from __future__ import annotations

import difflib
import json
from pathlib import Path

import pytest

from tests import public_surface
from tests.public_surface import SNAPSHOT, explains, surface


def test_what_is_public_changes_with_a_fragment_that_says_so() -> None:
    kept = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    changed = [
        line
        for line in difflib.unified_diff(kept["surface"], surface(), "released", "now", n=0, lineterm="")
        if not line.startswith("@@")
    ]
    assert not changed, (
        "what is public has changed. Add a fragment in changelog.d/ that says so (its README.md tells how), and run: "
        "python -m tests.public_surface FRAGMENT.md\n" + "\n".join(changed)
    )


def test_what_explains_today_s_surface_is_there() -> None:
    name = json.loads(SNAPSHOT.read_text(encoding="utf-8"))["explained by"]
    assert explains(name), (
        f"tests/public_surface.json is explained by {name}, which is neither in changelog.d/ nor a heading of "
        "CHANGELOG.md; where a release has taken the fragment, run: python -m tests.public_surface VERSION"
    )


def test_all_kinds_of_what_is_public_are_there() -> None:
    lines = surface()
    assert {
        "option --evocode-agent takes one",
        "option --evocode-mode takes one of chain, fail-stop, single-round",
        "setting evocode_verifiers: string",
        "command results --json",
        "hook pytest_evocode_make_agent(config, name, options)",
        "fixture evocode_container",
        "fixture workspace",
        "entry points of agents: pytest_evocode.agents",
        "extra sandbox",
        "program evocode",
        "record RunRecord in runs/*.json",
        "task.toml steps.name",
        "python pytest_evocode.play.Episode.finish_round(self)",
        "python pytest_evocode.Trial",
    } <= set(lines)


class TestWriting:
    @pytest.fixture
    def root(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        (tmp_path / "changelog.d").mkdir()
        (tmp_path / "changelog.d" / "README.md").write_text("How to write fragments.\n")
        (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.3.0\n\n- New.\n\n## 0.2.0\n\n- Old.\n")
        monkeypatch.setattr(public_surface, "ROOT", tmp_path)
        monkeypatch.setattr(public_surface, "surface", lambda: ["option --evocode-new takes one"])
        return tmp_path

    @pytest.mark.parametrize("name", ["45.added.md", "README.md", "0.4.0", ""])
    def test_a_change_that_nothing_explains_is_refused(self, root: Path, name: str) -> None:
        with pytest.raises(SystemExit, match="write the fragment first"):
            public_surface.write(name, root / "surface.json")
        assert not (root / "surface.json").exists()

    def test_a_fragment_explains_what_it_was_written_with_alone(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fragment = root / "changelog.d" / "45.added.md"
        fragment.write_text("`--evocode-new` is new.\n")
        public_surface.write("45.added.md", root / "surface.json")
        public_surface.write("45.added.md", root / "surface.json")  # Nothing has changed.
        monkeypatch.setattr(public_surface, "surface", lambda: [])
        with pytest.raises(SystemExit, match="says what it said before this change"):
            public_surface.write("45.added.md", root / "surface.json")
        fragment.write_text("`--evocode-new` is gone.\n")
        public_surface.write("45.added.md", root / "surface.json")
        assert json.loads((root / "surface.json").read_text())["surface"] == []

    def test_a_release_takes_the_place_of_its_fragments(self, root: Path) -> None:
        public_surface.write("0.3.0", root / "surface.json")
        assert json.loads((root / "surface.json").read_text())["explained by"] == "0.3.0"

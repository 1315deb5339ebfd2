"""Print the notes of a release from CHANGELOG.md: ``release_notes.py v0.2.0``.

Fails where the tag is not the version in pyproject.toml, where the release has no notes or more than 600 words of them,
and where fragments are left in changelog.d/, so that nothing is released half prepared.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

MOST_WORDS = 600


def notes_of(tag: str, root: Path) -> str:
    """Return the notes of a release.

    Args:
        tag: The tag, such as ``v0.2.0``.
        root: The root of the repository.

    Raises:
        SystemExit: The release is not prepared; the message says what to do.
    """
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if tag != f"v{version}":
        raise SystemExit(
            f"the tag is {tag}, and pyproject.toml has version {version}: tag a commit that has the tag's version"
        )
    if left := sorted(path.name for path in (root / "changelog.d").glob("*.md") if path.name != "README.md"):
        raise SystemExit(f"changelog.d has {', '.join(left)}: run towncrier build --version {version}")
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    notes = found[1].strip() if found else ""
    if not notes:
        raise SystemExit(f"CHANGELOG.md has no notes below a heading ## {version}")
    if len(notes.split()) > MOST_WORDS:
        raise SystemExit(f"the notes of {version} have {len(notes.split())} words: say it in {MOST_WORDS}")
    return notes


if __name__ == "__main__":
    print(notes_of(sys.argv[1], Path(__file__).parents[2]))

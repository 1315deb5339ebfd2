"""Makes the package's description of README.md: links to files lead to those of the tag, as PyPI has no files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


class ReadmeHook(MetadataHookInterface):
    """The hook that hatchling runs for a wheel, an archive and an editable installation."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the field ``readme``."""
        home = f"{metadata['urls']['Homepage']}/{{}}/v{metadata['version']}/"
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = _LINK.sub(
            lambda link: f"{link[1]}[{link[2]}]({home.format('raw' if link[1] else 'blob')}{link[3]})", text
        )
        metadata["readme"] = {"content-type": "text/markdown", "text": text}

"""Task directories to load, complete unless a test takes something away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

TWO_STEPS = '[[steps]]\nname = "round-1"\n[[steps]]\nname = "round-2"\n'


@pytest.fixture
def write_task(tmp_path: Path) -> Callable[..., Path]:
    """Write ``toml`` and one complete directory per name in ``steps`` (none: a single-step task).

    ``files`` maps further paths to their text and replaces files written before; ``without`` names files not to write.
    """

    def write(
        toml: str = TWO_STEPS,
        *,
        steps: Iterable[str] = ("round-1", "round-2"),
        files: Mapping[str, str] | None = None,
        without: Iterable[str] = (),
        name: str = "ledger",
    ) -> Path:
        directory = tmp_path / name
        wanted = {"task.toml": toml, "environment/Dockerfile": "FROM scratch\n"}
        for root in [f"steps/{step}/" for step in steps] or [""]:
            wanted |= {
                f"{root}instruction.md": "Write the program.\n",
                f"{root}tests/test.sh": "true\n",
                f"{root}solution/solve.sh": "true\n",
            }
        wanted |= files or {}
        for path, text in wanted.items():
            if path not in without:
                (directory / path).parent.mkdir(parents=True, exist_ok=True)
                (directory / path).write_text(text, encoding="utf-8")
        return directory

    return write

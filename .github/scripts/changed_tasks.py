"""Print the directories of the tasks that differ from another commit, one in a line; arguments: that commit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path, PurePosixPath


def tasks_of(changed: list[str], root: Path) -> list[str]:
    """Return the tasks that changed files belong to; a task that is gone is none."""
    found = set()
    for name in changed:
        for parent in PurePosixPath(name).parents:
            if (root / parent / "task.toml").is_file():
                found.add(str(parent))
                break
    return sorted(found)


def main() -> int:
    """Compare with the commit that is named."""
    command = ["git", "diff", "--name-only", "--no-renames", "-z", sys.argv[1], "HEAD", "--"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    print("\n".join(tasks_of(answer.stdout.split("\0"), Path.cwd())))
    return 0


if __name__ == "__main__":
    sys.exit(main())

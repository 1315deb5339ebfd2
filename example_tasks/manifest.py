"""Keep MANIFEST: the dataset's version, and the version, the rounds and a hash of each full task.

``python example_tasks/manifest.py`` says whether MANIFEST is up to date, ``--write`` makes it anew. The hash is the one
that results have of a task, over all files that a run depends on.
"""

import sys
from pathlib import Path

from pytest_evocode.tasks import load_task
from pytest_evocode.tasks.lockfile import content_hash

HERE = Path(__file__).parent
MANIFEST = HERE / "MANIFEST"


def manifest(version: str) -> str:
    """Return what MANIFEST is to have."""
    tasks = [load_task(path.parent) for path in sorted(HERE.glob("*/task.toml"))]
    rows = [
        f"{content_hash(task.directory)}  {task.name:<12}{task.config.task.version:<8}{len(task.rounds):>3}\n"
        for task in tasks
    ]
    return f"dataset {version}\n{''.join(rows)}"


def main(arguments: list[str]) -> str | None:
    """Write or compare it; return what is wrong."""
    written = MANIFEST.read_text()
    today = manifest(written.split()[1])
    if arguments == ["--write"]:
        MANIFEST.write_text(today)
    elif arguments:
        return __doc__
    elif today != written:
        return "MANIFEST is not up to date: raise the versions of dataset and tasks, and run manifest.py --write"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

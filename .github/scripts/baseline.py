"""Find the run whose results a benchmark is compared with, for GitHub's output ``run``.

BASELINE is the number of a run, or a branch: then it is the newest run of the same workflow on it that left results.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from github_api import RESULTS, artifact, items


def newest_run(workflow: str, branch: str) -> int | None:
    """Return the newest finished run of a workflow's file on a branch that has results; None without one."""
    for run in items(f"actions/workflows/{workflow}/runs", branch=branch, status="completed"):
        if _is_of_the_branch(run) and artifact(run["id"], RESULTS) is not None:
            return int(run["id"])
    return None


def _is_of_the_branch(run: dict[str, Any]) -> bool:
    """Whether it ran what is on the branch, and not a pull request, whose author names its branch."""
    is_own = (run["head_repository"] or {}).get("id") == run["repository"]["id"]
    return is_own and not run["event"].startswith("pull_request")


def main() -> int:
    """Look for the baseline; that there is none yet is no error."""
    wanted = os.environ["BASELINE"]
    workflow = os.environ["GITHUB_WORKFLOW_REF"].partition("@")[0].rpartition("/")[2]
    run = int(wanted) if wanted.isdecimal() else newest_run(workflow, wanted)
    if run is None:
        print(f"::notice::no baseline yet: no run of {workflow} on {wanted} has left results")
        return 0
    print(f"the baseline is run {run}")
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as output:
        output.write(f"run={run}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

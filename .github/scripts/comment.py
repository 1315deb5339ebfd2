"""Write the comment of a pull request anew: one comment, found by a mark, that is changed and never repeated.

The text comes from an artifact that an untrusted job made: it is data, is cut to what a comment may have, and mentions
nobody. The number of the pull request and all links come from GitHub alone.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from github_api import REPORT, RESULTS, artifact, call, items

MARK = "<!-- evocode-benchmark -->"
LONGEST = 60_000
"""Characters of the text; GitHub takes 65,536 in all."""

_MARKUP = re.compile(r"[<@&\]]|:(?=//)|www(?=\.)|#(?=\d)", re.IGNORECASE)
"""What tags, mentions, entities, links and images, addresses and numbers of issues need."""


def body(text: str, report: str, run: str) -> str:
    """Return a comment of untrusted text: without the markup that loads, mentions, links or hides something."""
    # Not escaped, because in a block of code the escape would be shown; a space of no width is seen nowhere.
    text = _MARKUP.sub("\\g<0>\u200b", text.strip())
    if len(text) > LONGEST:
        text = text[:LONGEST].rpartition("\n")[0] + "\n\nThe rest is in the report."
    return f"{MARK}\n## Benchmark\n\n[Report]({report}), [run]({run})\n\n{text}\n"


def pull_request(event: dict[str, Any], open_ones: list[dict[str, Any]]) -> int | None:
    """Return the number of the open pull request whose newest commit a workflow's run was for; None without one."""
    run = event["workflow_run"]
    for each in open_ones:
        head = each["head"]
        if head["sha"] == run["head_sha"] and (head["repo"] or {}).get("id") == run["head_repository"]["id"]:
            return int(each["number"])
    return None


def report(run: dict[str, Any]) -> str:
    """Return the address of a run's report: on Pages where it was published there, else that of its artifact."""
    jobs = items(f"actions/runs/{run['id']}/jobs")
    if any(job["name"].rpartition(" / ")[2] == "Report" and job["conclusion"] == "success" for job in jobs):
        return str(call("pages")["html_url"])
    found = artifact(run["id"], REPORT) or artifact(run["id"], RESULTS)
    return run["html_url"] if found is None else f"{run['html_url']}/artifacts/{found['id']}"


def main() -> int:
    """Write the comment; arguments: the file with the text."""
    if not Path(sys.argv[1]).is_file():
        print("::notice::the benchmark left no results, so there is nothing to comment")
        return 0
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    run = event["workflow_run"]
    owner = run["head_repository"]["owner"]["login"]
    number = pull_request(event, list(items("pulls", state="open", head=f"{owner}:{run['head_branch']}")))
    if number is None:
        print("::notice::no open pull request has this commit, so there is nothing to comment")
        return 0
    text = Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace")
    written = {"body": body(text, report(run), run["html_url"])}
    for each in items(f"issues/{number}/comments"):
        if (each["body"] or "").startswith(MARK) and each["user"]["type"] == "Bot":
            call(f"issues/comments/{each['id']}", "PATCH", written)
            return 0
    call(f"issues/{number}/comments", "POST", written)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Write the comment of a pull request anew: one comment, found by a mark, that is changed and never repeated.

The text comes from an artifact that an untrusted job made: it is data, is cut to what a comment may have, and mentions
nobody. The number of the pull request comes from GitHub's event alone.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

MARK = "<!-- evocode-benchmark -->"
LONGEST = 60_000


def body(text: str, link: str) -> str:
    """Return a comment of untrusted text: without the markup that loads, mentions or hides something."""
    text = text[:LONGEST].replace("<", "&lt;").replace("![", "[").replace("@", "@\u200b")
    text = re.sub(r"(?i)(https?)://", "\\1:\u200b//", text)
    return f"{MARK}\n## Benchmark\n\n{text.strip()}\n\n[Report and logs]({link})\n"


def pull_request(event: dict[str, Any], open_ones: list[dict[str, Any]]) -> int | None:
    """Return the number of the open pull request whose newest commit a workflow's run was for; None without one."""
    run = event["workflow_run"]
    for each in open_ones:
        head = each["head"]
        if head["sha"] == run["head_sha"] and (head["repo"] or {}).get("id") == run["head_repository"]["id"]:
            return int(each["number"])
    return None


def main() -> int:
    """Write the comment; arguments: the file with the text."""
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    base = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}"
    branch = event["workflow_run"]["head_branch"]
    owner = event["workflow_run"]["head_repository"]["owner"]["login"]
    query = urllib.parse.urlencode({"state": "open", "head": f"{owner}:{branch}", "per_page": 100})
    number = pull_request(event, _call(f"{base}/pulls?{query}"))
    if number is None:
        print("comment: no open pull request has this commit; nothing to do")
        return 0
    text = Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace")
    written = {"body": body(text, event["workflow_run"]["html_url"])}
    comments = _call(f"{base}/issues/{number}/comments?per_page=100")
    ours = [each for each in comments if each["body"].startswith(MARK) and each["user"]["type"] == "Bot"]
    if ours:
        _call(f"{base}/issues/comments/{ours[0]['id']}", "PATCH", written)
    else:
        _call(f"{base}/issues/{number}/comments", "POST", written)
    return 0


def _call(url: str, method: str = "GET", data: dict[str, Any] | None = None) -> Any:
    request = urllib.request.Request(
        url,
        method=method,
        data=None if data is None else json.dumps(data).encode(),
        headers={"Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}", "Accept": "application/vnd.github+json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


if __name__ == "__main__":
    sys.exit(main())

"""GitHub's REST API, as far as the scripts beside this one ask it; with the rights of GITHUB_TOKEN."""

from __future__ import annotations

import itertools
import json
import os
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

RESULTS = "evocode-results"
REPORT = "evocode-report.html"
"""The names of a benchmark's artifacts."""

_PAGE = 100  # The most that GitHub gives at once.


def call(path: str, method: str = "GET", data: dict[str, Any] | None = None) -> Any:
    """Return the answer to a request; the path begins after the repository's name."""
    request = urllib.request.Request(
        f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/{path}",
        method=method,
        data=None if data is None else json.dumps(data).encode(),
        headers={"Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}", "Accept": "application/vnd.github+json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def items(path: str, **query: str | int) -> Iterator[dict[str, Any]]:
    """Yield what a list has, and ask for a further page only when it is wanted."""
    for number in itertools.count(1):
        asked = urllib.parse.urlencode({**query, "per_page": _PAGE, "page": number})
        answer = call(f"{path}?{asked}")
        # Some lists come bare, others in an object beside their length.
        found = answer if isinstance(answer, list) else next(each for each in answer.values() if isinstance(each, list))
        yield from found
        if len(found) < _PAGE:
            return


def artifact(run: int, name: str) -> dict[str, Any] | None:
    """Return the newest artifact of that name that a run has left and GitHub still keeps; None without one."""
    kept = [each for each in items(f"actions/runs/{run}/artifacts", name=name) if not each["expired"]]
    return max(kept, key=lambda each: each["id"], default=None)

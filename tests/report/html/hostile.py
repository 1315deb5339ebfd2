"""Texts that attack whoever shows them, and a way to put them into every text field of a report's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Each sets this global of the page if it runs.
FLAG = "PWNED"
CORPUS = (
    "<script>PWNED=1</script>",
    "</script><script>window.PWNED=1</script>",
    "<!--<script>PWNED=1</script>",
    "<!-- --!><img src=x onerror=PWNED=1>",
    "<img src=x onerror=window.PWNED=1>",
    "<svg onload=PWNED=1><animate onbegin=PWNED=1 attributeName=x dur=1s>",
    '"><img src=\'http://attack.example/pixel.png\' onerror="PWNED=1">',
    "' autofocus onfocus=PWNED=1 x='",
    "javascript:window.PWNED=1",
    "JaVaScRiPt:PWNED=1//",
    "data:text/html,<script>opener.PWNED=1</script>",
    "vbscript:PWNED=1",
    "http://attack.example/collect?c=1",
    "//attack.example/x.js",
    "<iframe srcdoc='<script>parent.PWNED=1</script>'></iframe>",
    "<style>@import 'http://attack.example/x.css'; * { display: none }</style>",
    "<link rel=stylesheet href=http://attack.example/x.css>",
    "<base href=http://attack.example/>",
    "<meta http-equiv=refresh content='0;url=http://attack.example/'>",
    "<form action=http://attack.example/><button autofocus>go</button></form>",
    "<details open ontoggle=PWNED=1>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=PWNED=1>",
    "{{constructor.constructor('PWNED=1')()}} ${PWNED=1} #{PWNED=1}",
    "]]><script>PWNED=1</script><![CDATA[",
    "`${window.PWNED=1}`",
    "');PWNED=1;//",
    '\\");PWNED=1;//',
    "&lt;img src=x onerror=PWNED=1&gt; &#60;b&#62; &amp;",
    "before\u2028after\u2029end",
    "\x1b[31mred \x1b[1;4;38;5;208m orange\x1b[0m \x1b]8;;http://attack.example/\x07link\x1b]8;;\x07",
    "\x1b[2J\x1b[H\x1b]0;title\x07 cleared",
    "\x1b[" + "9" * 400 + "m\x1b[38;2;1;2m\x1b[",
    "user\u202e\u2066// admin\u2069 \u2066gnp.exe",
    "zero\u200bwidth\u200djoiner\ufeff\u00ad tags \U000e0041\U000e0042",
    "a lone \ud800 surrogate \udfff",
    "nul \x00 bell \x07 back\x08 delete \x7f c1 \x9b31m \x85 form\x0c tab\t return\rover",
    "Z\u0351\u036b\u0343\u036a\u0302" * 60,
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "toString",
    "%00%0a%2e%2e%2f..%5c../../../../etc/passwd",
    "#/overview?sort=x&__proto__=1",
    "\ud83d\udc69\u200d\ud83d\ude80".encode("utf-16", "surrogatepass").decode("utf-16")
    + " \u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd",
    "   ",
    "",
)
#: Names of tasks, agents and cases, where what they are called is what a table is looked up by.
NAMES = (
    "__proto__",
    "constructor",
    "<img src=x onerror=window.PWNED=1>",
    "toString",
    "</script><script>PWNED=1</script>",
)
LONG_LINE = 5_000_000

#: Fields that are no text: ids, choices of the contract, characters for cells, times of day.
_NOT_TEXTS = {
    "row", "run", "attempts", "mode", "written", "started", "finished", "cells", "outcome", "fault", "timed_out",
    "rests_on", "status", "failure", "certainty", "purpose", "source", "time", "score", "against", "dimension", "cell",
    "first", "second",
}  # fmt: skip
#: Lists whose items have ids that somebody made up.
_NAMED_BY_OTHERS = {"cases", "requirements", "calls"}
#: Fields whose keys are texts too.
_KEYS_ARE_TEXTS = {
    "rewards", "made_by", "versions", "arguments", "agents", "changed_counts", "task", "activity", "category", "change",
}  # fmt: skip
_CHANGES = ("added", "changed", "removed", "renamed")
_FAILURES = ("new miss", "regression", "carried", "stale")


def hostile(values: dict[str, Any]) -> dict[str, Any]:
    """Return a report's values (by file name) with every text exchanged, equal ones by equal ones."""
    exchange = _exchange()
    # These are first, so that they get the names.
    for named in (*values["index"]["tasks"], *values["index"]["rows"]):
        exchange(named.get("agent") or named["name"])
    return {name: _replaced(value, "", exchange) for name, value in values.items()}


def add_long_line(values: dict[str, Any]) -> dict[str, Any]:
    """Put a line of five million characters into an output of the first attempt and into its first trajectory."""
    line = "<img src=x onerror=PWNED=1>" * (LONG_LINE // 27)
    attempt = next(value for name, value in values.items() if name.startswith("attempts/"))
    attempt["rounds"][0]["output"] = line
    attempt["rounds"][0]["cases"][0]["actual"] = line
    steps = next((value for name, value in values.items() if name.startswith("trajectories/")), None)
    if steps:
        steps[0]["text"] = line
        steps[3]["calls"][0]["output"] = line
    return values


def _exchange() -> Callable[[str], str]:
    known: dict[str, str] = {}
    taken: set[str] = set()
    texts = (*NAMES, *CORPUS)

    def exchange(text: str) -> str:
        if text and text not in known:
            place = len(known)
            new = texts[place % len(texts)]
            # Two things that had different names still have different ones.
            known[text] = new if new and new not in taken else f"{new} {place}"
            taken.add(known[text])
        return known.get(text, "")

    return exchange


def _replaced(value: Any, field: str, exchange: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        renamed = field in _KEYS_ARE_TEXTS
        return {
            (exchange(key) if renamed else key): _item(key, each, field, exchange, renamed=renamed)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_replaced(each, field, exchange) for each in value]
    if not isinstance(value, str) or field in _NOT_TEXTS or value in _CHANGES or value in _FAILURES:
        return value
    return exchange(value)


def _item(key: str, value: Any, field: str, exchange: Callable[[str], str], *, renamed: bool) -> Any:
    if key == "id" and not renamed and field not in _NAMED_BY_OTHERS:
        return value
    return _replaced(value, "" if renamed else key, exchange)

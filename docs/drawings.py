"""Draws the pictures of ``concepts.md``: ``python docs/drawings.py`` writes them to ``docs/images/``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

IMAGES = Path(__file__).parent / "images"
#: White, so that they can be read on a dark page as well.
PAGE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" \
role="img" aria-labelledby="title about" font-family="system-ui, sans-serif" font-size="14">
<title id="title">{title}</title>
<desc id="about">{about}</desc>
<style>
  rect {{ fill: #fff; }} .other {{ stroke: #444; }}
  .agent {{ fill: #fff1e0; stroke: #b35c00; }} .suite {{ fill: #e4f0fb; stroke: #1c5c99; }}
  .host {{ fill: #edf6ea; stroke: #2f7a2b; }} text {{ fill: #1a1a1a; }} .small {{ font-size: 12px; fill: #444; }}
  path {{ stroke: #444; fill: none; }} .arrow {{ marker-end: url(#head); }} .dashed {{ stroke-dasharray: 4 4; }}
</style>
<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">\
<path d="M0 0L10 5L0 10z" style="fill: #444"/></marker></defs>
<rect width="{width}" height="{height}"/>
{body}
</svg>
"""


def text(x: float, y: float, words: str, anchor: str = "middle", kind: str = "small") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{words}</text>'


def box(x: float, y: float, width: float, height: float, kind: str, *lines: str) -> str:
    """A box with lines in its middle, the first one larger."""
    top = y + height / 2 - (len(lines) - 1) * 9 + 5
    shown = (
        text(x + width / 2, top + number * 18, line, kind="small" if number else "large")
        for number, line in enumerate(lines)
    )
    rectangle = f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>'
    return "\n".join((rectangle, *shown))


def arrow(way: str) -> str:
    return f'<path class="arrow" d="{way}"/>'


def dashed(way: str) -> str:
    return f'<path class="dashed" d="{way}"/>'


def verdict() -> Iterator[str]:
    yield text(14, 50, "the agent's", "start")
    yield text(14, 66, "environment", "start")
    yield text(14, 210, "meanwhile", "start")
    for number in (1, 2, 3):
        left = number * 210 - 100
        middle = left + 65
        yield box(left, 30, 130, 50, "agent", f"turn {number}", f"request of round {number}")
        yield arrow(f"M{middle} 80V118")
        yield box(left, 120, 130, 34, "other", f"snapshot {number}")
        yield arrow(f"M{middle} 154V188")
        yield box(left, 190, 130, 44, "suite", f"suite {number}", "in forks of it")
        yield arrow(f"M{middle} 234V262")
        yield text(middle, 280, "reward, cases")
        if number < 3:
            yield arrow(f"M{left + 130} 55H{left + 208}")


def life_spans() -> Iterator[str]:
    spans = (
        ("balance", 1, 4, "in every suite"),
        ("half a cent up", 1, 2, "until a correction retires it"),
        ("half a cent to even", 3, 4, "what the correction says"),
        ("imports", 2, 4, "from round 2 on"),
    )
    for number in range(5):
        yield dashed(f"M{170 + number * 130} 40V236")
    for number in (1, 2, 3, 4):
        yield text(105 + number * 130, 30, f"suite of round {number}", kind="large")
    for place, (name, first, last, why) in enumerate(spans):
        top, left = 50 + place * 46, 40 + first * 130
        yield text(160, top + 20, name, "end", "large")
        yield box(left + 6, top, (last - first + 1) * 130 - 12, 30, "suite" if last == 4 else "agent")
        yield text(left + 16, top + 20, why, "start")


def suites() -> Iterator[str]:
    for left, name, what in ((180, "separate", "native suites: test_*.py"), (580, "clean", "test.sh")):
        yield text(left, 24, name, kind="large")
        yield text(left, 42, what)
    yield dashed("M375 16V284")
    yield box(20, 60, 150, 70, "suite", "pytest, tests", "image as built")
    yield box(200, 60, 150, 70, "agent", "program", "fork of the snapshot")
    yield box(75, 190, 220, 60, "host", "the host", "checks each call, returns data")
    yield arrow("M95 130L140 188")
    yield arrow("M230 188L275 130")
    yield text(66, 165, "workspace.run")
    yield text(300, 165, "is run there")
    yield box(420, 60, 320, 110, "suite")
    yield text(580, 84, "fresh environment of the image", kind="large")
    yield box(440, 98, 130, 56, "suite", "test.sh, tests", "run here")
    yield box(590, 98, 130, 56, "agent", "workspace, state", "brought over")
    yield box(480, 220, 200, 50, "agent", "snapshot", "all else stays behind")
    yield arrow("M620 220L650 156")


def gateway() -> Iterator[str]:
    yield box(20, 40, 190, 90, "agent", "coding CLI", "in the container, no network,", "a token of this attempt")
    yield box(290, 40, 190, 90, "host", "gateway", "on the host, your key,", "budget, pace, retries")
    yield box(560, 40, 180, 90, "other", "provider", "of the model")
    for way in ("M210 70H288", "M480 70H558", "M560 100H482", "M290 100H212"):
        yield arrow(way)
    yield box(290, 165, 190, 36, "other", "trajectory, tokens, cost")
    yield arrow("M385 130V163")


DRAWINGS = {
    "concept-verdict.svg": (
        (760, 300),
        verdict,
        "How a verdict comes about",
        "An agent takes the turns of three rounds in one environment. A snapshot is taken after each. The suite runs "
        "in forks of it while the agent goes on, and ends with a reward and cases.",
    ),
    "concept-life-spans.svg": (
        (710, 245),
        life_spans,
        "Life spans of requirements",
        "A requirement begins in a round and holds to the end, or until a later round retires it. The suite of a round "
        "has the cases of all that hold in it.",
    ),
    "concept-suites.svg": (
        (760, 300),
        suites,
        "The two ways in which a suite is judged",
        "Separate: pytest and the tests are in the image as built, the program in a fork of the snapshot, and the host "
        "passes each call. Clean: test.sh runs in a fresh environment, into which workspace and state are brought.",
    ),
    "concept-gateway.svg": (
        (760, 215),
        gateway,
        "The gateway",
        "A coding CLI in the container asks the gateway on the host, which has the key, holds budgets, "
        "asks the provider, and writes trajectory, tokens and cost.",
    ),
}


def drawn() -> dict[str, str]:
    """Return the pictures by the names of their files."""
    return {
        name: PAGE.format(width=size[0], height=size[1], title=title, about=about, body="\n".join(draw()))
        for name, (size, draw, title, about) in DRAWINGS.items()
    }


if __name__ == "__main__":
    for name, picture in drawn().items():
        (IMAGES / name).write_text(picture, encoding="utf-8")

"""How often the rules of process are right on the labelled turns: ``python -m benchmarks.turn_labels``.

Precision and recall with Wilson's 95 % intervals, for each label, those held back apart, then by harness and by class
of language; and Cohen's kappa between the two passes of labels, which are not independent (turns/README.md). The text
of public recordings is read from ``--recordings DIR``, where a clone or a bare mirror of OWNER/NAME is called
``OWNER+NAME``; turns that are not at hand are left out and counted.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.recordings import Deed, Turn, read_recording
from benchmarks.turn_extractors import Found, find
from benchmarks.turn_judge import judged
from pytest_evocode.process.judge import ModelJudge, make_judge
from pytest_evocode.process.measured import FILE, PILLAR, Score, scores
from pytest_evocode.report.tables import aligned

TURNS = Path(__file__).with_name("turns")
HALVES = {"dev": "dev.jsonl", "held out": "held_out.jsonl"}
LABELS = ("test_run", "passed", "failed", "plan", "clarification", "abstention", "uncertainty", "success")
LANGUAGES = ("English", "other Latin", "other script")
_OTHER_SCRIPTS = ("zh", "ja", "ko", "ru")
#: What ends a sentence or a line; the number before an item does not.
_SENTENCE = re.compile(r"(?<!\d)[.!?]+[\s*]+|[\u3002\uff01\uff1f]|\n")


@dataclass(frozen=True)
class LabelledTurn:
    """A turn of the corpus, with what a reader and the rules say of it."""

    half: str
    table: dict[str, Any]
    found: Found | None
    """None for a turn whose recording is not at hand."""
    text: str = ""

    @property
    def language(self) -> str:
        """The class of its language: English, other languages in Latin letters, other scripts, or none."""
        name = self.table["language"]
        return {"en": "English", "shell": "shell"}.get(
            name, "other script" if name in _OTHER_SCRIPTS else "other Latin"
        )

    def labels(self, by: str) -> dict[str, bool]:
        """Return what a pass of labels says; how a run of tests ended is a label for each outcome."""
        said = self.table["labels"][by]
        outcomes = {each: said.get("outcome") == each for each in ("passed", "failed")} if "test_run" in said else {}
        return {**{name: value for name, value in said.items() if isinstance(value, bool)}, **outcomes}


def kappa(pairs: Iterable[tuple[object, object]]) -> float:
    """Return Cohen's kappa: how far two passes agree beyond chance.

    >>> round(kappa([(1, 1), (1, 1), (0, 0), (0, 1)]), 2)
    0.5
    """
    pairs = list(pairs)
    first, second = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    chance = sum(first[each] * second[each] for each in first) / len(pairs) ** 2
    agreed = sum(one == other for one, other in pairs) / len(pairs)
    return 1.0 if chance == 1 else (agreed - chance) / (1 - chance)


def read_turns(
    recordings: Path | None, judge: ModelJudge | None = None, halves: Iterable[str] = HALVES
) -> Iterator[LabelledTurn]:
    """Yield the turns of the corpus, with what the rules or a judge find in them."""
    for half in halves:
        name = HALVES[half]
        for line in (TURNS / name).read_text(encoding="utf-8").splitlines():
            table = json.loads(line)
            turn = _text_of(table, recordings)
            found = None
            if turn is not None:
                last = table["last"]
                found = find(turn, last=last) if judge is None else judged(turn, judge, last=last)
            yield LabelledTurn(half, table, found, "" if turn is None else turn.text)


def _text_of(table: dict[str, Any], recordings: Path | None) -> Turn | None:
    """Return a turn with its text; None where its recording is not at hand."""
    if "text" in table:
        later = tuple(map(Deed, table.get("later", ())))
        return Turn(table["kind"], table["text"], table.get("output", ""), table.get("exit_code"), later)
    source = table["source"]
    if recordings is None:
        return None
    try:
        turns = read_recording(recordings, source["repository"], source["commit"], source["path"])
    except (subprocess.CalledProcessError, FileNotFoundError):
        return None
    turn: Turn = turns[source["index"]]
    if turn.digest() != table["digest"]:
        raise RuntimeError(f"{table['id']}: {source['repository']} says another thing than what was labelled")
    return turn


def score(turns: Iterable[LabelledTurn], label: str) -> Score:
    """Return how often the rules are right about a label."""
    result = Score()
    for turn in turns:
        there = turn.labels("settled").get(label)
        if there is not None and turn.found is not None and label in turn.found.says:
            says = turn.found.says[label]
            if says is None:
                result.unread += 1
            else:
                result.add(there, says, there and says)
    return result


def score_items(turns: Iterable[LabelledTurn]) -> Score:
    """Return how often the items of plans are right: of a sentence or line, as many as a reader begins there.

    Where in a sentence an item begins is a matter of taste; how many it has is not.
    """
    result = Score()
    for turn in turns:
        if turn.found is None or "plan" not in turn.found.says:
            continue
        text = re.sub(r"(?m)^(#.*)\n", r"\1 ", turn.text)  # A heading belongs to what stands below it.
        ends = [match.end() for match in _SENTENCE.finditer(text)]
        items = turn.table["labels"]["settled"].get("items", ())
        there = Counter(bisect_right(ends, place) for place in items)
        found = Counter(bisect_right(ends, place) for place in turn.found.items if place >= 0)
        result.add(len(items), len(turn.found.items), (there & found).total())
    return result


def _rows(turns: list[LabelledTurn], group: Callable[[LabelledTurn], str]) -> Iterator[tuple[str, ...]]:
    named = sorted(turns, key=group)
    for name, some in ((name, list(each)) for name, each in groupby(named, group)):
        for label in LABELS:
            result = score(some, label)
            if result.turns or result.unread:
                yield name, label, *_cells(result)
        if (items := score_items(some)).turns:
            yield name, "items of plans", *_cells(items)


def _cells(score: Score) -> tuple[str, ...]:
    counts = score.turns, score.unread, score.there, score.found
    return (*map(str, counts), score.precision, score.recall)


def measured(turns: list[LabelledTurn]) -> Iterator[str]:
    """Yield the lines of the file that the package keeps: the counts of what is held back, by class of language."""
    yield "# Written by `python -m benchmarks.turn_labels --write`: counts on the turns that are held back."
    held = [turn for turn in turns if turn.half == "held out"]
    classes = {"all": held, **{name: [turn for turn in held if turn.language == name] for name in LANGUAGES}}
    for label in (*LABELS, "items"):
        yield f"\n[{label}]"
        for name, some in classes.items():
            found = score_items(some) if label == "items" else score(some, label)
            if found.turns or found.unread:
                counts = ", ".join(f"{key} = {count}" for key, count in asdict(found).items())
                yield f'"{name}" = {{ {counts} }}'


#: The same, as the documentation shows it.
DOCUMENT = Path(__file__).parents[1] / "docs" / "measured" / "turns.txt"


def documented() -> Iterator[str]:
    """Yield the lines of the documentation's table, made of the file that the package keeps."""
    rows = [("pillar", "what is found", "turns", "precision", "recall")]
    for label, (pillar, name) in {**PILLAR, "uncertainty": ("", "doubts"), "items": ("pf", "steps of plans")}.items():
        for language, each in scores()[label].items():
            where = "" if language == "all" else f", {language}"
            count = f"{each.turns}, {each.unread} unread" if each.unread else str(each.turns)
            rows.append((pillar.upper(), f"{name}{where}", count, each.precision, each.recall))
    yield from aligned(rows, left=(0, 1))


def report(turns: list[LabelledTurn]) -> Iterator[str]:
    """Yield the lines of all tables."""
    head = ("label", "turns", "unread", "there", "found", "precision", "recall")
    groups: dict[str, Callable[[LabelledTurn], str]] = {
        "half": lambda turn: turn.half,
        "harness": lambda turn: f"{turn.table['harness']}, {turn.half}",
        "language": lambda turn: f"{turn.language}, {turn.half}",
    }
    tables = {title: _rows(turns, group) for title, group in groups.items()}
    for title, rows in tables.items():
        yield from aligned([(title, *head), *rows], left=(0, 1))
        yield ""
    for label in ("test_run", "outcome", "plan", "clarification", "abstention", "uncertainty", "success"):
        passes = [(turn.table["labels"]["first"], turn.table["labels"]["second"]) for turn in turns]
        pairs = [(one[label], other[label]) for one, other in passes if label in one and label in other]
        yield f"kappa of {label}: {kappa(pairs):.2f} over {len(pairs)} turns"
    if missing := Counter(turn.table["harness"] for turn in turns if turn.found is None):
        yield f"left out, not at hand: {', '.join(f'{count} of {name}' for name, count in sorted(missing.items()))}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, metavar="DIR", help="clones or bare mirrors of the repositories")
    parser.add_argument("--dev", action="store_true", help="leave out what is held back: for whoever writes rules")
    parser.add_argument("--write", action="store_true", help="write what is held back down for the package")
    parser.add_argument("--judge", metavar="PROVIDER/MODEL", help="ask a model in place of the rules")
    parser.add_argument("--votes", type=int, default=1, help="with --judge: votes per turn")
    options = parser.parse_args()
    if options.write and (options.judge or options.dev):
        parser.error("--write is for the rules, and for what is held back")
    judge = make_judge(options.judge, votes=options.votes) if options.judge else None
    turns = list(read_turns(options.recordings, judge, ["dev"] if options.dev else HALVES))
    print("\n".join(report(turns)))
    if options.write:
        if any(turn.found is None for turn in turns):
            raise SystemExit("not written: some recordings are not at hand")
        FILE.write_text("\n".join([*measured(turns), ""]), encoding="utf-8")
        scores.cache_clear()
        DOCUMENT.write_text("\n".join([*documented(), ""]), encoding="utf-8")


if __name__ == "__main__":
    main()

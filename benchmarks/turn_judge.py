"""What a model says of a labelled turn, by the guideline that its readers had: the judge's path beside the rules.

One question for each turn, through the judge of the process scores: with its votes, and its cache of answers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.recordings import Turn
from benchmarks.turn_extractors import Found
from pytest_evocode.llm.protocol import Tool
from pytest_evocode.process.judge import ModelJudge

_GUIDELINE = Path(__file__).with_name("turns") / "GUIDELINE.md"
_LABELS = {
    "command": ("test_run", "passed", "failed"),
    "message": ("plan", "clarification", "abstention", "uncertainty", "success"),
}


def judged(turn: Turn, judge: ModelJudge, *, last: bool) -> Found:
    """Return what most votes say of a turn; a label that no vote is about counts as unread.

    Raises:
        AgentFault: The model cannot be asked.
    """
    names = _LABELS[turn.kind]
    verdict: dict[str, Any] = {name: {"type": "boolean"} for name in names}
    if turn.kind == "message":
        verdict["items"] = {"type": "array", "items": {"type": "string"}}
    schema = {"type": "object", "properties": verdict, "required": list(verdict), "additionalProperties": False}
    later = "\n".join(dict.fromkeys(deed.path for deed in turn.later if deed.path))
    facts = f"exit code: {turn.exit_code}\nlast of its recording: {last}\nwritten after it:\n{later}"
    prompt = (
        f"{_GUIDELINE.read_text(encoding='utf-8')}\n`passed` and `failed` are outcomes of a test run; `items` has how "
        f"each item of a plan begins.\n\n<material>\n{turn.text}\n\n{turn.output}\n\n{facts}\n</material>"
    )
    answers, _ = judge.answers(prompt, Tool("verdict", "Labels the turn.", schema))
    # The rules look for plans on the way and for all else at the end; so does this, for the same turns.
    asked = names if turn.kind == "command" else names[1:] if last else names[:1]
    begins = next((each["items"] for each in answers if isinstance(each.get("items"), list)), ())
    items = tuple(turn.text.find(str(begin)[:40]) for begin in begins)
    says = {name: _most([each[name] for each in answers if isinstance(each.get(name), bool)]) for name in asked}
    return Found(says, items if says.get("plan") else ())


def _most(votes: list[Any]) -> bool | None:
    return 2 * sum(votes) > len(votes) if votes else None

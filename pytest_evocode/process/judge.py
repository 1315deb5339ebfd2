"""Have a model judge sub-metrics beside the rules: a fixed rubric, structured answers, several votes, its own cost.

It is off unless asked for. What agents wrote is marked as material in the prompts, and is never an instruction.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median_low
from typing import Any

from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.errors import AgentFault, UsageError
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.protocol import Message, ModelClient, Reply, Tool
from pytest_evocode.process.evidence import Measure
from pytest_evocode.process.pillars.abstention import FOREIGN, UNSURE
from pytest_evocode.process.pillars.planning import find_plan
from pytest_evocode.process.protocols import JudgeMaterial, Judgement
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.tasks.atomic_write import write_atomically

logger = logging.getLogger(__name__)

VOTES = 3
#: Incremented with every change of a rubric, so that answers to an older one are not taken from the cache.
RUBRIC = 1

_TIMEOUT = 300.0  # seconds for one answer
_LONGEST = 60_000  # characters of material in one prompt


@dataclass(frozen=True, slots=True)
class _Aspect:
    """What the model is asked about one sub-metric."""

    rubric: str
    material: Callable[[JudgeMaterial], str | None]
    """Returns what the model is shown; None where there is nothing to ask."""
    levels: int | None = None
    """The highest level, from 0, that can be the answer; None where it is a list of requirements."""


def make_judge(spec: str, *, votes: int = VOTES, cache: Path | None = None) -> ModelJudge:
    """Return a judge for ``PROVIDER/MODEL``.

    Raises:
        UsageError: The model is not named in full, or its client cannot be used.
    """
    provider, slash, model = spec.partition("/")
    if not slash or not model:
        raise UsageError(f"{spec}: a judge is a model, such as anthropic/claude-opus-4-8")
    if votes < 1:
        raise UsageError(f"{votes} votes: a judge has at least one")

    def client(temperature: float | None) -> ModelClient:
        return make_client(provider, model, ModelOptions(temperature=temperature))

    judge = client(0.0)
    judge.check()
    return ModelJudge(spec, client, votes=votes, cache=cache, answered_by=getattr(judge, "answered_by", None) or {})


@dataclass
class ModelJudge:
    """Asks a model; implements :class:`~pytest_evocode.process.protocols.Judge`."""

    name: str
    """The name of the model."""
    client: Callable[[float | None], ModelClient]
    """Makes a client with a temperature: 0, or None for a model that does not accept one."""
    votes: int = VOTES
    """The number of answers to each question."""
    cache: Path | None = None
    """The directory of earlier answers, stored by question; by default that of this machine."""
    answered_by: Mapping[str, Any] = field(default_factory=dict)
    """What decides who answers besides the name, as :class:`~pytest_evocode.agents.protocol.Agent` has it: the answers
    of another server are not taken for this one's."""
    _temperature: float | None = field(default=0.0, init=False)

    def judge(self, name: str, material: JudgeMaterial, by_rule: Measure) -> Judgement | None:
        """Return the judgement of one sub-metric.

        Raises:
            AgentFault: The model cannot be asked.
        """
        aspect = _prompts()[1][name]
        text = aspect.material(material)
        is_unread = by_rule.reason in (UNSURE, FOREIGN)
        if text is None or (by_rule.value is None and name != "SC" and not is_unread):
            return None
        if name == "AQ" and not is_unread:
            return None  # The rules are sure, or the request can be met.
        known = {requirement.id for requirement in material.requirements}
        prompt = f"{aspect.rubric}\n\n<material>\n{text[:_LONGEST]}\n</material>"
        answers, cost = self.answers(prompt, _tool(aspect, sorted(known)))
        votes = [vote for answer in answers if (vote := _vote(aspect, answer, known)) is not None]
        if not votes:
            return None
        value = median_low(vote for vote, _ in votes)
        agreement = None if by_rule.value is None else 1 - abs(value - by_rule.value)
        return Judgement(
            value=value,
            votes=tuple(vote for vote, _ in votes),
            rule=by_rule.value,
            agreement=agreement,
            reason=next(reason for vote, reason in votes if vote == value),
            cost_usd=cost,
        )

    def answers(self, prompt: str, tool: Tool) -> tuple[list[dict[str, Any]], float | None]:
        """Return one answer for each vote, and the cost of those that were not cached; None if a price is unknown."""
        judge = [self.name, dict(self.answered_by)] if self.answered_by else self.name
        path = (self.cache or cache_directory() / "judge") / f"{_key(judge, prompt, tool)}.json"
        known: list[dict[str, Any]] = []
        with contextlib.suppress(OSError, ValueError):
            known = json.loads(path.read_bytes())
        costs: list[float | None] = []
        with contextlib.closing(self._replies(prompt, tool)) as replies:
            while len(known) < self.votes:
                logger.debug("%s: asking for vote %d of %d", self.name, len(known) + 1, self.votes)
                reply = next(replies)
                costs.append(reply.usage.cost_usd)
                known.append(_answer(reply))
                write_atomically(path, json.dumps(known))
        unknown = any(cost is None for cost in costs)
        return known[: self.votes], None if unknown else sum(cost for cost in costs if cost is not None)

    def _replies(self, prompt: str, tool: Tool) -> Generator[Reply]:
        """Yield one reply to the prompt after the other, for as long as somebody asks."""
        conversation = (Message("system", _prompts()[0]), Message("user", prompt))
        while True:
            try:
                with contextlib.closing(self.client(self._temperature)) as client:
                    client.prepare()
                    while True:
                        yield client.complete(conversation, [tool], timeout=_TIMEOUT)
            except AgentFault as fault:
                if self._temperature is None or "temperature" not in str(fault):
                    raise
                logger.info("%s: asking again without a temperature: %s", self.name, fault)
                self._temperature = None


def _key(judge: Any, prompt: str, tool: Tool) -> str:
    asked = json.dumps([RUBRIC, judge, _prompts()[0], prompt, tool.parameters], sort_keys=True)
    return hashlib.sha256(asked.encode("utf-8", "surrogateescape")).hexdigest()


def _tool(aspect: _Aspect, ids: Sequence[str]) -> Tool:
    reason = {"type": "string", "description": "Why, in one sentence that quotes the material."}
    if aspect.levels is None:
        answer: dict[str, Any] = {"type": "array", "items": {"type": "string", "enum": list(ids)}}
        properties = {"reason": reason, "requirements": answer}
    else:
        properties = {"reason": reason, "level": {"type": "integer", "enum": list(range(aspect.levels + 1))}}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return Tool("verdict", "Gives your verdict.", schema)


def _answer(reply: Reply) -> dict[str, Any]:
    """Return the arguments of the tool call, or the JSON written in place of one; empty where there is neither."""
    for call in reply.calls:
        if call.name == "verdict" and call.arguments is not None:
            return call.arguments
    begin, end = reply.text.find("{"), reply.text.rfind("}")
    with contextlib.suppress(ValueError):
        found = json.loads(reply.text[begin : end + 1])
        if isinstance(found, dict):
            return found
    return {}


def _vote(aspect: _Aspect, answer: Mapping[str, Any], known: set[str]) -> tuple[float, str] | None:
    """Return the value of an answer and its reason; None for an answer that is not in the form asked for."""
    reason = str(answer.get("reason", ""))
    if aspect.levels is None:
        named = answer.get("requirements")
        if not isinstance(named, list) or not known:
            return None
        return len(known & {str(each) for each in named}) / len(known), reason
    level = answer.get("level")
    if not isinstance(level, int) or isinstance(level, bool) or not 0 <= level <= aspect.levels:
        return None
    return level / aspect.levels, reason


def _plan(material: JudgeMaterial) -> str | None:
    plan = find_plan(material.activity)
    return None if plan is None else f"{_request(material.activity)}\n\n# The plan\n{plan.text}"


def _tests(material: JudgeMaterial) -> str | None:
    if not material.requirements or not material.tests.functions:
        return None
    tests = "\n\n".join(f"# {test.path}\n{test.text}" for test in material.tests.functions)
    return f"{_listed(material)}\n\n# The programmer's tests\n{tests}"


def _changes(material: JudgeMaterial) -> str | None:
    activity = material.activity
    if not material.requirements or not activity.product_edits:
        return None
    paths = dict.fromkeys(edit.path for edit in activity.edits if edit.role == "source")
    files = "\n\n".join(f"# {path}\n{activity.workspace.get(path, '(deleted)')}" for path in paths)
    return f"{_listed(material)}\n\n# The files that were changed, as they are now\n{files}"


def _conversation(material: JudgeMaterial) -> str | None:
    activity = material.activity
    edits = {edit.at: f"(changed {edit.path})" for edit in activity.edits if edit.role == "source"}
    said = {message.at: message.text for message in activity.messages}
    asked = {question.at: question.text for question in activity.questions}
    lines = [text for _, text in sorted({**edits, **said, **asked}.items())]
    return f"{_request(activity)}\n\n# What the programmer said and changed, in order\n" + "\n\n".join(lines)


def _request(activity: RoundActivity) -> str:
    return f"# The request\n{activity.instruction}"


def _listed(material: JudgeMaterial) -> str:
    listed = "\n".join(f"- {each.id}: {each.text}" for each in material.requirements)
    return f"{_request(material.activity)}\n\n# Its requirements\n{listed}"


#: What is shown of a round, by sub-metric.
_MATERIALS: Mapping[str, Callable[[JudgeMaterial], str | None]] = {
    "DQ": _plan, "RT": _tests, "AQ": _conversation, "SC": _changes, "CBS": _conversation,
}  # fmt: skip


@functools.cache
def _prompts() -> tuple[str, Mapping[str, _Aspect]]:
    """Return the system prompt, and what is asked about each sub-metric."""
    content = tomllib.loads(Path(__file__).with_name("rules").joinpath("judge.toml").read_text(encoding="utf-8"))
    system = content.pop("system")
    return system, {name: _Aspect(material=_MATERIALS[name], **rubric) for name, rubric in content.items()}

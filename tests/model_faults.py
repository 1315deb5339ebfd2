"""What goes wrong at a model's provider, and what comes of it: a table for tests and for docs/models.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.model_scripts import (
    Answer,
    BreakOff,
    CutOff,
    Delay,
    Fail,
    HangUp,
    Run,
    Say,
    Script,
    Step,
    Think,
    Trickle,
    Use,
)

Api = Literal["chat", "responses", "messages", "gemini"]
Outcome = Literal["passed", "failed", "error of the infrastructure", "error of the agent"]
_NAMES = {"chat": "Chat Completions", "responses": "Responses", "messages": "Messages", "gemini": "generateContent"}

RUN, DONE = Run("echo line-1 >> log.txt"), Say("Done.")
FINE: tuple[Step, ...] = (RUN, DONE)
_CUT: Step = (Say("I"), CutOff())
HTML = "<html><body>502 Bad Gateway</body></html>"


@dataclass(frozen=True)
class ModelFault:
    """One fault, and what is expected of it; every round is one that the model can solve in two requests."""

    name: str
    api: Api
    script: Script
    outcome: Outcome = "passed"
    says: str = ""
    """What the record says: part of its ``stopped`` or ``cause``."""
    paid: int | None = 2
    """Replies that count, by the record; None where it has no usage."""
    retries: int = 0
    refused: bool = False
    timed_out: bool = False
    told: str = ""
    """What the model is told, as a part of the trajectory's messages or results."""
    options: Mapping[str, Any] = field(default_factory=dict)
    budget: str = ""
    toml: str = ""


def _chat(message: dict[str, Any], reason: str | None, *, usage: bool = True) -> Answer:
    counted = {"usage": {"prompt_tokens": 900, "completion_tokens": 10}} if usage else {}
    body: dict[str, Any] = {
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}]
    }
    return Answer(json.dumps({"id": "c", "model": "gpt-5", **body, **counted}))


def _messages(content: Sequence[Any], reason: str) -> Answer:
    usage = {"input_tokens": 900, "output_tokens": 10}
    return Answer(json.dumps({"id": "m", "content": content, "stop_reason": reason, "usage": usage}))


def _responses(output: Sequence[Any], status: str = "completed", reason: str | None = None, **more: Any) -> Answer:
    details = {"incomplete_details": {"reason": reason} if reason else None}
    usage = {"input_tokens": 900, "output_tokens": 10}
    return Answer(json.dumps({"id": "r", "output": output, "status": status, "usage": usage, **details, **more}))


def _gemini(reason: str, **more: Any) -> Answer:
    usage = {"usageMetadata": {"promptTokenCount": 900, "candidatesTokenCount": 10}}
    return Answer(json.dumps({"candidates": [{"finishReason": reason}], **usage, **more}))


_TEXT = [{"type": "text", "text": "I will not."}]
_CALL = {"type": "function", "function": {"name": "bash", "arguments": '{"command": "echo line-1 >> log.txt"}'}}


def _of_responses(kind: str) -> list[Any]:
    return [{"type": "message", "content": [{"type": kind, kind.removeprefix("output_"): "I will not."}]}]


def _again(*steps: Step) -> list[Step]:
    return [*steps, *FINE]


INFRASTRUCTURE: Outcome = "error of the infrastructure"
AGENT: Outcome = "error of the agent"
FAULTS: tuple[ModelFault, ...] = (
    # Faults that pass.
    ModelFault("408 once", "chat", _again(Fail(408)), retries=1),
    ModelFault("409 once", "responses", _again(Fail(409)), retries=1),
    ModelFault("500 once", "messages", _again(Fail(500)), retries=1),
    ModelFault("502 with HTML once", "chat", _again(Answer(HTML, 502, "text/html")), retries=1),
    ModelFault("503 twice", "responses", _again(Fail(503, retry_after=0), Fail(503, retry_after=0)), retries=2),
    ModelFault("529 (overloaded) once", "messages", _again(Fail(529, retry_after=0)), retries=1),
    ModelFault("429 once", "chat", _again(Fail(429, retry_after=0)), retries=1),
    ModelFault("429 in mid-turn", "messages", [RUN, Fail(429, retry_after=0), DONE], retries=1),
    ModelFault("the connection ends without an answer, once", "messages", _again(HangUp()), retries=1),
    ModelFault(
        "a stream breaks off in the middle, once", "messages", _again([Say("I was about"), BreakOff()]), retries=1,
        paid=3, told="broke off in the middle",
    ),
    ModelFault(
        "a stream falls silent, once", "chat", _again([Say("I was about"), BreakOff(pause=1)]), retries=1, paid=3,
        told="broke off in the middle", options={"silence_seconds": 0.2},
    ),
    ModelFault("blanks before the answer", "chat", [[Trickle(0.3), RUN], DONE]),
    ModelFault("200 with HTML once", "chat", _again(Answer(HTML)), retries=1),
    ModelFault("200 with JSON that is cut off, once", "responses", _again(Answer('{"output": [{"ty')), retries=1),
    ModelFault("200 with `{}` once", "messages", _again(Answer("{}")), retries=1),
    ModelFault("200 with a list once", "messages", _again(Answer("[]")), retries=1),
    ModelFault("200 with fields of other types once", "chat", _again(Answer('{"choices": ["x"]}')), retries=1),
    ModelFault("503 once", "gemini", _again(Fail(503)), retries=1),
    ModelFault("429 with a `retryDelay` in its body", "gemini", _again(Fail(429, retry_after=0)), retries=1),
    ModelFault("200 with HTML once", "gemini", _again(Answer(HTML)), retries=1),
    ModelFault("200 with candidates of another type once", "gemini", _again(Answer('{"candidates": [7]}')), retries=1),
    ModelFault(
        "200 with a router's error 502 inside", "chat", _again(Answer('{"error": {"code": 502, "message": "x"}}')),
        retries=1,
    ),
    ModelFault(
        "200 with `server_error` inside", "responses",
        _again(_responses([], "failed", error={"code": "server_error", "message": "x"})), retries=1,
    ),
    ModelFault(
        "200 with `rate_limit_exceeded` inside", "responses",
        _again(_responses([], "failed", error={"code": "rate_limit_exceeded", "message": "x"})), retries=1,
    ),
    ModelFault("404 once", "chat", _again(Fail(404)), retries=1),
    ModelFault("400 once, in mid-turn", "responses", [RUN, Fail(400, "bad"), DONE], retries=1),
    ModelFault("403 with HTML once", "messages", _again(Answer(HTML, 403, "text/html")), retries=1),
    # What the provider does not take is left out.
    ModelFault(
        "400 again in mid-turn for what the model wrote", "gemini", [RUN, *[Fail(400, "bad")] * 2, DONE], retries=1,
        told="whose last reply was put into words",
    ),
    ModelFault(
        "a tool's name that the provider refuses to see again", "messages", _again(Use("functions.bash:0", {})), paid=3,
        told="There is no tool",
    ),
    ModelFault(
        "400: no reasoning summaries for this organisation", "responses",
        _again(Fail(400, "Reasoning summaries are not supported", param="reasoning.summary")),
    ),
    ModelFault(
        "400: no encrypted reasoning for this model", "responses",
        _again(Fail(400, "Encrypted content is not supported with this model.", param="include")),
    ),
    ModelFault(
        "400: the limit of tokens has another name", "chat",
        _again(Fail(400, "Use 'max_completion_tokens' instead.")), options={"max_tokens": 500},
    ),
    ModelFault(
        "400: the model does not think", "gemini", _again(Fail(400, "Thinking is not enabled for this model.")),
    ),
    # Faults that do not pass.
    ModelFault(
        "500 again and again", "messages", [Fail(500)] * 3, INFRASTRUCTURE, "the provider failed 3 times", None, 2
    ),
    ModelFault(
        "429 for longer than `retry_seconds`", "chat", [Fail(429)], INFRASTRUCTURE,
        "the rate limit has not ended within 0 seconds", None, options={"retry_seconds": 0},
    ),
    ModelFault(
        "429 with a `Retry-After` beyond `retry_seconds`", "responses", [Fail(429, retry_after=900)], INFRASTRUCTURE,
        "the provider wants 900 more", None,
    ),
    ModelFault(
        "429: no credit", "chat", [Fail(429, "You exceeded your quota", code="insufficient_quota")], INFRASTRUCTURE,
        "the account's quota is used up", None,
    ),
    ModelFault(
        "429 that says not to retry", "responses", [Fail(429, headers={"x-should-retry": "false"})], INFRASTRUCTURE,
        "the account's quota is used up", None,
    ),
    ModelFault(
        "no answer again and again", "responses", [HangUp()] * 3, INFRASTRUCTURE, "cannot be reached, tried 3 times",
        None, 2,
    ),
    ModelFault(
        "200 with HTML again and again", "chat", [Answer(HTML)] * 3, INFRASTRUCTURE,
        "the answer is not in the format of", None, 2,
    ),
    ModelFault("401", "chat", [Fail(401)], INFRASTRUCTURE, "was refused", None),
    ModelFault(
        "400: the key is wrong", "gemini", [Fail(400, code="API_KEY_INVALID")], INFRASTRUCTURE, "was refused", None
    ),
    ModelFault("402", "chat", [Fail(402, "Pay.")], INFRASTRUCTURE, "the provider wants to be paid first", None),
    ModelFault("403", "messages", [Fail(403)], INFRASTRUCTURE, "lacks the permission", None),
    ModelFault("404 again", "responses", [Fail(404)] * 2, INFRASTRUCTURE, "no such model, or no such API", None, 1),
    ModelFault("401 in mid-turn", "messages", [RUN, Fail(401)], INFRASTRUCTURE, "was refused", 1),
    ModelFault("400 again", "messages", [Fail(400, "bad")] * 2, INFRASTRUCTURE, "the request was refused", None, 1),
    ModelFault(
        "400 again in mid-turn, and without the last reply, too", "chat", [RUN, *[Fail(400, "bad")] * 4],
        INFRASTRUCTURE, "the request was refused", 1, 2, told="whose last reply was put into words",
    ),
    # The model's window.
    ModelFault(
        "400: the first request is too long", "chat", [Fail(400, code="context_length_exceeded")], "failed",
        "context: the conversation is longer than the model takes", None,
    ),
    ModelFault(
        "413: the first request is too long", "messages", [Fail(413)], "failed",
        "context: the conversation is longer than the model takes", None,
    ),
    ModelFault(
        "the window is full in mid-reply, once", "messages",
        _again(_messages(_TEXT, "model_context_window_exceeded")), paid=3, told="the conversation had become too long",
    ),
    ModelFault(
        "the window is full in mid-reply again and again", "messages",
        [_messages(_TEXT, "model_context_window_exceeded")] * 4, "failed",
        "context: the model's window was full in mid-reply", 4, told="the conversation had become too long",
    ),
    # Replies that are none.
    ModelFault("an empty reply", "chat", _again(_chat({"content": ""}, "stop")), paid=3, told="Your reply was empty"),
    ModelFault(
        "reasoning alone, twice", "responses", _again([Think("Hm.")], [Think("Hm.")]), paid=4,
        told="Your reply was empty",
    ),
    ModelFault(
        "empty replies again and again", "messages", [_messages([], "end_turn")] * 3, "failed", "", 3,
        told="Your reply was empty",
    ),
    ModelFault(
        "the provider pauses the reply", "messages", _again(_messages(_TEXT, "pause_turn")), paid=3,
        told="Your reply was empty",
    ),
    ModelFault(
        "a script in place of a call", "chat", _again(Say("```bash\necho line-1 >> log.txt\n```")), paid=3,
        told="a script in a reply's text is only text",
    ),
    ModelFault(
        "a call that the provider cannot read", "gemini", _again(_gemini("MALFORMED_FUNCTION_CALL")), paid=3,
        told="Your reply was empty",
    ),
    ModelFault(
        "the reply is cut off, three times", "responses", _again(*[_CUT] * 3), paid=5,
        told="Your last reply was cut off at its limit of tokens",
    ),
    ModelFault(
        "the reply is cut off again and again", "chat", [_CUT] * 4, "failed",
        "the model was cut off", 4, told="Your last reply was cut off at its limit of tokens",
    ),
    ModelFault(
        "arguments that are no JSON", "chat", _again(Use("bash", '{"command": ')), paid=3, told="no JSON object"
    ),
    ModelFault("a tool that there is not", "messages", _again(Use("python", {})), paid=3, told="There is no tool"),
    ModelFault(
        "a call without a script", "responses", _again(Use("bash", {"command": ""})), paid=3,
        told="has to be a text, and not an empty one",
    ),
    ModelFault("a call without an id", "chat", [_chat({"tool_calls": [_CALL]}, "tool_calls"), DONE]),
    # Refusals.
    ModelFault(
        "the model refuses", "messages", [_messages(_TEXT, "refusal")], "failed", "refused: the model refused", 1,
        refused=True,
    ),
    ModelFault(
        "the model refuses", "chat", [_chat({"refusal": "I will not."}, "stop")], "failed",
        "refused: the model refused", 1, refused=True,
    ),
    ModelFault(
        "the model refuses", "responses", [_responses(_of_responses("refusal"))], "failed",
        "refused: the model refused", 1, refused=True,
    ),
    ModelFault(
        "a content filter", "chat", [_chat({"content": ""}, "content_filter")], "failed", "refused: a filter", 1,
        refused=True,
    ),
    ModelFault(
        "a content filter in mid-turn", "responses", [RUN, _responses([], "incomplete", "content_filter")], "passed",
        "refused: a filter", 2, refused=True,
    ),
    ModelFault(
        "a filter of the reply", "gemini", [_gemini("SAFETY")], "failed", "refused: a filter", 1, refused=True,
    ),
    ModelFault(
        "a filter of the request", "gemini",
        [_gemini("", candidates=[], promptFeedback={"blockReason": "PROHIBITED_CONTENT"})], "failed",
        "refused: a filter", 1, refused=True,
    ),
    # Time and what it cost.
    ModelFault(
        "no answer until the turn's time is over", "messages", [[Delay(20), DONE]], "failed", "", None, timed_out=True,
        toml="[agent]\ntimeout_sec = 2",
    ),
    ModelFault("an answer that counts no tokens", "chat", [_chat({"content": ""}, "stop", usage=False), *FINE], paid=3),
    ModelFault(
        "the same with a budget of tokens", "chat", [_chat({"content": "Done."}, "stop", usage=False)], AGENT,
        "the reply does not report its tokens", None, budget="tokens=100000",
    ),
    ModelFault("a budget is used up", "messages", [RUN], "passed", "budget: turns 1 of 1 used", 1, budget="turns=1"),
    ModelFault(
        "a round's budget is used up", "responses", [RUN], "passed", "budget: turns 1 of 1 used in the round", 1,
        budget="turns=1/round",
    ),
)  # fmt: skip


def table() -> Iterator[str]:
    """Yield the lines of the table for the documentation."""
    yield "| fault | API | outcome | what the record says | retries | replies paid |"
    yield "|---|---|---|---|---|---|"
    for fault in FAULTS:
        says = [f"`{fault.says}`" if fault.says else ""]
        says += ["`refused`"] if fault.refused else []
        says += ["`timed_out`"] if fault.timed_out else []
        says += [f"the model is told: `{fault.told}`"] if fault.told else []
        paid = "none" if fault.paid is None else str(fault.paid)
        cells = (fault.name, _NAMES[fault.api], fault.outcome, "; ".join(filter(None, says)), str(fault.retries), paid)
        yield f"| {' | '.join(cells)} |"

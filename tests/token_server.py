"""A model's server that says which tokens it reads and writes, as vLLM and SGLang do, with a tokeniser of its own.

A token is a word or another character, and has the number by which it was seen first. Conversations become tokens by a
template with marks for who speaks, and ``log`` has the tokens of each reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from pytest_evocode.llm.token_ids import TokenServer as Kind
from tests import model_wire as wire
from tests.model_scripts import Asked, Fail, Part, Script
from tests.model_server import ModelServer

_FIELDS = {"vllm": {"return_token_ids"}, "sglang": {"return_prompt_token_ids", "return_meta_info"}}


class Written(NamedTuple):
    """The tokens of one request and its reply."""

    prompt: list[int]
    completion: list[int]
    logprobs: list[float]


class TokenServer(ModelServer):
    """See :class:`ModelServer`.

    ``kind``: whose fields it knows; it ignores all others. ``spells_out``: whether its template has each letter of what
    the model wrote before for a token, which is not how the model wrote it. ``strict``: whether it refuses fields that
    it does not know. ``hides``: of how many tokens of each reply it says nothing.
    """

    def __init__(
        self,
        script: Script,
        kind: Kind | None,
        *,
        spells_out: bool = False,
        strict: bool = False,
        hides: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(script, **options)
        self.log: list[Written] = []
        self._known: frozenset[str] = frozenset() if kind is None else frozenset(_FIELDS[kind])
        self._kind, self._spells_out, self._strict, self._hides = kind, spells_out, strict, hides
        self._numbers: dict[str, int] = {}

    def parts_for(self, asked: Asked) -> list[Part]:
        """Refuse what the server refuses: SGLang has no tokens in streams."""
        fields = self._known & asked.body.keys()
        if self._kind == "sglang" and fields and asked.body.get("stream"):
            return [Fail(400, f"{min(fields)} is not supported with streaming. Please set stream=false.")]
        if self._strict and (surplus := {*_FIELDS["vllm"], *_FIELDS["sglang"]} & asked.body.keys() - self._known):
            return [Fail(400, f"Unrecognized request argument supplied: {min(surplus)}")]
        return super().parts_for(asked)

    def write(self, asked: Asked, parts: Sequence[Part]) -> wire.Json:
        """The reply with what was asked for of its tokens."""
        reply = super().write(asked, parts)
        [choice] = reply["choices"]
        written = self._written(asked, choice["message"])
        self.log.append(written)
        reply["usage"] |= {"prompt_tokens": len(written.prompt), "completion_tokens": len(written.completion)}
        if asked.body.get("logprobs"):
            choice["logprobs"] = {"content": [{"token": "", "logprob": each} for each in written.logprobs]}
        if self._kind == "vllm":
            whole = bool(asked.body.get("return_token_ids"))
            reply["prompt_token_ids"] = written.prompt if whole else None
            choice["token_ids"] = written.completion[self._hides :] if whole else None
        if self._kind == "sglang" and asked.body.get("return_prompt_token_ids"):
            choice["prompt_token_ids"] = written.prompt
        if self._kind == "sglang" and asked.body.get("return_meta_info"):
            pairs = zip(written.logprobs, written.completion, strict=True)
            choice["meta_info"] = {"id": reply["id"], "output_token_logprobs": [[*each, None] for each in pairs]}
        return reply

    def events_of(self, asked: Asked, reply: wire.Json) -> list[tuple[str, Any]]:
        """The events: the prompt's tokens come with the first, and those of the reply piece by piece."""
        [choice] = reply["choices"]
        ids, told = choice.pop("token_ids", None), choice.pop("logprobs", None)
        prompt = reply.pop("prompt_token_ids", None)
        events = super().events_of(asked, reply)
        chunks = [chunk for _, chunk in events if isinstance(chunk, dict) and chunk["choices"]]
        if prompt:
            chunks[0]["prompt_token_ids"] = prompt
        size = 1 + len((told or {}).get("content", ids or ())) // max(1, len(chunks) - 1)
        for at, chunk in enumerate(chunks[1:]):
            piece = slice(at * size, (at + 1) * size)
            chunk["choices"][0]["logprobs"] = {"content": told["content"][piece]} if told else None
            if ids is not None:
                chunk["choices"][0]["token_ids"] = ids[piece]
        return events

    def _written(self, asked: Asked, reply: wire.Json) -> Written:
        prompt = self._ids(f"<tools>{json.dumps(asked.body.get('tools'))}")
        for message in asked.body["messages"]:
            role = message["role"]
            prompt += self._ids(f"<{role}>")
            if role != "assistant":
                prompt += [*self._ids(str(message["content"])), *self._ids("<end>")]
            elif self._spells_out:
                prompt += [number for letter in _text(message) for number in self._ids(letter)] + self._ids("<end>")
            else:
                prompt += [*self._ids(_text(message)), *self._ids("<end>")]
        completion = [*self._ids(_text(reply)), *self._ids("<end>")]
        logprobs = [-(number % 16) / 16 - at / 1024 for at, number in enumerate(completion)]
        return Written(prompt + self._ids("<assistant>"), completion, logprobs)

    def _ids(self, text: str) -> list[int]:
        pieces = re.findall(r"<\w+>|\w+|\W", text)
        return [self._numbers.setdefault(piece, len(self._numbers) + 100) for piece in pieces]


def _text(message: wire.Json) -> str:
    """What the model wrote for a reply, before the server made calls of it."""
    calls = (each["function"] for each in message.get("tool_calls") or ())
    return (message.get("content") or "") + "".join(f"<call>{each['name']} {each['arguments']}" for each in calls)

"""Ids and log-probabilities of single tokens: how servers are asked for them, and where their answers have them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pytest_evocode.llm.usage import Api

Json = dict[str, Any]
TokenServer = Literal["vllm", "sglang"]
"""Servers that say which tokens they read and wrote, each in fields of its own of Chat Completions."""

#: What each server is asked, and what that brings into the answer and its choices.
_FIELDS: Mapping[TokenServer, Mapping[str, tuple[str, ...]]] = {
    "vllm": {"logprobs": ("logprobs",), "return_token_ids": ("prompt_token_ids", "token_ids")},
    "sglang": {
        "logprobs": ("logprobs",),
        "return_meta_info": ("meta_info",),
        "return_prompt_token_ids": ("prompt_token_ids",),
    },
}
_SINCE: Mapping[TokenServer, str] = {"vllm": "vLLM has them since 0.10.2", "sglang": "SGLang has them since 0.5.13"}


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """What a server says of single tokens, as some do where they are asked to; empty where it does not."""

    prompt_token_ids: tuple[int, ...] = ()
    completion_token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()

    @property
    def metrics(self) -> Json:
        """What there is of it, by the names of ATIF's metrics."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def from_json(cls, values: Mapping[str, Iterable[Any]]) -> TokenFacts:
        """Restore them from JSON values, whose lists are no tuples."""
        return cls(**{name: tuple(each) for name, each in values.items()})


def asking_for_tokens(server: TokenServer, asked: Mapping[str, Any]) -> Json:
    """Return a request so that the server says the tokens; SGLang does so in answers in one piece alone.

    >>> asking_for_tokens("sglang", {"stream": True, "stream_options": {"include_usage": True}})["stream"]
    False
    """
    found = {**asked, **{name: asked.get(name) or True for name in _FIELDS[server]}}
    if not says_in_streams(server) and found.pop("stream", None):
        found.pop("stream_options", None)
        found["stream"] = False
    return found


def says_in_streams(server: TokenServer) -> bool:
    """Whether a server says the tokens of streamed replies; others refuse requests for both."""
    return server != "sglang"


def without_unasked(server: TokenServer, asked: Mapping[str, Any], answer: Json) -> Json:
    """Return an answer, or an event of one, without what it has by :func:`asking_for_tokens` alone.

    >>> choice = {"index": 0, "token_ids": [7], "logprobs": {"content": []}}
    >>> without_unasked("vllm", {}, {"prompt_token_ids": [1], "choices": [choice]})
    {'choices': [{'index': 0, 'logprobs': None}]}
    """
    unasked = {each for name, brings in _FIELDS[server].items() if not asked.get(name) for each in brings}

    def rest(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        nothing = {"logprobs": None} if "logprobs" in unasked and "logprobs" in value else {}
        return {name: each for name, each in value.items() if name not in unasked} | nothing

    found: Json = rest(answer)
    if isinstance(choices := found.get("choices"), list):
        found["choices"] = [rest(choice) for choice in choices]
    return found


def lack_of_tokens(server: TokenServer, answer: Mapping[str, Any]) -> str:
    """Return what an answer in one piece lacks of the ids of its tokens, in words with what to do; else nothing."""
    facts = tokens_told("chat", [answer])
    usage = answer.get("usage")
    counted = usage.get("completion_tokens") if isinstance(usage, dict) else None
    known = len(facts.completion_token_ids)
    if not (facts.prompt_token_ids and known):
        return _advice(server, "the server said no token ids")
    if isinstance(counted, int) and known < counted:
        return (
            f"the server said the ids of {known} of a reply's {counted} tokens, as vLLM does with "
            "include_reasoning=false; have it tell all that the model writes, or leave token_ids out to record none"
        )
    return ""


def refused_tokens(server: TokenServer, words: str) -> str:
    """Return what to say of a server whose error is about what it was asked for tokens; nothing for other errors."""
    if not any(name in words for name in _FIELDS[server]):
        return ""
    return _advice(server, f"the server refuses what it is asked for token ids: {words}")


def _advice(server: TokenServer, what: str) -> str:
    other = "sglang" if server == "vllm" else "vllm"
    return (
        f"{what}; token_ids={server} asks for them ({', '.join(_FIELDS[server])}; {_SINCE[server]}). Set "
        f"token_ids={other} where it is such a server, or leave the option out to record none"
    )


def tokens_told(api: Api | None, answers: Iterable[Any]) -> TokenFacts:
    """Return the tokens of a reply: the ids of vLLM and SGLang, log-probabilities of OpenAI's APIs and Gemini's.

    Args:
        api: The API that was asked.
        answers: The answer's JSON object, or those of its events.
    """
    prompt: list[int] = []
    completion: list[int] = []
    logprobs: list[float] = []
    for answer in answers:
        with contextlib.suppress(LookupError, TypeError, AttributeError):  # It has another form.
            for each in _token_places(api, answer):
                prompt = prompt or _numbers(each.get("prompt_token_ids"))
                if pairs := (each.get("meta_info") or {}).get("output_token_logprobs"):
                    completion += [pair[1] for pair in pairs]
                    logprobs += [pair[0] for pair in pairs]
                    continue
                completion += _numbers(each.get("token_ids"))
                given = each.get("logprobs")
                given = given.get("content") if isinstance(given, dict) else given
                logprobs += [one["logprob"] for one in given or () if "logprob" in one]
    return TokenFacts(tuple(prompt), tuple(completion), tuple(logprobs))


def _token_places(api: Api | None, answer: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of an answer, or of one event of it, that have facts about tokens."""
    if api == "chat":
        yield answer
        yield from (choice for choice in answer.get("choices") or () if not choice.get("index"))
    elif api == "gemini":
        for candidate in answer.get("candidates") or ():
            chosen = (candidate.get("logprobsResult") or {}).get("chosenCandidates") or ()
            ids = [each["tokenId"] for each in chosen if "tokenId" in each]
            yield {"token_ids": ids, "logprobs": [{"logprob": each.get("logProbability")} for each in chosen]}
    elif api == "responses":
        if answer.get("type") == "response.output_text.delta":  # The items at the end have all of it again.
            yield answer
        for item in answer.get("output") or ():
            yield from item.get("content") or ()


def _numbers(value: Any) -> list[int]:
    return [each for each in value if isinstance(each, int)] if isinstance(value, list) else []

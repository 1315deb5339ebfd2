"""How servers that are compatible with Chat Completions differ in what they answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]


def openrouter(reply: Json) -> Json:
    """Says who served the model and what it cost; reasoning has another name."""
    message = reply["choices"][0]["message"]
    message["reasoning"] = message.pop("reasoning_content", None)
    reply["choices"][0]["native_finish_reason"] = reply["choices"][0]["finish_reason"]
    reply["usage"] |= {"cost": 0.0125, "is_byok": False, "cost_details": {"upstream_inference_cost": None}}
    return reply | {"provider": "DeepInfra", "system_fingerprint": None}


def vllm(reply: Json) -> Json:
    """Has fields that are null, and further ones of its own."""
    message = reply["choices"][0]["message"]
    message |= {
        "reasoning_content": None,
        "audio": None,
        "function_call": None,
        "tool_calls": message.get("tool_calls", []),
    }
    for call in message["tool_calls"]:
        call["id"] = call["id"].replace("call_", "chatcmpl-tool-")
    reply["choices"][0] |= {"stop_reason": None, "token_ids": None}
    reply["usage"] |= {"prompt_tokens_details": None, "completion_tokens_details": None}
    return reply | {"prompt_logprobs": None, "kv_transfer_params": None}


def ollama(reply: Json) -> Json:
    """Numbers calls, and counts no cached tokens."""
    message = reply["choices"][0]["message"]
    message["content"] = message["content"] or ""
    for number, call in enumerate(message.get("tool_calls", ())):
        call["index"] = number
    reply["usage"] = {name: reply["usage"][name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
    return reply | {"system_fingerprint": "fp_ollama"}


def litellm(reply: Json) -> Json:
    """Hands on fields of the provider behind it."""
    reply["choices"][0]["message"] |= {"function_call": None, "provider_specific_fields": {"refusal": None}}
    reply["usage"] |= {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 600}
    return reply | {"service_tier": None}


def deepseek(reply: Json) -> Json:
    """Counts cached tokens under names of its own."""
    usage = reply["usage"]
    del usage["prompt_tokens_details"]
    usage |= {"prompt_cache_hit_tokens": 600, "prompt_cache_miss_tokens": 400}
    return reply


def moonshot(reply: Json) -> Json:
    """Counts cached tokens beside the others, and says the model's reasoning."""
    usage = reply["usage"]
    del usage["prompt_tokens_details"]
    reply["choices"][0]["message"]["reasoning_content"] = "Hm."
    usage["cached_tokens"] = 600
    return reply


def zhipu(reply: Json) -> Json:
    """Has a request's id in the body, and numbers calls."""
    for number, call in enumerate(reply["choices"][0]["message"].get("tool_calls", ())):
        call["index"] = number
    return reply | {"request_id": "a-request"}


def azure(reply: Json) -> Json:
    """Says what its filters found."""
    safe = {"hate": {"filtered": False, "severity": "safe"}}
    reply["choices"][0]["content_filter_results"] = safe
    return reply | {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": safe}]}


#: By the heading of docs/providers.md.
DIALECTS: dict[str, Callable[[Json], Json]] = {
    "OpenRouter": openrouter,
    "vLLM": vllm,
    "Ollama": ollama,
    "LiteLLM proxy": litellm,
    "DeepSeek": deepseek,
    "Moonshot": moonshot,
    "Zhipu": zhipu,
    "Azure": azure,
}

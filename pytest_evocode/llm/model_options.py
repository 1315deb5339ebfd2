"""Options of a model: how it samples, how it is reached, how long it is waited for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class ModelOptions(BaseModel):
    """Options of a model client; what is None is left to the provider."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    api: Literal["chat", "responses"] | None = None
    """API of ``openai``: Chat Completions or Responses. Default: Responses at OpenAI itself, else Chat Completions."""
    base_url: str | None = Field(default=None, pattern=r"^https?://[^/@]+(/|$)")
    """Address of a compatible server, which needs no key; the address itself may hold none. Default: the SDK's variable
    (OPENAI_BASE_URL, ANTHROPIC_BASE_URL), else the provider itself."""
    key_env: str | None = Field(default=None, min_length=1)
    """Environment variable that holds the key. Default: OPENAI_API_KEY or ANTHROPIC_API_KEY."""
    effort: str | None = Field(default=None, min_length=1)
    """Reasoning effort, such as low, medium or high."""
    thinking: Literal["adaptive"] | Annotated[int, Field(ge=0)] | None = None
    """Extended thinking of ``anthropic``: ``adaptive``, or a budget in tokens per reply for models that take one; 0
    disables it."""
    temperature: float | None = Field(default=None, ge=0)
    """Sampling temperature; many models refuse it."""
    max_tokens: int | None = Field(default=None, gt=0)
    """Limit of one reply in tokens, reasoning included."""
    context_tokens: int | None = Field(default=None, gt=0)
    """Limit of a conversation in tokens. Default: the price table's for the model."""
    prices: Path | None = None
    """JSON or TOML file in the format of prices.json; its models are added to the table, or replace those in it."""
    retries: int = Field(default=8, ge=0)
    """Retries of a request that failed for a passing reason: a broken connection, 408, 409, 5xx. At most three while
    nothing has ever come back, as from a wrong address."""
    retry_seconds: float = Field(default=600.0, ge=0)
    """Seconds to wait for the end of a rate limit or an overload (429, 529)."""
    max_connections: int | None = Field(default=None, gt=0)
    """Requests under way at once for the same provider and key, over the whole run. Default: the setting
    evocode_max_connections, else 100."""

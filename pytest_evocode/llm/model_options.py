"""What can be said about a model and how it is spoken to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class ModelOptions(BaseModel):
    """Options of a model client. What is left out is left to the provider."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    api: Literal["chat", "responses"] | None = None
    """Which API of ``openai``: Chat Completions or Responses. Responses at OpenAI itself, else Chat Completions."""
    base_url: str | None = Field(default=None, pattern=r"^https?://[^/@]+(/|$)")
    """Where the provider is, for any server that is compatible; by default the variable of the SDK (OPENAI_BASE_URL,
    ANTHROPIC_BASE_URL), else the provider itself. No key is needed there, and none is written into it."""
    key_env: str | None = Field(default=None, min_length=1)
    """The variable that has the key; by default OPENAI_API_KEY or ANTHROPIC_API_KEY."""
    effort: str | None = Field(default=None, min_length=1)
    """How hard the model is to think, such as low, medium, high."""
    thinking: Literal["adaptive"] | Annotated[int, Field(ge=0)] | None = None
    """Extended thinking of ``anthropic``: ``adaptive``, or tokens of it per reply for models that take a budget; 0 is
    none."""
    temperature: float | None = Field(default=None, ge=0)
    """Of the sampling; many models refuse it."""
    max_tokens: int | None = Field(default=None, gt=0)
    """The limit of one reply, reasoning included."""
    context_tokens: int | None = Field(default=None, gt=0)
    """The limit of a conversation; by default what the price table has for the model."""
    prices: Path | None = None
    """A JSON or TOML file in the form of prices.json; its models are added to the table, or replace those in it."""
    retries: int = Field(default=8, ge=0)
    """How often a request is repeated that failed for a passing reason: a broken connection, 408, 409, 5xx. Three times
    at most as long as nothing has ever come back, as from an address that is wrong."""
    retry_seconds: float = Field(default=600.0, ge=0)
    """For how long a rate limit or an overloaded provider is waited for (429, 529)."""

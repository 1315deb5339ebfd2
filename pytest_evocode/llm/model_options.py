"""Options of a model: how it samples, how it is reached, how long it is waited for."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from pytest_evocode.errors import UsageError
from pytest_evocode.llm.token_ids import TokenServer
from pytest_evocode.secrets import is_secret_name, secret_value

_VARIABLE = re.compile(r"\$\{(\w+)\}")
#: No key has this form: base64 has no dots, and a token does not begin with a slash.
_PATH = re.compile(r"/[\w./-]*\.\w+")
#: Fields that the conversation itself is in.
_OURS = frozenset({"model", "messages", "input", "instructions", "system", "contents", "tools", "stream", "store"})


def parsed(value: Any) -> Any:
    """Return a table that was given as JSON text, as on the command line; anything else as it is."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return json.loads(value)
        except ValueError as error:
            raise ValueError(f"it is not valid JSON: {error}") from None
    return value


def split_words(value: Any) -> Any:
    """Split a list as ini files and the command line write it."""
    return value.replace(",", " ").split() if isinstance(value, str) else value


def _of_others(body: dict[str, Any]) -> dict[str, Any]:
    if ours := sorted(_OURS & body.keys()):
        raise ValueError(f"{ours[0]!r} is set by the agent itself; leave it out")
    return body


def without_secrets(headers: dict[str, str]) -> dict[str, str]:
    """Return headers or variables as they are; raises ValueError for a secret that would be recorded."""
    for name, value in headers.items():
        named = _VARIABLE.findall(value)
        if is_secret_name(name) and not named:
            variable = re.sub(r"\W+", "_", name).upper()
            raise ValueError(
                f"{name} holds a secret, which would be recorded; write ${{{variable}}}, and set that variable"
            )
        if unkept := [each for each in named if is_secret_name(name) and not is_secret_name(each)]:
            raise ValueError(
                f"the variable {unkept[0]} does not count as a secret, so its value would not be removed from records; "
                f"call it {unkept[0]}_API_KEY"
            )
    return headers


def _without_literal_secrets(env: dict[str, str]) -> dict[str, str]:
    """Return a program's variables as they are; raises ValueError for a secret that would be recorded.

    What is too short for a secret, or the path of a file, is none: local servers take any word for a key.
    """
    for name, value in env.items():
        literal = _VARIABLE.sub("", value)
        is_whole = literal == value and not _PATH.fullmatch(value)
        if (is_whole or not is_secret_name(name)) and secret_value(name, literal) is not None:
            raise ValueError(
                f"{name} holds a secret, which would be recorded; write ${{{name}}}, and set that variable"
            )
    return env


def _reachable(address: str) -> str:
    """Return an address that requests can be sent to; raises ValueError for one that holds a password, or none."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an address begins with http:// or https:// and the name of a host")
    if "@" in parts.netloc:
        raise ValueError("an address must not hold a name or a password, which would be recorded; use key_env")
    try:
        wrong = parts.port == 0
    except ValueError:
        wrong = True
    if wrong:
        raise ValueError("the port of an address is a number from 1 to 65535")
    return address


#: Address of a server, without a password.
Address = Annotated[str, AfterValidator(_reachable)]
#: Patterns of models' names, as in a shell.
Models = Annotated[tuple[str, ...], BeforeValidator(split_words)]
#: Variables of a program in the container.
Variables = Annotated[dict[str, str], BeforeValidator(parsed), AfterValidator(_without_literal_secrets)]
_Json = Annotated[dict[str, Any], BeforeValidator(parsed), AfterValidator(_of_others)]
_Headers = Annotated[dict[str, str], BeforeValidator(parsed), AfterValidator(without_secrets)]


class ModelOptions(BaseModel):
    """Options of a model client; what is None is left to the provider."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    api: Literal["chat", "responses"] | None = None
    """API of ``openai`` and ``azure``: Chat Completions or Responses. Default: Responses at OpenAI itself, else Chat
    Completions."""
    base_url: Address | None = Field(default=None, examples=["http://localhost:8000/v1"])
    """Address of a compatible server, which needs no key; the address itself may hold none. Default: the SDK's variable
    (OPENAI_BASE_URL, ANTHROPIC_BASE_URL), else the provider itself."""
    key_env: str | None = Field(default=None, min_length=1, examples=["MY_API_KEY"])
    """Environment variable that holds the key. Default: OPENAI_API_KEY or ANTHROPIC_API_KEY."""
    effort: str | None = Field(default=None, min_length=1, examples=["high"])
    """Reasoning effort, such as low, medium or high."""
    thinking: Literal["adaptive"] | Annotated[int, Field(ge=0)] | None = None
    """Extended thinking of Anthropic's and Google's models: ``adaptive``, or a budget in tokens per reply for models
    that take one; 0 disables it."""
    region: str | None = Field(default=None, min_length=1, examples=["us-east-1"])
    """Region of ``bedrock`` or ``vertex``. Default: AWS_REGION or that of the AWS profile; CLOUD_ML_REGION."""
    project: str | None = Field(default=None, min_length=1, examples=["my-project"])
    """Project of ``vertex``. Default: ANTHROPIC_VERTEX_PROJECT_ID or GOOGLE_CLOUD_PROJECT."""
    api_version: str | None = Field(default=None, min_length=1, examples=["2024-10-21"])
    """Version by date of Azure's API. Default: OPENAI_API_VERSION, else the API that Azure calls v1."""
    temperature: float | None = Field(default=None, ge=0, examples=[0.2])
    """Sampling temperature; many models refuse it."""
    top_p: float | None = Field(default=None, gt=0, le=1, examples=[0.95])
    """Share of the probability that tokens are sampled from."""
    seed: int | None = Field(default=None, examples=[7])
    """Seed of the sampling, of Chat Completions and ``google``; providers keep to it as far as they can."""
    service_tier: str | None = Field(default=None, min_length=1, examples=["flex"])
    """The provider's service tier, in its words. A cost is known where the price of that tier is."""
    extra_body: _Json | None = Field(default=None, examples=[{"top_k": 20}])
    """Further fields of each request, which replace those of the same name."""
    token_ids: TokenServer | None = None
    """Record the ids and log-probabilities of all tokens, to train on: the kind of the server that is asked for them,
    by Chat Completions. One that says no ids ends the attempt with an error."""
    extra_headers: _Headers | None = Field(default=None, examples=[{"X-Title": "a-run"}])
    """Further headers of each request. ``${NAME}`` in a value stands for an environment variable, which is how a secret
    is given."""
    max_tokens: int | None = Field(default=None, gt=0, examples=[16000])
    """Limit of one reply in tokens, reasoning included. Default: the provider's; of ``anthropic`` 32,000 and the budget
    of thinking on top, or what the model has, 8,192 for one that is in no table."""
    context_tokens: int | None = Field(default=None, gt=0, examples=[131072])
    """Limit of a conversation in tokens. Default: the price table's for the model."""
    prices: Path | None = None
    """JSON or TOML file in the format of prices.json; its models are added to the table, or replace those in it."""
    retries: int = Field(default=8, ge=0)
    """Retries of a request that failed for a passing reason: a broken connection, 408, 409, 5xx. At most three while
    nothing has ever come back, as from a wrong address."""
    retry_seconds: float = Field(default=600.0, ge=0)
    """Seconds to wait for the end of a rate limit or an overload (429, 529)."""
    silence_seconds: float | None = Field(default=None, gt=0, examples=[300])
    """Seconds without a byte of a streamed reply after which the request is sent again; doubled each time that it is.
    Default: 60 at Anthropic itself, else 120."""
    max_connections: int | None = Field(default=None, gt=0)
    """Requests under way at once for the same provider and key, over the whole run. Default: the setting
    evocode_max_connections, else 100."""

    def headers(self, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return ``extra_headers`` with each ``${NAME}`` replaced; raises UsageError for a variable that is not set."""

        def value(match: re.Match[str]) -> str:
            if not environ.get(match[1]):
                raise UsageError(f"extra_headers: {match[0]} is not set; set it, or leave the header out")
            return environ[match[1]]

        return {name: _VARIABLE.sub(value, text) for name, text in (self.extra_headers or {}).items()}

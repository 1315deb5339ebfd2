"""Makes the client for a model: which provider and which of its APIs it is asked through; simulated users' too."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points

from pytest_evocode.errors import UsageError
from pytest_evocode.llm.anthropic_messages import MessagesClient
from pytest_evocode.llm.gemini import GeminiClient
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.openai_chat import ChatClient
from pytest_evocode.llm.openai_responses import ResponsesClient
from pytest_evocode.llm.prices import find_model_facts
from pytest_evocode.llm.protocol import ModelClient
from pytest_evocode.llm.providers import PROVIDERS
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.model import UserConfig

#: Group of the entry points by which other packages add providers: functions of a model's name and its ModelOptions,
#: which return a :class:`~pytest_evocode.llm.protocol.ModelClient`.
ENTRY_POINTS = "pytest_evocode.providers"
#: Options that not all providers take, with those that do, and what others have in their place.
_PARTICULAR = {
    "api": (("openai", "azure"), {"anthropic": "it has Messages only", "google": "it has generateContent only"}),
    "thinking": (
        ("anthropic", "bedrock", "vertex", "google"),
        {"openai": "use effort=high", "azure": "use effort=high"},
    ),
    "seed": (("openai", "azure", "google"), {}),
    "service_tier": (("openai", "azure", "anthropic", "google"), {}),
    "token_ids": (("openai",), {}),
    "region": (("bedrock", "vertex"), {}),
    "project": (("vertex",), {}),
    "api_version": (("azure",), {}),
}


def make_client(provider: str, model: str, options: ModelOptions | None = None) -> ModelClient:
    """Return a client for a model; sends no request and imports no SDK.

    Args:
        provider: One of :data:`~pytest_evocode.llm.providers.PROVIDERS`, or the name of an entry point.
        model: The model's name at the provider.
        options: How the model is asked.

    Raises:
        UsageError: The provider is unknown, it does not have one of the options, or the price file cannot be read.
    """
    options = options or ModelOptions()
    if provider not in PROVIDERS:
        return _of_others(provider, model)(model, options)
    for name, why in refusals_of(provider).items():
        if getattr(options, name) is not None:
            raise UsageError(f"{provider}/{model}: {why}")
    given = PROVIDERS[provider]
    address = given.address(options)
    facts = find_model_facts(
        model,
        options.prices,
        provider=provider,
        base_url=None if provider == "azure" else address,
        service_tier=options.service_tier,
    )
    if provider == "google":
        return GeminiClient(given, model, options, facts)
    if provider in ("anthropic", "bedrock", "vertex"):
        return MessagesClient(given, model, options, facts)
    if (options.api or ("responses" if provider == "openai" and given.is_official(address) else "chat")) == "chat":
        return ChatClient(given, model, options, facts)
    if options.token_ids is not None:
        raise UsageError(
            f"{provider}/{model}: servers say token ids in Chat Completions alone; set base_url, or api=chat"
        )
    if options.seed is not None:
        raise UsageError(f"{provider}/{model}: the Responses API takes no seed; leave it out, or set api=chat")
    return ResponsesClient(given, model, options, facts)


def refusals_of(provider: str) -> dict[str, str]:
    """Return the options that a provider of ours does not take, each with who does and what to do about it."""
    return {
        name: f"the option {name} exists only for {', '.join(takers)}; {instead.get(provider, 'leave it out')}"
        for name, (takers, instead) in _PARTICULAR.items()
        if provider in PROVIDERS and provider not in takers
    }


def provider_names() -> list[str]:
    """Return the names of all providers, those of other packages last."""
    return [*PROVIDERS, *(point.name for point in _points() if point.name not in PROVIDERS)]


def _points() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=ENTRY_POINTS))


def _of_others(provider: str, model: str) -> Callable[[str, ModelOptions], ModelClient]:
    """Return what makes the clients of a provider of another package."""
    for point in _points():
        if point.name == provider:
            try:
                made: Callable[[str, ModelOptions], ModelClient] = point.load()
            except (ImportError, AttributeError) as error:
                raise UsageError(
                    f"{provider}/{model}: the provider's entry point {point.value} cannot be loaded: {error}; "
                    "mend or remove the package that has it"
                ) from None
            return made
    known = provider_names()
    nearest = difflib.get_close_matches(provider, known, n=1)
    hint = f"; did you mean {nearest[0]}/{model}?" if nearest else ""
    raise UsageError(
        f"unknown provider {provider!r}{hint} known are {', '.join(known)}; a server that is "
        "compatible with one of them has the option base_url"
    )


def client_of(config: UserConfig) -> ModelClient:
    """Return the client of a user's model; raises UsageError where there is no such provider."""
    provider, _, model = config.model.partition("/")
    if not model:
        raise UsageError(f"the simulated user's model = {config.model!r} is not PROVIDER/MODEL, such as openai/gpt-5")
    return make_client(provider, model)


def check_users(task: Task) -> None:
    """Raise UsageError where a package or a key is missing that a task's simulated users need; asks nobody."""
    for step, config in task.config.metadata.evocode.users.items():
        try:
            client_of(config).check()
        except UsageError as error:
            where = f"{task.directory / 'task.toml'}: [metadata.evocode.users.{step}]"
            raise UsageError(f"{where}: {error}") from None

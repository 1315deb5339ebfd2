"""The way of an agent's program in the container to its model: the gateway, which counts and records what it asks."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from pytest_evocode.agents.installed.exchange_reader import ExchangeReader
from pytest_evocode.agents.journal import Journal
from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.errors import AgentFault, EnvironmentFault, UsageError
from pytest_evocode.gateway import Exchange, Family, GatewaySession, Route, gateway_of_process
from pytest_evocode.gateway.replies import journal_entry
from pytest_evocode.llm.connection import check_key_name
from pytest_evocode.llm.model_options import Address, Models
from pytest_evocode.llm.prices import find_model_facts
from pytest_evocode.llm.provider_errors import from_status
from pytest_evocode.llm.providers import PROVIDERS
from pytest_evocode.llm.token_ids import TokenServer
from pytest_evocode.results.records import Usage, total_usage

logger = logging.getLogger(__name__)

#: The variables in which programs look for the address of their model, with what it lacks at its end.
_ADDRESSES: Mapping[Family, Mapping[str, str]] = {
    "openai": {"OPENAI_BASE_URL": "", "OPENAI_API_BASE": "", "OPENAI_HOST": "/v1"},
    "anthropic": {"ANTHROPIC_BASE_URL": ""},
    "google": {"GOOGLE_GEMINI_BASE_URL": ""},
}
#: What entries of a journal are called that have a request and its answer.
_EXCHANGE = "exchange"


class ModelAccess:
    """What the program of one turn is given to reach its model, and what it has asked there. Any thread may ask."""

    def __init__(self, context: RoundContext, reader: ExchangeReader | None = None) -> None:
        """Ask nothing yet; ``reader`` makes steps of what is asked, where the program writes none itself."""
        self._context = context
        self._reader = reader
        self._last: Exchange | None = None
        self._session: GatewaySession | None = None
        self._address = ""
        self._killing = threading.Lock()
        self._is_running = False
        self._before = context.recorder.usage

    @property
    def session(self) -> GatewaySession:
        """The gateway's account of the turn."""
        assert self._session is not None
        return self._session

    @property
    def token(self) -> str:
        """What the program has in place of a key, which is worth nothing elsewhere."""
        return self.session.token

    def base_url(self, family: Family) -> str:
        """Return where the program finds the APIs of a family, in the form that the provider's SDK takes."""
        return self.session.base_url(family, self._address)

    def variables(self, family: Family) -> dict[str, str]:
        """Return the variables by which programs usually find the APIs of a family."""
        address = self.base_url(family)
        found = {name: address.removesuffix(end) for name, end in _ADDRESSES[family].items()}
        return found | dict.fromkeys(PROVIDERS[family].key_variables, self.token)

    @property
    def has_ended_program(self) -> bool:
        """Whether the program was killed: at its budget, for what the provider answers, or for want of a price."""
        return bool(self.session.exhausted or self.session.fault or self.session.unpriced)

    def raise_for_turn(self) -> None:
        """Raise after the program has ended what keeps its turn from counting.

        Raises:
            AgentFault: The budget limits the cost, which is not known.
            ModelFault: The model's provider failed.
            RunLimitReached: The run may cost no more.
        """
        self.session.raise_for_turn()
        if model := self.session.unpriced:
            raise AgentFault(
                f"the budget limits the cost, and what {model} costs is not known; give its prices with "
                "--evocode-agent-option prices=FILE"
            )

    @property
    def used(self) -> Usage | None:
        """What the turn has used by now, with what was known to be used before its program began."""
        return total_usage([self._before, self.session.usage])

    @property
    def overflow(self) -> str:
        """What the provider said of the last request if that was longer than the model takes; empty if it was not."""
        last = self._last
        if last is None or last.status is None or last.status < 400:
            return ""
        try:
            body = json.loads(last.response)
        except ValueError:
            body = last.response
        fault = from_status(last.status, body, {})
        return str(fault) if fault.kind == "overflow" else ""

    def _take(self, exchange: Exchange) -> None:
        """Record an exchange; the program is killed where that fails."""
        try:
            self._record(exchange)
        except BaseException:
            self._kill("what it does cannot be recorded")
            raise

    def _record(self, exchange: Exchange) -> None:
        self._last = exchange
        if exchange.api is not None and exchange.usage is not None and not exchange.replayed:
            self._context.journal.add({_EXCHANGE: journal_entry(exchange)})
        if self._reader is not None:
            self._reader.take(exchange)

    def _end(self) -> None:
        """Kill the program if it runs, because it need not go on."""
        session = self.session
        self._kill(session.exhausted or session.fault or f"the price of {session.unpriced} is not known")

    def _kill(self, why: str) -> None:
        with self._killing, contextlib.suppress(EnvironmentFault):  # Running the program fails with it, too.
            if self._is_running:
                logger.info("the agent's program is killed: %s", why)
                self._context.environment.kill_processes()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Say that the program runs; later nothing is killed, which might be what is run in its place."""
        self._is_running = True
        try:
            yield
        finally:
            with self._killing:
                self._is_running = False

    @contextlib.contextmanager
    def opened(self, *routes: Route, token: str | None = None) -> Iterator[ModelAccess]:
        """Let the turn's program reach the gateway while the context lasts; ``token`` is one that it has by now."""
        gateway = gateway_of_process()
        opened = partial(
            gateway.open,
            spending=self._context.spending,
            begin=None if self._reader is None else self._reader.begin,
            record=self._take,
            on_end=self._end,
            token=token,
            earlier=_exchanges_in(self._context.journal),
        )
        try:
            with self._context.environment.serve(gateway.socket) as self._address, opened(*routes) as self._session:
                self._context.recorder.charges = False  # The gateway does.
                yield self
        except AgentFault:
            raise
        except BaseException:
            if self._session is not None:
                self._context.recorder.break_off(self.used)
            raise
        finally:
            if self._reader is not None:
                self._reader.settle()
                if self._session is not None and not self._session.has_asked:
                    self._context.recorder.ask_nothing()
        if (lost := self.session.lost) is not None:
            self._context.recorder.lose(lost)


def _exchanges_in(journal: Journal) -> list[Exchange]:
    """Return what an earlier session has paid for in the turn."""
    entries = (entry for entry in journal.earlier if isinstance(entry, dict) and _EXCHANGE in entry)
    return [Exchange.from_json(entry[_EXCHANGE]) for entry in entries]


class ModelApi(BaseModel):
    """Options of a program that can be told where its model is, so that it asks by the gateway."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    api: Family | None = None
    """APIs that it asks: those of OpenAI, Anthropic or Google. It finds the address in ``$OPENAI_BASE_URL`` (also
    ``$OPENAI_API_BASE``, and without ``/v1`` ``$OPENAI_HOST``), ``$ANTHROPIC_BASE_URL`` or ``$GOOGLE_GEMINI_BASE_URL``,
    and in place of a key one that is worth nothing elsewhere; it needs no network."""
    base_url: Address | None = Field(default=None, examples=["http://model-server:8000/v1"])
    """Address of the model's server as this machine reaches it; None for the provider's own."""
    key_env: str | None = Field(default=None, min_length=1, examples=["MY_API_KEY"])
    """Variable of this machine that holds the API key, where it is not the usual one."""
    models: Models = Field(default=(), examples=[["gpt-5.2", "gpt-5.2-*"]])
    """Patterns of models that it may ask, which else are all of the account: others are refused as not found."""
    prices: Path | None = None
    """JSON or TOML file of prices, which come before our own."""
    token_ids: TokenServer | None = None
    """Record the ids and log-probabilities of all tokens, to train on: the kind of the server that is asked for them,
    whatever the program asks by Chat Completions. One that says no ids ends the attempt with an error."""

    @property
    def variables(self) -> frozenset[str]:
        """The names of the variables that the program gets of it."""
        return (
            frozenset() if self.api is None else frozenset({*_ADDRESSES[self.api], *PROVIDERS[self.api].key_variables})
        )

    @property
    def answered_by(self) -> dict[str, Any]:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return {} if self.api is None else PROVIDERS[self.api].named_server(self.base_url)

    def route(self, environ: Mapping[str, str]) -> Route | None:
        """Return where what the program asks goes; None where it does not ask by the gateway.

        Raises:
            UsageError: There is no key, or the program asks other APIs than token ids are to be had of.
        """
        if self.token_ids is not None and self.api != "openai":
            raise UsageError(f"token_ids = {self.token_ids!r} needs api = 'openai'; set it, or leave token_ids out")
        if self.api is None:
            return None
        names = PROVIDERS[self.api].key_variables if self.key_env is None else (self.key_env,)
        for name in names:
            check_key_name(name)
        key = next((environ[name] for name in names if environ.get(name, "").strip()), None)
        if key is None:
            raise UsageError(f"api = {self.api!r} needs a key and {' or '.join(names)} is not set; set it, or key_env")
        prices = partial(find_model_facts, prices=self.prices)
        return Route(
            family=self.api,
            base_url=self.base_url,
            key=key.strip(),
            models=self.models,
            prices=prices,
            token_ids=self.token_ids,
        )

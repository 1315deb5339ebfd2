"""The session of one program, which is as a rule one turn of an agent: its token, and what became of its requests."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Self

from pytest_evocode.errors import ModelFault, RunLimitReached
from pytest_evocode.gateway.exchanges import Exchange
from pytest_evocode.gateway.replies import likeness
from pytest_evocode.gateway.routes import Family, Route
from pytest_evocode.llm.budget import AttemptSpending
from pytest_evocode.llm.prices import ModelFacts
from pytest_evocode.llm.usage import Api
from pytest_evocode.results.records import Usage, total_usage
from pytest_evocode.secrets import SHORTEST, is_secret_name

_LARGE_AT_ONCE = 8
_SETTLING = 5.0  # seconds
_MOST_UNANSWERED = 64 * 2**20  # characters


class BudgetShares:
    """Divides what is left of a budget among requests that are under way together.

    Each is taken to use as much as the largest so far; as long as none has been answered, they come one by one.
    """

    def __init__(self, spending: AttemptSpending) -> None:
        self._spending = spending
        self._charged = asyncio.Condition()
        self._held = 0
        self._tokens, self._cost = 0, 0.0
        """The most that any one request has used."""

    @contextlib.asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Wait until those under way leave enough for one more request, and count it until it has been charged for."""
        async with self._charged:
            await self._charged.wait_for(self._is_left)
            self._held += 1
        try:
            yield
        finally:
            async with self._charged:
                self._held -= 1
                self._charged.notify_all()

    def take(self, usage: Usage) -> None:
        """Note what a request has used."""
        self._tokens = max(self._tokens, usage.tokens or 0)
        self._cost = max(self._cost, usage.cost_usd or 0.0)

    def _is_left(self) -> bool:
        return not self._held or not self._spending.would_exhaust(self._held, tokens=self._tokens, cost=self._cost)


class GatewaySession:
    """One program's way to its model, until it is closed.

    The gateway's thread calls what begins a request and what ends it; all else is for the thread that opened it.
    """

    has_asked = False
    """Whether a request to a model was sent on: else nothing was used."""

    def __init__(
        self,
        routes: Iterable[Route],
        *,
        spending: AttemptSpending | None,
        begin: Callable[[int, Api, Any], None] | None = None,
        record: Callable[[Exchange], None] | None,
        on_end: Callable[[], None] | None,
        earlier: Iterable[Exchange],
        token: str | None = None,
    ) -> None:
        self.token = token or secrets.token_urlsafe(32)
        """What the program gives as its key; it opens nothing but this session."""
        self.routes: Mapping[Family, Route] = {route.family: route for route in routes}
        self.spending = spending or AttemptSpending()
        self.shares = BudgetShares(self.spending)
        self.exhausted = ""
        """The limit of the budget at which a request was refused, in words for the record; empty where none was."""
        self.unpriced = ""
        """A model whose price nobody knows, where the budget limits the cost: nothing is asked after its answer."""
        self.fault = ""
        """The provider's fault that no answer has followed, in words for the record; empty where there is none."""
        self.gave_up = False
        """Whether a request was given up: later ones are sent once each."""
        self.usage: Usage | None = None
        """What all requests so far have used; None where no model was asked."""
        self.mended: set[Api] = set()
        """The APIs whose provider took a request after its calls were mended: later ones are mended at once."""
        self.replies = 0
        """Requests to a model that were answered."""
        self.uncounted = 0
        """Replies whose tokens are unknown, so that no budget of tokens or money can be kept."""
        self.was_reached = False
        """Whether the provider has ever said anything; else its address may be wrong."""
        self.has_answered = False
        """Whether a model has: what is then not there, or not allowed, is what the program asks for beside."""
        self.closed = False
        self.tasks: set[asyncio.Task[Any]] = set()
        """Requests under way."""
        self.large = asyncio.Semaphore(_LARGE_AT_ONCE)
        """Held by requests with large bodies, so that no program fills this machine's memory."""
        self._unanswered = 0
        """Characters of recorded requests to which no model has answered, and which cost the program nothing."""
        self._requests = 0
        self._begin, self._record, self._on_end = begin, record, on_end
        # Of its own, for recording may take seconds, and starting no thread before there is something to record.
        self._recorder = ThreadPoolExecutor(1, "gateway-records")
        self._records: list[Future[None]] = []
        self._run_limit: RunLimitReached | None = None
        self._ended = False
        self._prices: dict[tuple[Family, str], ModelFacts | None] = {}
        self._earlier: dict[str, deque[Exchange]] = defaultdict(deque)
        self._unasked = [exchange for exchange in earlier if exchange.api is not None]
        """Those of an earlier session that were not asked for again."""
        for exchange in self._unasked:
            if exchange.api is not None and exchange.status == 200 and exchange.complete:
                alike = exchange.likeness or likeness(exchange.api, exchange.path, exchange.asked())
                self._earlier[alike].append(exchange)
        self.stop: Callable[[GatewaySession], None] = lambda session: None
        """Cuts off the requests under way; set by the gateway."""

    def base_url(self, family: Family, address: str) -> str:
        """Return the base URL for a program, in the form that the provider's SDK takes.

        Args:
            family: The family of APIs that the program speaks.
            address: Where the program reaches the gateway, such as ``http://127.0.0.1:8080``.
        """
        return f"{address.rstrip('/')}/{family}" + ("/v1" if family == "openai" else "")

    @property
    def lost(self) -> Usage | None:
        """What was used for answers of an earlier session that nobody has asked for again; None where nothing was."""
        return total_usage(exchange.usage for exchange in self._unasked)

    # For the thread that opened it.

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Cut off what is under way, and wait until all is recorded; raises what ``record`` raised."""
        if not self.closed:
            self.closed = True
            self.stop(self)
            self._recorder.shutdown()
            for record in self._records:
                record.result()

    def settle(self) -> None:
        """Wait until what the program has asked is recorded, after it has ended; not for ever."""
        until = time.monotonic() + _SETTLING
        while self.tasks and time.monotonic() < until:
            time.sleep(0.01)
        for record in [*self._records]:
            record.result()

    def raise_for_turn(self) -> None:
        """Raise what keeps the turn from being the agent's: the provider's fault, or the limit of the whole run.

        Raises:
            RunLimitReached: The run may cost no more.
            ModelFault: The last that was heard of the provider is that it failed.
        """
        if self._run_limit is not None:
            raise self._run_limit
        if self.fault:
            raise ModelFault(self.fault)

    # For the gateway.

    @contextlib.contextmanager
    def serving(self) -> Iterator[int]:
        """Count the running task as a request under way in the block, and yield its number."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        self._requests += 1
        try:
            yield self._requests
        finally:
            self.tasks.discard(task)

    def refusal(self) -> str:
        """Return the limit of the budget that is reached before the next request; empty while something is left."""
        if self.unpriced:
            return f"the budget limits the cost, and what {self.unpriced} costs is not known"
        if not self.exhausted:
            try:
                self.exhausted = self.spending.exhausted
            except RunLimitReached as error:
                self._run_limit, self.exhausted = error, str(error)
            if self.exhausted:
                self._end()
        return self.exhausted

    def begin(self, number: int, api: Api, asked: Any) -> None:
        """Record that a request has come."""
        if self._begin is not None:
            self._records.append(self._recorder.submit(self._begin, number, api, asked))

    def take_earlier(self, api: Api, path: str, asked: Any) -> Exchange | None:
        """Return the exchange of an earlier session that answers a request; None where there is none."""
        if self._earlier:
            with contextlib.suppress(TypeError, AttributeError):  # The request has another form.
                if found := self._earlier.get(likeness(api, path, asked)):
                    self._unasked.remove(found[0])
                    return found.popleft()
        return None

    def prices(self, route: Route, model: str) -> ModelFacts | None:
        """Return the prices of a model; looking for them the first time may take half a second."""
        key = (route.family, model)
        if key not in self._prices:
            self._prices[key] = route.prices(model)
        return self._prices[key]

    def answered(self) -> None:
        """Note that a model has answered."""
        self.fault, self.gave_up = "", False
        self.was_reached = self.has_answered = True

    def failed(self, words: str, *, gave_up: bool) -> None:
        """Note a fault of the provider's that was not mended by sending the request again."""
        if not (self.gave_up and self.fault):  # Why it was given up says more than that it still fails.
            self.fault = self.clean(words)
        if gave_up and not self.gave_up:
            self.gave_up = True
            self._end()

    def take(self, exchange: Exchange) -> None:
        """Charge what an exchange has used, and record it."""
        if exchange.usage is not None:
            is_reply = exchange.status == 200 and exchange.complete
            self.usage = total_usage([self.usage, exchange.usage])
            self.shares.take(exchange.usage)
            self.spending.charge(exchange.usage, turns=int(is_reply), paid_before=exchange.replayed)
            self.replies += is_reply
            self.uncounted += is_reply and exchange.usage.tokens is None
            if exchange.complete and exchange.usage.cost_usd is None and self.spending.budget.limits_cost:
                self.unpriced = exchange.model
                self._end()
        else:
            self._unanswered += len(exchange.request) + len(exchange.response)
            if self._unanswered > _MOST_UNANSWERED:
                exchange = replace(exchange, request="", response="", notes=(*exchange.notes, "too much to be kept"))
        if self._record is not None:
            self._records.append(self._recorder.submit(self._record, exchange))

    def clean(self, text: str) -> str:
        """Return a text without the keys and the token."""
        for route in self.routes.values():
            secret = (value for name, value in route.headers.items() if is_secret_name(name))
            for value in (route.key, *secret):
                if len(value) >= SHORTEST:
                    text = text.replace(value, "[key]")
        return text.replace(self.token, "[token]")

    def _end(self) -> None:
        """Have the program ended, which nothing waits for."""
        if self._on_end is not None and not self._ended:
            self._ended = True
            threading.Thread(target=self._on_end, name="gateway-end", daemon=True).start()

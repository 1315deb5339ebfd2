"""One request of a program: sent to the real server as often as it takes, and its answer passed on as it comes."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from pytest_evocode.errors import ModelFault, RequestUnanswered
from pytest_evocode.gateway.events import (
    EventSplitter,
    answer_in,
    completion_events,
    data_of,
    is_added_count,
    is_opening,
    json_of,
    streamed_answer,
)
from pytest_evocode.gateway.exchanges import Exchange, FailedTry, bounded
from pytest_evocode.gateway.places import PlaceQueue, pause
from pytest_evocode.gateway.replies import with_mended_calls
from pytest_evocode.gateway.requests import (
    NOT_PASSED_ON,
    AskedPath,
    Trouble,
    error_of,
    headers_for,
    is_answer,
    small_request,
    with_counts,
)
from pytest_evocode.gateway.session import GatewaySession
from pytest_evocode.llm.connection import LONGEST_SILENCE
from pytest_evocode.llm.provider_errors import (
    FIRST_RETRIES,
    ProviderFault,
    RetrySchedule,
    from_answer,
    from_status,
    request_id_in,
)
from pytest_evocode.llm.streams import StreamedAnswer
from pytest_evocode.llm.token_ids import (
    asking_for_tokens,
    lack_of_tokens,
    refused_tokens,
    says_in_streams,
    without_unasked,
)
from pytest_evocode.llm.usage import counted_answer, lower_bound
from pytest_evocode.results.records import Usage, total_usage

_CONNECT = 30.0  # seconds
_LONGEST_HOLD = 10.0
"""Seconds for which a stream is kept back that has only begun: programs may want to see that it has."""
_HELD_UP = 10.0
"""Seconds without the program reading, after which it may have broken the stream: servers wait for nobody for ever."""
_LONGEST_ANSWER = 64 * 2**20  # bytes
_OK = 200
#: Statuses that are about the account, the key or the model, and so about nothing that the agent did.
_NOT_THE_AGENTS = frozenset({401, 402, 403, 404, 429})
_OF_AN_ACCOUNT = frozenset({401, 402, 403})
_OF_A_MODEL = frozenset({403, 404})
_OF_TOO_MANY = frozenset({503, 529})
"""Statuses that say that the provider has too much to do: it may answer a small request, and no large one."""
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError)
_EVENTS = "text/event-stream"


@dataclass(slots=True)
class _Answer:
    """What the real server has answered, as far as it has come."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def request_id(self) -> str:
        return request_id_in(self.headers)


class Forwarding:
    """A request on its way."""

    def __init__(
        self,
        session: GatewaySession,
        path: AskedPath,
        request: web.BaseRequest,
        body: bytes,
        *,
        number: int,
        client: aiohttp.ClientSession,
        places: PlaceQueue,
    ) -> None:
        self._session, self._path, self._request = session, path, request
        self._client, self._places, self._number = client, places, number
        self._route, self._api = session.routes[path.family], path.api
        self._body, self._asked = body, json_of(body)
        self._counting = with_counts(body, self._asked) if self._api == "chat" else None
        """The request with which a stream says what it used, where the program has not asked it to."""
        self._tokens_of = self._route.token_ids if self._api == "chat" and isinstance(self._asked, dict) else None
        """The kind of the server that is asked for the tokens of the reply; None where it is not."""
        self._makes_stream = self._tokens_of is not None and not says_in_streams(self._tokens_of) and self._asks_stream
        """Whether the program gets an answer in one piece as the stream that it has asked for."""
        self._mended: bytes | None = None
        """The request with the calls mended, where the provider has refused the program's."""
        named = self._asked.get("model") if isinstance(self._asked, dict) else None
        self._model = path.model or str(named or "")
        self._began, self._at = time.monotonic(), datetime.now(UTC).isoformat(timespec="milliseconds")
        self._tries: list[FailedTry] = []
        self._silences = 0
        self._lost: list[Usage] = []
        """What streams have used that broke off before anything was passed on."""
        self._sent_at: float | None = None
        """When the try began that is under way."""
        self._first_byte: float | None = None
        self._answer: _Answer | None = None
        self._told: dict[str, Any] | None = None
        """The last answer in one piece, where it is one."""
        self._status: int | None = None
        """The status that the program has got."""
        self._streamed = self._replayed = False
        self._complete = True
        self._cut_short = False
        """Whether the connection broke after an answer was complete, but maybe before its count."""
        self._held_up = 0.0
        """The longest time in seconds for which the program has read nothing of what had come for it."""
        self._notes: tuple[str, ...] = ()
        self._mends: tuple[str, ...] = ()
        self._share = contextlib.AsyncExitStack()
        """Has the request's share of what is left of the budget, until what it has used is charged."""
        self._was_compared = False
        """Whether the model has answered another request after this one had failed for the last time."""
        self._lose: Callable[[], None] = lambda: None
        """Says that nothing came of the try under way."""

    async def answer(self) -> web.StreamResponse:
        """Return the answer, which the program has got when this ends; what became of it is recorded in any case."""
        try:
            if self._api is not None:
                self._session.begin(self._number, self._api, self._asked)
                earlier = self._session.take_earlier(self._api, self._path.whole, self._asked)
                if earlier is not None:
                    return await self._replay(earlier)
                if self._route.token_ids is not None and self._api != "chat":
                    return await self._refuse_without_tokens()
                if not self._route.allows(self._model):
                    return await self._say("model", f"the model {self._model!r} is none of those of this agent")
                if self._tokens_of is not None and self._session.gave_up:
                    # A reply without its tokens stays one, whatever comes after it until the program has ended.
                    return await self._say("unreachable", self._session.fault)
                if words := self._session.refusal():
                    return await self._say("budget", words)
                await asyncio.to_thread(self._session.prices, self._route, self._model)
                if self._api in self._session.mended:
                    self._mend()
                await self._share.enter_async_context(self._session.shares.hold())
            return await self._ask()
        except ModelFault as fault:  # The turn has waited for as long as it may.
            self._session.failed(str(fault), gave_up=True)
            return await self._say("unreachable", str(fault))
        except asyncio.CancelledError:
            self._complete = self._complete and self._told is not None
            raise
        finally:
            self._session.take(bounded(self._exchange()))
            await self._share.aclose()

    async def _refuse_without_tokens(self) -> web.StreamResponse:
        """Refuse what servers say no token ids of."""
        words = f"{self._path.path} gives no token ids, which are to be recorded; have the program ask Chat Completions"
        self._session.failed(words, gave_up=True)
        return await self._say("path", words)

    @property
    def _asks_stream(self) -> bool:
        """Whether the program wants the answer in a stream."""
        return self._path.streams or (isinstance(self._asked, dict) and bool(self._asked.get("stream")))

    # Asking.

    async def _ask(self) -> web.StreamResponse:
        route, waiting = self._route, self._session.spending.waiting
        schedule = RetrySchedule(route.options)
        while True:
            # What is no request to a model has other limits, of which programs know.
            account = route.account if self._api is not None else f"{route.account}-beside"
            async with self._places.hold(account, route.options.max_connections, waiting) as place:
                if self._api is not None and (refusal := self._session.refusal()):  # Others have used up the rest.
                    return await self._say("budget", refusal)
                self._session.has_asked |= self._api is not None
                self._sent_at = time.monotonic()
                try:
                    with waiting.working() as self._lose:
                        response = await self._once()
                    place.answered()
                    if self._mended is not None and self._api is not None:
                        self._session.mended.add(self._api)
                    return response
                except RequestUnanswered as unanswered:
                    fault = unanswered.fault
                took, self._sent_at = time.monotonic() - self._sent_at, None
                place.failed(fault)
            seconds = self._pause_after(fault, schedule)
            words = self._session.clean(str(fault))
            self._tries.append(FailedTry(words, fault.status, round(took, 3), round(seconds or 0.0, 3)))
            if seconds is None:
                if not self._may_be_the_requests(fault) or not await self._answers_another():
                    return await self._give_up(fault)
                if self._was_compared:
                    self._mends += ("the model answers other requests, so that this one is at fault",)
                    return await self._pass_on(fault)
                self._was_compared, seconds = True, 0.0  # In between the provider may have come back.
            waiting.retry(fault.cause, took)
            await pause(waiting, seconds, fault.cause)

    def _may_be_the_requests(self, fault: ProviderFault) -> bool:
        """Whether a fault that does not pass may be of this request alone."""
        is_passing = self._api is not None and fault.kind == "passing" and fault.status not in _OF_TOO_MANY
        return is_passing and self._session.was_reached and not self._session.gave_up

    async def _answers_another(self) -> bool:
        """Ask the model something small, which the run pays for, and return whether it answers that."""
        assert self._api is not None
        path, body = small_request(self._api, self._path, self._model)
        try:
            async with self._client.request(
                "POST",
                URL(path.target(self._route), encoded=True),
                headers=headers_for(self._route, self._request.headers),
                data=body,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=self._route.silence),
            ) as given:
                answer = answer_in(self._api, await _whole(given)) if given.status == _OK else None
        except _BROKEN:
            return False
        if not isinstance(answer, dict) or not is_answer(self._api, answer) or from_answer(answer, "") is not None:
            return False
        counted = counted_answer(self._api, answer.get("usage") or answer.get("usageMetadata"), self._facts)
        self._session.spending.charge_run(counted.usage)
        return True

    def _pause_after(self, fault: ProviderFault, schedule: RetrySchedule) -> float | None:
        """Return the seconds until the request is sent again; None where it is not."""
        if self._api is None or self._session.gave_up or fault.kind == "overflow":
            return None
        if fault.kind == "final":
            if fault.status == 400 and self._mend():
                return 0.0
            is_first = not any(each.status == fault.status for each in self._tries)
            if not is_first or not fault.may_be_chance:
                return None
            fault = replace(fault, retry=True)
        retries = self._route.options.retries if self._session.was_reached else FIRST_RETRIES
        return schedule.pause_after(fault, retries)

    def _mend(self) -> bool:
        """Mend what is sent, once; return whether there was something to mend."""
        assert self._api is not None
        found = None
        if self._mended is None:
            with contextlib.suppress(LookupError, TypeError, AttributeError):  # The request has another form.
                found = with_mended_calls(self._api, self._asked)
        if found is None:
            return False
        mended, notes = found
        self._mends = tuple(map(self._session.clean, notes))
        self._mended = json.dumps(mended).encode()
        if self._counting is not None:
            self._counting = with_counts(self._mended, mended)
        return True

    async def _once(self) -> web.StreamResponse:
        """Send the request once; raises RequestUnanswered as long as the program has got nothing of an answer."""
        self._answer = self._told = self._first_byte = None
        self._streamed, self._complete = False, True
        streams = self._asks_stream and not self._makes_stream
        # As long again each time: a server that is slow to begin is not asked for ever in vain.
        silence = min(LONGEST_SILENCE, self._route.silence * 2.0**self._silences) if streams else LONGEST_SILENCE
        body = self._counting or self._mended or self._body
        if self._tokens_of is not None:
            body = json.dumps(asking_for_tokens(self._tokens_of, json.loads(body))).encode()
        try:
            async with self._client.request(
                self._request.method,
                URL(self._path.target(self._route), encoded=True),
                headers=headers_for(self._route, self._request.headers),
                data=io.BytesIO(body) if body else None,  # Of large bytes aiohttp warns, which may be an error here.
                allow_redirects=False,  # The key is for this server.
                timeout=aiohttp.ClientTimeout(sock_connect=_CONNECT, sock_read=silence),
            ) as given:
                self._answer = _Answer(given.status, given.headers)
                if given.content_type == _EVENTS and given.status < 400 and self._api is not None:
                    return await self._pass_stream(given)
                self._answer.body = await _whole(given)
        except _BROKEN as error:
            self._answer = None  # What has come of it is no answer.
            raise RequestUnanswered(self._broken(error)) from None
        self._first_byte = self._seconds
        self._look_at(self._answer)
        headers, body = self._shown(self._answer.headers, self._answer.body)
        return await self._send(self._answer.status, headers, body)

    def _look_at(self, answer: _Answer) -> None:
        """Read an answer in one piece; raises RequestUnanswered for one that the program need not see."""
        if answer.status >= 400:
            self._session.was_reached = True
            fault = from_status(answer.status, json_of(answer.body), answer.headers)
            if (
                self._counting is not None
                and fault.status == 400
                and "stream_options" in f"{fault.param} {fault.words}"
            ):
                self._counting, fault = None, replace(fault, retry=True)  # A server that counts without, or not at all.
            raise RequestUnanswered(fault)
        if self._api is None or answer.status != _OK:
            return
        body = answer_in(self._api, answer.body)
        if isinstance(body, dict) and (found := from_answer(body, answer.request_id)) is not None:
            raise RequestUnanswered(found)
        if not is_answer(self._api, body):
            words = f"the answer is not in the format of the API: {str(body)[:300]}"
            raise RequestUnanswered(ProviderFault(words, _OK, request_id=answer.request_id, retry=True))
        self._told = body
        self._answered()

    def _answered(self) -> None:
        """Note that the model has answered, and whether the answer has the tokens that are to be recorded."""
        lack = "" if self._tokens_of is None else lack_of_tokens(self._tokens_of, self._told or {})
        if lack:
            self._session.failed(f"{self._route.server}: {lack}", gave_up=True)
        else:
            self._session.answered()

    # Passing an answer on.

    async def _pass_stream(self, given: aiohttp.ClientResponse) -> web.StreamResponse:
        """Pass a stream on, event by event; only one that has come to nothing yet is kept back."""
        assert self._api is not None
        assert self._answer is not None
        self._streamed = True
        splitter, reading = EventSplitter(), streamed_answer(self._api)
        held, received = bytearray(), bytearray()
        response: web.StreamResponse | None = None
        fault: ProviderFault | None = None
        try:
            async for chunk in given.content.iter_any():
                self._first_byte = self._first_byte or self._seconds
                received += chunk
                _check_length(received)
                opens = self._read_events(splitter.feed(chunk), reading, held)
                if response is None and opens and (self._seconds or 0.0) < _LONGEST_HOLD:
                    continue
                response = response or await self._prepare(given.status, given.headers)
                await self._write(response, held)
            self._read_events([splitter.rest()], reading, held)
        except _BROKEN as error:
            fault = self._broken(error)
        except asyncio.CancelledError:
            if response is not None and not self._session.closed:
                await self._read_on(given, splitter, reading, received)
            raise
        finally:
            self._answer.body = bytes(received)
            self._told = reading.body or None
            self._complete = reading.is_complete
        found = from_answer(reading.body, self._answer.request_id)
        if found is not None:
            fault, self._complete = found, False
        elif self._complete:
            self._cut_short, fault = fault is not None, None
        else:
            fault = fault or ProviderFault("the stream ended before the answer did")
        if fault is not None:
            return await self._break_off(fault, response, held)
        self._answered()
        response = response or await self._prepare(given.status, given.headers)
        await self._write(response, held)
        with _to_program():
            await response.write_eof()
        return response

    async def _write(self, response: web.StreamResponse, held: bytearray) -> None:
        """Pass on what is held back, as fast as the program takes it."""
        if not held:
            return
        data, began = bytes(held), time.monotonic()
        held.clear()
        with _to_program():
            await response.write(data)
        self._held_up = max(self._held_up, time.monotonic() - began)

    async def _read_on(
        self, given: aiohttp.ClientResponse, splitter: EventSplitter, reading: StreamedAnswer, received: bytearray
    ) -> None:
        """Read the rest of a stream that the program has left: what it costs is said last."""
        with contextlib.suppress(*_BROKEN):
            async for chunk in given.content.iter_any():
                received += chunk
                _check_length(received)
                self._read_events(splitter.feed(chunk), reading, bytearray())
            self._read_events([splitter.rest()], reading, bytearray())
        if reading.is_complete:
            self._told = reading.body
            self._answered()

    def _read_events(self, events: Iterable[bytes], reading: StreamedAnswer, held: bytearray) -> bool:
        """Read events, put into ``held`` what the program gets of them, and return whether they are mere openings."""
        opens = True
        for event in events:
            data = data_of(event)
            opens = opens and is_opening(data)
            reading.take(data)
            if self._counting is None or not is_added_count(event):
                held += self._shown_event(event)
        return opens

    def _shown_event(self, event: bytes) -> bytes:
        """Return an event of a stream without what the program has not asked for."""
        told = None if self._tokens_of is None else json_of(data_of(event).encode())
        if self._tokens_of is None or not isinstance(told, dict):
            return event
        shown = without_unasked(self._tokens_of, self._asked, told)
        return event if shown == told else f"data: {json.dumps(shown)}\n\n".encode()

    def _shown(self, headers: Mapping[str, str], body: bytes) -> tuple[Mapping[str, str], bytes]:
        """Return the headers and the body of an answer in one piece as the program has asked for it."""
        if self._tokens_of is None or self._told is None:
            return headers, body
        shown = without_unasked(self._tokens_of, self._asked, self._told)
        if not self._makes_stream:
            return headers, body if shown == self._told else json.dumps(shown).encode()
        kept = {name: value for name, value in headers.items() if name.lower() != "content-type"}
        counts = bool((self._asked.get("stream_options") or {}).get("include_usage"))
        return kept | {"Content-Type": _EVENTS}, completion_events(shown, counts=counts)

    async def _break_off(
        self, fault: ProviderFault, response: web.StreamResponse | None, held: bytearray
    ) -> web.StreamResponse:
        """End a stream that broke; raises RequestUnanswered where the program has got nothing of it."""
        session = self._session
        if response is None:
            if self._told:
                self._lost.append(lower_bound(self._counted(self._told), self._facts))
                self._told = None
            if fault.status is None:
                self._answer = None  # What has come of it is no answer.
            raise RequestUnanswered(fault)
        if fault.status is not None or self._held_up < _HELD_UP:
            session.failed(self._words(fault), gave_up=False)
            self._lose()
            session.spending.waiting.retry(fault.cause, self._seconds or 0.0)
        self._tries.append(FailedTry(session.clean(str(fault)), fault.status, round(self._seconds or 0.0, 3), 0.0))
        if fault.status is not None:  # The provider's own words for it are part of the stream.
            await self._write(response, held)
            with _to_program():
                await response.write_eof()
        elif self._request.transport is not None:
            self._request.transport.abort()
        return response

    async def _give_up(self, fault: ProviderFault) -> web.StreamResponse:
        """Note whose fault it is, and answer with the provider's last answer."""
        passes = fault.kind in ("rate limit", "passing")
        is_known = fault.status in _OF_A_MODEL and self._session.has_answered
        is_the_agents = fault.kind == "overflow" or fault.status not in _NOT_THE_AGENTS or is_known
        refused = "" if self._tokens_of is None else refused_tokens(self._tokens_of, str(fault))
        if refused and fault.status in (400, 422):
            self._session.failed(f"{self._route.server}: {refused}", gave_up=True)
        elif self._api is not None and (passes or not is_the_agents):
            is_locked_out = fault.status in _OF_AN_ACCOUNT and not self._session.replies
            self._session.failed(self._words(fault), gave_up=passes or is_locked_out)
        return await self._pass_on(fault)

    async def _pass_on(self, fault: ProviderFault) -> web.StreamResponse:
        """Give the program the provider's last answer."""
        if self._answer is None:
            return await self._say("unreachable", self._session.clean(self._words(fault)))
        # Some servers and proxies show in errors what they were sent.
        clean, body = self._session.clean, self._answer.body
        headers = {name: clean(value) for name, value in self._answer.headers.items()}
        body = clean(body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        return await self._send(self._answer.status, headers | {"x-should-retry": "false"}, body)

    async def _replay(self, earlier: Exchange) -> web.StreamResponse:
        """Answer as an earlier session was answered."""
        assert self._api is not None
        self._replayed, self._streamed = True, earlier.streamed
        self._told, body = earlier.body(), earlier.response.encode()
        headers = {
            "Content-Type": _EVENTS if earlier.streamed else "application/json",
            "x-request-id": earlier.request_id,
        }
        self._answer = _Answer(_OK, headers, body)
        if not earlier.streamed:
            return await self._send(_OK, *self._shown(headers, body))
        splitter, shown = EventSplitter(), bytearray()
        self._read_events([*splitter.feed(body), splitter.rest()], streamed_answer(self._api), shown)
        return await self._send(_OK, headers, bytes(shown))

    async def _say(self, trouble: Trouble, words: str) -> web.StreamResponse:
        """Answer in the provider's place."""
        status, body = error_of(self._path.family, trouble, words)
        headers = {"Content-Type": "application/json", "x-should-retry": "false"}
        self._answer = _Answer(status, headers, body)
        return await self._send(status, headers, body)

    async def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> web.StreamResponse:
        response = web.Response(status=status, headers=_passed_on(headers), body=body)
        self._status = status
        with _to_program():
            await response.prepare(self._request)
            await response.write_eof()
        return response

    async def _prepare(self, status: int, headers: Mapping[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers=_passed_on(headers))
        self._status = status
        with _to_program():
            await response.prepare(self._request)
        return response

    # What became of it.

    @property
    def _seconds(self) -> float | None:
        """Seconds since the try under way began."""
        return None if self._sent_at is None else round(time.monotonic() - self._sent_at, 3)

    @property
    def _facts(self) -> Any:
        answered = str((self._told or {}).get("model") or (self._told or {}).get("modelVersion") or "")
        found = self._session.prices(self._route, answered) if answered else None
        return found or self._session.prices(self._route, self._model)

    def _broken(self, error: BaseException) -> ProviderFault:
        """Return the fault of a connection that failed, or was silent for too long."""
        connected = not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
        silent = connected and isinstance(error, TimeoutError)
        self._silences += silent
        words = "not a byte came for too long" if silent else str(error) or type(error).__name__
        return ProviderFault(words, connected=connected, is_silence=silent)

    def _words(self, fault: ProviderFault) -> str:
        times = f", tried {len(self._tries)} times" if len(self._tries) > 1 else ""
        return f"{self._route.server}{self._path.path}: the provider failed{times}: {fault}"

    def _counted(self, told: Mapping[str, Any]) -> Usage:
        assert self._api is not None
        counted = counted_answer(self._api, told.get("usage") or told.get("usageMetadata"), self._facts)
        self._notes = counted.contradictions
        return counted.usage

    def _usage(self) -> Usage | None:
        """Return what the request has used; None where that is nothing."""
        if self._api is None:
            return None
        usage: Usage | None = None
        if self._told is not None:
            usage = self._counted(self._told)
            is_whole = self._complete and not (self._cut_short and usage.tokens is None)
            usage = usage if is_whole else lower_bound(usage, self._facts)
        elif self._sent_at is not None and (self._status is None or self._streamed):
            # The program went away, or the stream broke, while the model was at work.
            usage = lower_bound(Usage(), None)
        return total_usage([*self._lost, usage])

    def _exchange(self) -> Exchange:
        answer, told = self._answer, self._told or {}
        usage = self._usage()
        request_id = (answer.request_id if answer else "") or str(told.get("id") or told.get("responseId") or "")
        return Exchange(
            number=self._number,
            api=self._api,
            method=self._request.method,
            path=self._path.whole,
            began=self._at,
            seconds=round(time.monotonic() - self._began, 3),
            first_byte=self._first_byte,
            status=self._status,
            streamed=self._streamed,
            complete=self._complete,
            replayed=self._replayed,
            tries=tuple(self._tries),
            usage=usage,
            model=str(told.get("model") or told.get("modelVersion") or self._model),
            request_id=request_id,
            notes=(*self._mends, *self._notes),
            request=self._session.clean(self._body.decode("utf-8", "replace")),
            response=self._session.clean((answer.body if answer else b"").decode("utf-8", "replace")),
        )


@contextlib.contextmanager
def _to_program() -> Iterator[None]:
    """End the request where the program turns out to have gone, which is no trouble of the provider's."""
    try:
        yield
    except ConnectionError:
        raise asyncio.CancelledError("the program has gone") from None


async def _whole(given: aiohttp.ClientResponse) -> bytes:
    """Read an answer in one piece."""
    body = bytearray()
    async for chunk in given.content.iter_any():
        body += chunk
        _check_length(body)
    return bytes(body)


def _check_length(received: bytearray) -> None:
    """Raise where a server has sent more than any answer has: it might never end."""
    if len(received) > _LONGEST_ANSWER:
        raise aiohttp.ClientPayloadError(f"the answer has more than {_LONGEST_ANSWER // 2**20} MiB")


def _passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    # The client has decoded the body.
    dropped = NOT_PASSED_ON | {"content-encoding", "set-cookie", "alt-svc"}
    return {name: value for name, value in headers.items() if name.lower() not in dropped}

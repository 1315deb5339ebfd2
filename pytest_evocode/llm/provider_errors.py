"""What goes wrong with requests: providers' error answers, whether another try may help, and when it is made."""

from __future__ import annotations

import email.utils
import random
import re
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.waiting import WaitCause

_RETRIED = frozenset({408, 409})
_RATE_LIMITS = frozenset({429, 529})
_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_NO_CREDIT = frozenset(_TABLE["no_credit"])
_STATUS_OF_NAME: Mapping[str, int] = _TABLE["status_of_name"]
_TOO_LONG = re.compile("|".join(_TABLE["too_long"]), re.IGNORECASE)
# How OpenAI says that one request has more tokens than may be sent in a minute: no wait makes it fit.
_OVER_RATE = re.compile(r"request too large for .*\b(tokens per min|TPM)\b", re.IGNORECASE)
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


@dataclass(frozen=True, slots=True)
class ProviderFault:
    """Why one request was not answered."""

    words: str
    """The provider's own message, or that of what broke on the way to it."""
    status: int | None = None
    """HTTP status; None where nothing came back."""
    code: str = ""
    """The provider's name for the error."""
    param: str = ""
    """The field of the request that is at fault, as far as the provider says."""
    request_id: str = ""
    retry_after: float | None = None
    """Seconds after which the provider wants to be asked again."""
    connected: bool = True
    """Whether there was a connection, as far as is known; the model cannot have been at work without one."""
    retry: bool | None = None
    """Whether the provider says that a retry helps; None where it does not say."""
    is_silence: bool = False
    """Whether the server was silent for so long that the connection was taken for dead."""

    @property
    def kind(self) -> Literal["overflow", "rate limit", "passing", "final"]:
        """What to do about it: shorten the conversation, wait, send the request again, or give up."""
        if self.code in _NO_CREDIT:
            return "final"
        if self.status in _RATE_LIMITS and not _OVER_RATE.search(self.words):
            return "final" if self.retry is False else "rate limit"
        if self.status in {413, *_RATE_LIMITS} or _TOO_LONG.search(f"{self.code} {self.words}"):
            return "overflow"
        if self.retry is not None:
            return "passing" if self.retry else "final"
        passing = self.status is None or self.status in _RETRIED or self.status >= 500
        return "passing" if passing else "final"

    @property
    def cause(self) -> WaitCause:
        """What a turn waits for until the request is sent again."""
        if self.kind == "rate limit":
            return "rate limit"
        return "network" if self.status is None else "provider"

    @property
    def may_be_chance(self) -> bool:
        """Whether a proxy or a busy server may have refused the request though nothing is wrong with it."""
        page = self.words.lstrip().lower().startswith(("<!doctype", "<html"))
        return self.code not in _NO_CREDIT and (self.status in (400, 404) or (self.status == 403 and page))

    def __str__(self) -> str:
        """Return the words, with the status and the request's id for the provider's support."""
        facts = [f"status {self.status}"] if self.status is not None else []
        facts += [f"request {self.request_id}"] if self.request_id else []
        return f"{self.words} ({', '.join(facts)})" if facts else self.words


def from_status(status: int, body: Any, headers: Mapping[str, str]) -> ProviderFault:
    """Read an answer with a status of 400 or more; ``body`` is JSON, or text where it is not JSON."""
    error = error_in(body)
    retry = {"true": True, "false": False}.get(headers.get("x-should-retry", ""))
    fault = ProviderFault(
        words=_words(body, error) or f"nothing but status {status}",
        status=status,
        code=str(error.get("code") or error.get("type") or ""),
        param=str(error.get("param") or ""),
        request_id=request_id_in(headers),
        retry_after=_retry_after(headers),
        retry=retry,
    )
    details = error.get("details")
    return _with_details(fault, details) if isinstance(details, list) else fault


def _with_details(fault: ProviderFault, details: list[Any]) -> ProviderFault:
    """Return a fault with what Google says of it in a list: when to come again, and that the key is wrong."""
    for each in details:
        if not isinstance(each, dict):  # A proxy's.
            continue
        delay = _DELAY.fullmatch(str(each.get("retryDelay", "")))
        if delay and fault.retry_after is None:
            fault = replace(fault, retry_after=float(delay[1]))
        if each.get("reason") == "API_KEY_INVALID":  # It comes with status 400.
            fault = replace(fault, status=401)
    return fault


def from_answer(body: Mapping[str, Any], request_id: str) -> ProviderFault | None:
    """Read the error in an answer with status 200; None where there is none.

    Responses that failed have one, and so have answers of routers whose provider failed.
    """
    choices = body.get("choices")
    inner = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    error = body.get("error") or inner.get("error")
    if not error:
        return None
    error = error if isinstance(error, dict) else {"message": str(error)}
    code = error.get("code")
    number = int(str(code)) if str(code).isdecimal() else None  # Some routers write it as text.
    status = number or _STATUS_OF_NAME.get(str(code or error.get("type")), 400)
    words = _words(error, error) or "the answer has an error"
    return ProviderFault(words, status, str(code or ""), str(error.get("param") or ""), request_id)


def request_id_in(headers: Mapping[str, str]) -> str:
    """Return the provider's name for a request; empty where it gives none."""
    return headers.get("x-request-id") or headers.get("request-id") or ""


def error_in(body: Any) -> Mapping[str, Any]:
    """Return the object that describes an error: the body's ``error``, or the body itself."""
    if not isinstance(body, dict):
        return {}
    inner = body.get("error")
    return inner if isinstance(inner, dict) else body


def _words(body: Any, error: Mapping[str, Any]) -> str:
    for words in (error.get("message"), error.get("detail"), error.get("error")):
        if isinstance(words, str) and words.strip():
            return words.strip()
    shown = body if isinstance(body, str) else str(body or "")
    return " ".join(shown.split())[:500]


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return seconds from retry-after-ms, or from Retry-After in seconds or as a date; None where there is none."""
    milliseconds, given = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    try:
        if milliseconds:
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(given)) if given else None
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(given).timestamp() - time.time())
    except ValueError:
        return None


#: Retries while nothing has ever come back from the provider: its address may be wrong.
FIRST_RETRIES = 3
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 60.0  # seconds


class RetrySchedule:
    """The pauses between the tries of one request, and when the provider is given up.

    Neither the retries of the providers' SDKs nor ``stamina`` serve here: the SDKs wait for 8 seconds at most and know
    no deadline, and both count all failures alike, where a rate limit is waited for by the clock and a failure is
    repeated a number of times; and nobody could interrupt their pauses when the session is stopped.
    """

    def __init__(self, options: ModelOptions) -> None:
        self._options = options
        self._refusals = 0
        self._refused_since = 0.0
        self.failures = 0
        """How often the request has failed for a passing reason other than a rate limit."""
        self.silences = 0
        """How often of these because the server was silent."""

    def pause_after(self, fault: ProviderFault, retries: int) -> float | None:
        """Return the seconds to wait after one more fault, or None where the request is given up.

        ``retries`` is the number of repetitions after failures that are not rate limits.
        """
        if fault.kind == "rate limit":
            self._refused_since = self._refused_since or time.monotonic()
            self._refusals += 1
            left = self._options.retry_seconds - (time.monotonic() - self._refused_since)
            backoff = min(left, _backoff(self._refusals))
        else:
            self.failures += 1
            self.silences += fault.is_silence
            left = self._options.retry_seconds if self.failures <= min(retries, self._options.retries) else 0.0
            backoff = _backoff(self.failures)
        seconds = backoff if fault.retry_after is None else fault.retry_after
        return seconds if left > 0 and seconds <= left else None


def _backoff(times: int) -> float:
    """Return seconds that double each time, at random so that clients refused together do not come back together."""
    return min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(times - 1, 16)) * random.uniform(0.5, 1)

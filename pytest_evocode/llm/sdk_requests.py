"""One request through a provider's SDK: the answer as bytes, and what went wrong in one form for all SDKs."""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping
from typing import Any

from pytest_evocode.errors import ConnectionBroken, RequestUnanswered
from pytest_evocode.llm.provider_errors import ProviderFault, from_status

_CONNECT = 30.0  # seconds
_SHORTEST_CONNECT = 2.0
"""Seconds for a connection where hardly any time is left: without one it is not the model that is late."""


def send_request(
    module: str, resource: Any, payload: dict[str, Any], seconds: float
) -> tuple[bytes, Mapping[str, str]]:
    """Send a request once, and return the body and the headers of the answer.

    Args:
        module: The SDK's module.
        resource: The part of the SDK's client whose ``create`` is called.
        payload: Arguments of ``create``.
        seconds: Time for the whole answer.

    Raises:
        RequestUnanswered: The provider answers with an error, or the connection is broken.
        TimeoutError: The answer took too long.
    """
    until = time.monotonic() + seconds
    sdk = importlib.import_module(module)
    if hasattr(resource, "send"):  # One of ours, for an SDK of another make.
        return resource.send(sdk, payload, seconds)  # type: ignore[no-any-return]
    limits = sdk.Timeout(seconds, connect=max(min(seconds, _CONNECT), _SHORTEST_CONNECT))
    try:
        return _read(resource, payload | {"timeout": limits}, until)
    except sdk.APIStatusError as error:
        raise RequestUnanswered(from_status(error.status_code, error.body, error.response.headers)) from None
    except (sdk.APIConnectionError, ConnectionBroken) as error:
        raise RequestUnanswered(ProviderFault(cause_of(error), connected=not _is_unconnected(error))) from None


def _read(resource: Any, payload: dict[str, Any], until: float) -> tuple[bytes, Mapping[str, str]]:
    """Return the body and the headers of the answer; ``until`` is a deadline on the monotonic clock.

    The SDKs' timeouts hold for each read, and some servers send blanks for as long as they are busy.
    """
    body = bytearray()
    with resource.with_streaming_response.create(**payload) as response:
        try:
            for chunk in response.iter_bytes():
                body += chunk
                if time.monotonic() >= until:
                    raise TimeoutError("the answer took too long")
        except Exception as error:  # the SDKs let through what their HTTP libraries raise here
            raise ConnectionBroken(str(error) or type(error).__name__) from error
        return bytes(body), response.headers


def _is_unconnected(error: BaseException) -> bool:
    """Return whether an error of an SDK says that there was no connection yet."""
    causes = [error]
    while (cause := causes[-1].__cause__) is not None:
        causes.append(cause)
    return any(type(each).__name__ in ("ConnectTimeout", "ConnectError") for each in causes)


def cause_of(error: BaseException) -> str:
    """Return the words of an SDK error's root cause; the error itself says no more than "Connection error."."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__

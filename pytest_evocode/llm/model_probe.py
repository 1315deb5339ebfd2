"""Asks a server for its models before anything starts: a wrong port, key or model is known then, at no cost."""

from __future__ import annotations

import contextlib
import difflib
import json
import logging
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import BadStatusLine, HTTPException
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from pytest_evocode.errors import UsageError
from pytest_evocode.llm.prices import known_models
from pytest_evocode.llm.providers import Access, Provider, is_local

logger = logging.getLogger(__name__)

_SECONDS = 5.0
_ERROR = 2**16  # bytes


def probe(provider: Provider, model: str, access: Access) -> None:
    """Raise UsageError where nothing listens at the address, the key is refused, or the model is not there.

    All else that goes wrong says nothing: not every server has a list, and not every list is complete.
    """
    if not provider.models_path:
        return
    official = provider.is_official(access.base_url)
    server = (access.base_url or provider.server).rstrip("/")
    if provider.name == "azure":
        server = server.removesuffix("/openai/v1").removesuffix("/openai")
    address = server + provider.models_path
    label = f"{provider.name}/{model}"
    # These tell of one model, by all of its names. Azure lists what can be deployed, and not under which names it is.
    tells = official and provider.name != "azure"
    try:
        named = quote(model.removeprefix("models/"), safe="")
        listed = _get(f"{address}/{named}" if tells else address, provider, access)
    except urllib.error.HTTPError as error:
        if _refuses_key(error):
            where = f"the server at {access.base_url}" if access.base_url else "the provider"
            raise UsageError(f"{label}: {where} refuses the key in {access.key_name}; set a valid one") from None
        if error.code == 404 and tells:
            near = "" if provider.name == "google" else _near(model, known_models())
            raise UsageError(f"{label}: the provider has no such model{near}") from None
        return
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(error, BadStatusLine) and not isinstance(error, OSError) and access.base_url is not None:
            raise UsageError(
                f"{label}: what answers at {access.base_url} does not speak HTTP; correct base_url"
            ) from None
        if isinstance(reason, ConnectionRefusedError) and access.base_url is not None:
            raise UsageError(
                f"{label}: nothing listens at {access.base_url}; start the server, or correct base_url"
            ) from None
        logger.info("%s: the models of %s cannot be listed: %s", label, address, reason)
        return
    names = _names(listed) if provider.name != "azure" else []
    if not official and is_local(access.base_url) and names and not _has(names, model):
        raise UsageError(f"{label}: the server at {access.base_url} has no such model{_near(model, names)}")


def probe_compaction(provider: Provider, model: str, access: Access) -> None:
    """Raise UsageError where the provider has no compaction of its own for the model, as far as can be known.

    Anthropic says so of each model. Another server than OpenAI's is asked for it with an empty request, which costs
    nothing.
    """
    official = provider.is_official(access.base_url)
    if provider.name == "bedrock":
        raise UsageError("Bedrock has no compaction of its own")
    try:
        if provider.name == "anthropic" and official:
            address = f"{(access.base_url or provider.server).rstrip('/')}/v1/models/{quote(model, safe='')}"
            told = _get(address, provider, access, {"anthropic-beta": "compact-2026-09-04"})
            if _supports(told) is False:
                raise UsageError("the provider says that this model has no compaction")
        elif provider.name == "openai" and not official and access.base_url is not None:
            _get(f"{access.base_url.rstrip('/')}/responses/compact", provider, access, body=b"{}")
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (404, 405, 501) and not official:
            raise UsageError(f"the server at {access.base_url} has no /responses/compact") from None
    except (OSError, ValueError, HTTPException) as error:
        logger.info("%s/%s: compaction cannot be asked about: %s", provider.name, model, error)


def _supports(told: Any) -> bool | None:
    """Return whether a model is said to have compaction; None where nothing is said."""
    for name in ("capabilities", "compaction", "supported"):
        told = told.get(name) if isinstance(told, dict) else None
    return told if isinstance(told, bool) else None


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirection, which would be given the key."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        """Return None, so that the redirection counts as an error."""
        return


def _get(
    address: str,
    provider: Provider,
    access: Access,
    more: Mapping[str, str] = MappingProxyType({}),
    body: bytes | None = None,
) -> Any:
    headers = {"Accept": "application/json", **({"Content-Type": "application/json"} if body is not None else {})}
    headers |= provider.credentials(access.key, access.token)
    headers |= {"anthropic-version": "2023-06-01"} | access.options.headers() | {**more}
    opener = urllib.request.build_opener(_Stay)
    with opener.open(urllib.request.Request(address, body, headers), timeout=_SECONDS) as answer:
        return json.loads(answer.read(2**24))


def _refuses_key(error: urllib.error.HTTPError) -> bool:
    """Return whether an answer says that the key is wrong, which Google does by 400; closes it."""
    words = b""
    with error, contextlib.suppress(OSError, HTTPException):  # It may break off.
        words = error.read(_ERROR) if error.code == 400 else b""
    return error.code == 401 or b"API_KEY_INVALID" in words


def _names(listed: Any) -> list[str]:
    entries = listed.get("data") if isinstance(listed, dict) else None
    if not isinstance(entries, list) or listed.get("has_more"):
        return []
    return [str(each["id"]) for each in entries if isinstance(each, dict) and "id" in each]


def _has(names: list[str], model: str) -> bool:
    # A gateway may take all names of a kind, and Ollama lists tags that need not be said.
    return any("*" in name or name == model or name.partition(":")[0] == model for name in names)


def _near(model: str, names: list[str]) -> str:
    if nearest := difflib.get_close_matches(model, names, n=1):
        return f"; did you mean {nearest[0]!r}?"
    return f"; it has {', '.join(names[:5])}" if len(names) <= 5 else ""

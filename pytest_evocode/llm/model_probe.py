"""Asks a server for its models before anything starts: a wrong port, key or model is known then, at no cost."""

from __future__ import annotations

import difflib
import json
import logging
import urllib.error
import urllib.request
from http.client import BadStatusLine, HTTPException
from typing import Any
from urllib.parse import quote

from pytest_evocode.errors import UsageError
from pytest_evocode.llm.prices import known_models
from pytest_evocode.llm.providers import Access, Provider, is_local

logger = logging.getLogger(__name__)

_SECONDS = 5.0
#: Where the models of each API are listed, below the server's address.
_LISTS = {"openai": ("https://api.openai.com/v1", "/models"), "anthropic": ("https://api.anthropic.com", "/v1/models")}


def probe(provider: Provider, model: str, access: Access) -> None:
    """Raise UsageError where nothing listens at the address, the key is refused, or the model is not there.

    All else that goes wrong says nothing: not every server has a list, and not every list is complete.
    """
    if provider.name not in _LISTS:
        return
    own, path = _LISTS[provider.name]
    official = provider.is_official(access.base_url)
    address = (access.base_url or own).rstrip("/") + path
    label = f"{provider.name}/{model}"
    try:
        # OpenAI and Anthropic tell of one model, by all of its names.
        listed = _get(f"{address}/{quote(model, safe='')}" if official else address, access)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 401:
            variable = access.options.key_env or " or ".join(provider.key_variables)
            where = f"the server at {access.base_url}" if access.base_url else "the provider"
            raise UsageError(f"{label}: {where} refuses the key in {variable}; set a valid one") from None
        if error.code == 404 and official:
            raise UsageError(f"{label}: the provider has no such model{_near(model, known_models())}") from None
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
    names = _names(listed)
    if not official and is_local(access.base_url) and names and not _has(names, model):
        raise UsageError(f"{label}: the server at {access.base_url} has no such model{_near(model, names)}")


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirection, which would be given the key."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        """Return None, so that the redirection counts as an error."""
        return


def _get(address: str, access: Access) -> Any:
    headers = {"Accept": "application/json"}
    if access.key:
        headers |= {"Authorization": f"Bearer {access.key}", "x-api-key": access.key}
    elif access.token:
        headers["Authorization"] = f"Bearer {access.token}"
    headers |= {"anthropic-version": "2023-06-01"} | access.options.headers()
    opener = urllib.request.build_opener(_Stay)
    with opener.open(urllib.request.Request(address, headers=headers), timeout=_SECONDS) as answer:
        return json.loads(answer.read(2**24))


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

"""Parts of the providers' SDKs that they keep to themselves and for which they have no public counterpart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def events_of(client: Any, chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of the events in the bytes of an answer, for a client of the package openai or anthropic.

    ``_make_sse_decoder``: the public streams give what their types know of an event. That of Bedrock reads the event
    streams of AWS.
    """
    for event in client._make_sse_decoder().iter_bytes(iter(chunks)):
        yield event.data


def post_to_gemini(
    models: Any, model: str, method: str, body: dict[str, Any], http_options: Any
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Send a request of the package google-genai, and yield the JSON and the headers of each chunk of its answer.

    ``_api_client``: the public streams give what their types know of a chunk, and so do requests.
    """
    client = models._api_client
    path = f"{model if '/' in model else f'models/{model}'}:{method}"
    if method.startswith("stream"):
        answers = client.request_streamed("post", f"{path}?alt=sse", body, http_options)
    else:
        answers = iter([client.request("post", path, body, http_options)])
    for answer in answers:
        yield answer.body or "", {name.lower(): value for name, value in (answer.headers or {}).items()}

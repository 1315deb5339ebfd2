"""The shell agent's tool ``view_image``, for models that see: an image file of the container, as it is."""

from __future__ import annotations

import base64
import posixpath
from typing import Any

from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.environments import read_environment_file
from pytest_evocode.errors import UnreadableFile
from pytest_evocode.llm.protocol import RequestedCall, ShownImage, Tool

#: Bytes of an image: providers take 5 MB of base64 text.
LARGEST_IMAGE = 3_750_000
VIEW_IMAGE = Tool(
    name="view_image",
    description="Look at an image file of the workspace: PNG, JPEG, GIF or WebP.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string", "description": "The file."}},
        "required": ["path"],
        "additionalProperties": False,
    },
)


def view_image(call: RequestedCall, context: RoundContext) -> tuple[str, tuple[ShownImage, ...]]:
    """Return what the model is told of an image file, and the image, where there is one that it can see."""
    path = (call.arguments or {}).get("path")
    if not isinstance(path, str) or not path or "\0" in path:
        return "The argument 'path' has to be the path of a file.", ()
    whole = posixpath.join(context.environment.workdir, path)
    try:
        data = read_environment_file(context.environment, whole, LARGEST_IMAGE)
    except UnreadableFile as error:
        return f"[{path} cannot be shown: {error}; an image may have {LARGEST_IMAGE} bytes]", ()
    if data is None:
        return f"[{path}: there is no such file]", ()
    media_type = media_type_of(data)
    if media_type is None:
        return f"[{path} is no PNG, JPEG, GIF or WebP image]", ()
    return f"[{path}: {media_type}, {len(data)} bytes]", (ShownImage(media_type, base64.b64encode(data).decode()),)


def media_type_of(data: bytes) -> str | None:
    r"""Return the media type of an image by its first bytes; None for another file.

    >>> media_type_of(b"\x89PNG\r\n\x1a\n..."), media_type_of(b"RIFF....WAVE")
    ('image/png', None)
    """
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    signs = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF87a": "gif", b"GIF89a": "gif"}
    return next((f"image/{kind}" for sign, kind in signs.items() if data.startswith(sign)), None)


def taken_image(data: str) -> ShownImage | None:
    """Return an image that a server's tool gave as base64; None for one that no model would take."""
    try:
        found = base64.b64decode(data, validate=True)
    except ValueError:
        return None
    kind = media_type_of(found)
    return ShownImage(kind, data) if kind is not None and len(found) <= LARGEST_IMAGE else None


def recorded(shown: str, images: tuple[ShownImage, ...], context: RoundContext) -> Any:
    """Return a result as the trajectory has it: text, or where there are images a list of parts with their files."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": shown}]
    for image in images:
        path = context.recorder.keep_image(image.media_type, base64.b64decode(image.data))
        if path is not None:
            parts.append({"type": "image", "source": {"media_type": image.media_type, "path": path}})
    return parts if len(parts) > 1 else shown

"""Private parts of the docker SDK that there is no public way around.

Seen to work with docker 7.1.0 and 7.2.0.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Any


def response_of(stream: Any) -> Any:
    """Return the HTTP response that a stream of the SDK came with.

    ``exec_start(socket=True)`` and ``attach_socket`` return the stream alone. The connection goes back to nobody's pool
    unless the response is closed too, and Python warns of an unclosed socket.
    """
    return stream._response


def socket_of(stream: Any) -> socket.socket:
    """Return the socket below a stream of the SDK, which has neither ``settimeout`` nor ``shutdown`` itself.

    With TLS the stream is that socket.
    """
    found: socket.socket = getattr(stream, "_sock", stream)
    return found


def read_buffered(response: Any, connection: socket.socket) -> bytes:
    """Return the first bytes of output that came in one piece with the response's header.

    They are in the buffer the header was read through, where the SDK's own readers do not look.
    """
    with contextlib.suppress(AttributeError):
        buffered = response.raw._fp.fp
        connection.settimeout(0)
        return bytes(buffered.peek())
    return b""

"""What the host and the session of a native suite tell each other: the plan of a session and its report, in JSON.

Through the door both pass in frames. A frame is a header of twelve bytes (request number, length of the head, length of
the body), a head in JSON and a body of bytes. Lengths are checked before anything is kept, so that no peer can make the
other one hold more than the limits.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple, TypedDict

VERSION = 1
"""Told in the first request; host and session of other versions do not talk to each other."""
HEAD_LIMIT = 4 * 2**20
"""Bytes of a head."""
BODY_LIMIT = 64 * 2**20
"""Bytes of a body."""

_HEADER = struct.Struct(">III")


class FrameError(Exception):
    """What came is no frame, or one that is too large."""


class Frame(NamedTuple):
    """A request, or the reply with the same number."""

    number: int
    head: dict[str, Any]
    body: bytes = b""


def encode(frame: Frame) -> bytes:
    """Return a frame as bytes; raises FrameError for one that is too large."""
    head = json.dumps(frame.head, separators=(",", ":")).encode()
    if len(head) > HEAD_LIMIT or len(frame.body) > BODY_LIMIT:
        raise FrameError(f"a frame with {len(head)} and {len(frame.body)} bytes is above the limit")
    return b"".join((_HEADER.pack(frame.number, len(head), len(frame.body)), head, frame.body))


class FrameReader:
    """Takes bytes as they come and gives frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are complete with ``data``; raises FrameError, after which nothing more can be read."""
        buffer = self._buffer
        buffer += data
        while len(buffer) >= _HEADER.size:
            number, head, body = _HEADER.unpack_from(buffer)
            if head > HEAD_LIMIT or body > BODY_LIMIT:
                raise FrameError(f"a frame with {head} and {body} bytes is above the limit")
            end = _HEADER.size + head + body
            if len(buffer) < end:
                return
            text, rest = buffer[_HEADER.size : _HEADER.size + head], bytes(buffer[_HEADER.size + head : end])
            del buffer[:end]
            yield Frame(number, _parse(text), rest)


def _parse(text: bytearray) -> dict[str, Any]:
    try:
        head = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a frame's head is no JSON: {error}") from None
    if not isinstance(head, dict):
        raise FrameError("a frame's head is no JSON object")
    return head


class Plan(TypedDict):
    """What a session is to run, and how."""

    debugging: bool
    """Whether a person debugs the cases, who may take as long as they like."""
    apart: bool
    """Whether the program under test is in another environment."""
    workdir: str
    """The workspace's working directory."""
    user: str | int
    """Whom programs run as in the workspace, for tests to know; empty for the user of the image."""
    variables: list[str]
    """The environment variables that a session apart keeps beside those of every system."""
    rounds: list[str]
    """The rounds up to the one that is verified, in order."""
    all_rounds: list[str]
    shared: str
    """The round that tests common to all rounds count as."""
    introduced: dict[str, str]
    """The round that introduced each requirement."""
    case_timeout: float
    """Seconds that a case has, before the multiplier."""
    grace: float
    """Seconds after its limit in which a case can still end by an exception."""
    timeout_multiplier: float
    only: str
    """A round whose tests alone are run; empty for all."""
    backwards: bool
    """Whether the last case comes first."""
    until_failure: bool
    """Whether the session ends with the first case that fails."""
    retired: str | None
    """A round whose retired tests are run in place of the suite."""
    cases: list[str]
    """The only cases that are run; empty for all."""
    patterns: list[str]
    """With wildcards, what the cases that are run are called; empty for all."""


class SuiteError(TypedDict):
    """Something that went wrong beside the tests' own failures."""

    id: str
    """The case, or the module or directory; empty for the whole session."""
    when: str
    """collect, setup, fixture (there is none of this name), call, teardown, timeout, skip, changed, hang or stop."""
    where: str
    """File and line, relative to ``/tests``; empty where that is not known."""
    what: str


class SessionNotes(TypedDict):
    """What a session tells besides its tests."""

    problems: list[str]
    """What is wrong with the suite, whatever the workspace is like."""
    errors: list[SuiteError]
    unlike: list[str]
    """The cases of the suite, where none of them is called as :attr:`Plan.patterns` say."""


class SuiteReport(TypedDict):
    """The report of a session."""

    tests: list[dict[str, Any]]
    """As pytest-json-report has them."""
    evocode: SessionNotes

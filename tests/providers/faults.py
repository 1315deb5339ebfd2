"""What goes wrong with single requests at a provider, in one form for all APIs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.providers.exchanges import Kind

HTML_502 = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><h1>502 Bad Gateway</h1></body>\r\n</html>"
HTML_403 = "<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>Attention Required!</body></html>"


@dataclass(frozen=True, slots=True)
class Refuse:
    """An error in the provider's own form."""

    kind: Kind
    retry_after: float | None = None
    """Seconds."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """An answer in no provider's form, as proxies and gateways send them."""

    status: int
    body: str
    content_type: str = "text/html"


@dataclass(frozen=True, slots=True)
class HangUp:
    """The connection ends before any answer."""

    reset: bool = False
    """With a reset, where it otherwise ends as after an answer."""
    down: float = 0.0
    """Seconds in which all new connections are refused."""


@dataclass(frozen=True, slots=True)
class Silent:
    """Nothing more comes, and the connection stays, until the client leaves or the server ends."""

    after: int | None = None
    """Events that are sent before it; None for silence before the headers. Without a stream it is half of the body."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The stream breaks off; without a stream, the body does in its middle."""

    after: int = 2
    """Events that are sent before it."""
    clean: bool = False
    """As HTTP it ends well, but the API's last events are missing. Without a stream it breaks off all the same."""


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """An error in the stream; without a stream it is the answer."""

    after: int = 2
    kind: Kind = "overloaded"


@dataclass(frozen=True, slots=True)
class Misreport:
    """The usage in the reply is not what is billed."""

    how: Literal["negative", "missing"]


@dataclass(frozen=True, slots=True)
class CutOff:
    """The reply ends at the limit of tokens, in a text before any call or, ``in_call``, in a call's arguments."""

    in_call: bool = False


@dataclass(frozen=True, slots=True)
class Rename:
    """The model calls tools by another name."""

    name: str


@dataclass(frozen=True, slots=True)
class OddId:
    """All calls of the reply have one id."""

    id: str


@dataclass(frozen=True, slots=True)
class Decline:
    """The model refuses."""


@dataclass(frozen=True, slots=True)
class Drip:
    """The reply comes byte by byte, over so many seconds."""

    seconds: float


Fault = (
    Refuse
    | Page
    | HangUp
    | Silent
    | Broken
    | ErrorEvent
    | Misreport
    | CutOff
    | Rename
    | OddId
    | Decline
    | Drip
)  # fmt: skip

#: By name, one of each; in an order from before the model to after it.
FAULTS: dict[str, Fault] = {
    "429 with retry-after": Refuse("rate_limit", retry_after=1),
    "429 without retry-after": Refuse("rate_limit"),
    "overloaded": Refuse("overloaded"),
    "500": Refuse("server"),
    "502 with HTML": Page(502, HTML_502),
    "403 with HTML": Page(403, HTML_403),
    "404 once": Refuse("not_found"),
    "400 once": Refuse("invalid", message="Invalid request: please try again."),
    "context too long": Refuse("context"),
    "reset before headers": HangUp(reset=True),
    "connections refused": HangUp(reset=True, down=0.3),
    "closed without an answer": HangUp(),
    "silent before headers": Silent(),
    "silent in mid-stream": Silent(after=2),
    "broken stream": Broken(),
    "stream without its end": Broken(after=3, clean=True),
    "error event": ErrorEvent(),
    "200 that is no JSON": Page(200, HTML_502),
    "negative usage": Misreport("negative"),
    "usage missing": Misreport("missing"),
    "cut off in a text": CutOff(),
    "cut off in a call": CutOff(in_call=True),
    "odd tool name": Rename("functions.bash:0"),
    "tool name of 200 characters": Rename("bash" * 50),
    "odd call id": OddId("functions.bash:0"),
    "call id of 200 characters": OddId("call" * 50),
    "empty call id": OddId(""),
    "refusal": Decline(),
    "slow drip": Drip(0.5),
}

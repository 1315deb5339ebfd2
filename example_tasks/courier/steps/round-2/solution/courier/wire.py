"""Requests as they come in: lines, their bodies, and what is wrong with them."""

import re

LONGEST_LINE = 1024
LONGEST_BODY = 65536
QUEUE = re.compile(r"[a-z0-9-]{1,64}")
NUMBER = re.compile(r"[0-9]{1,9}")


class Refused(Exception):
    """A request that is answered with ERR and a code; `final` where the connection cannot be used on."""

    def __init__(self, code, final=False):
        super().__init__(code)
        self.code = code
        self.final = final


class Request:
    """A request; what it does not say is as here."""

    queue = ""
    id = 0
    length = 0
    body = b""
    wait = None

    def __init__(self, command):
        self.command = command


# The words behind each command.
FORMS = {
    "PUT": ("queue", "length"),
    "TAKE": ("queue",),
    "ACK": ("id",),
    "NACK": ("id",),
    "QUEUES": (),
    "LEN": ("queue",),
    "QUIT": (),
}
# What may follow them: a word that names an option, and its value from this range.
OPTIONS = {
    "TAKE": {"WAIT": range(3601)},
}


def value(name, word):
    """Return what a word stands for; refuse one that is no name or number."""
    if not (QUEUE if name == "queue" else NUMBER).fullmatch(word):
        raise Refused("bad-request")
    return word if name == "queue" else int(word)


def parse(line):
    words = line.split(" ")
    command, words = words[0], words[1:]
    if command == "":
        raise Refused("bad-request")
    form = FORMS.get(command)
    if form is None:
        raise Refused("unknown-command")
    if len(words) < len(form) or len(words) % 2 != len(form) % 2:
        raise Refused("bad-request")
    request = Request(command)
    for name, word in zip(form, words, strict=False):
        setattr(request, name, value(name, word))
    parse_options(request, words[len(form) :])
    if request.length > LONGEST_BODY:
        raise Refused("too-large")
    return request


def parse_options(request, words):
    known = dict(OPTIONS.get(request.command, {}))
    for option, word in zip(words[::2], words[1::2], strict=True):
        allowed = known.pop(option, None)  # None, too, where it comes a second time.
        if allowed is None or value(option, word) not in allowed:
            raise Refused("bad-request")
        setattr(request, option.lower(), int(word))


class Inbox:
    """What a connection has sent and nobody has dealt with yet."""

    def __init__(self):
        self._bytes = bytearray()
        self._request = None  # Or what is wrong with it, while its body is on the way.
        self._missing = None  # Bytes of the body that are not thrown away yet; None where there is no body.

    def feed(self, data):
        self._bytes += data

    def next(self):
        """Return the next whole request, or None; raises Refused."""
        if self._request is None and not self._begin():
            return None
        if self._missing is not None and not self._finish_body():
            return None
        request, self._request, self._missing = self._request, None, None
        if isinstance(request, Refused):
            raise request
        return request

    def _begin(self):
        end = self._bytes.find(b"\n", 0, LONGEST_LINE + 1)
        if end < 0:
            if len(self._bytes) > LONGEST_LINE:
                raise Refused("bad-request", final=True)
            return False
        line = self._bytes[:end].decode("latin-1")
        del self._bytes[: end + 1]
        try:
            self._request = parse(line)
        except Refused as refused:
            self._request = refused
        words = line.split(" ")
        if words[0] == "PUT":
            if len(words) < 3 or not NUMBER.fullmatch(words[2]):
                raise Refused("bad-request", final=True)
            self._missing = int(words[2])
        return True

    def _finish_body(self):
        if isinstance(self._request, Refused):
            thrown = min(self._missing, len(self._bytes))
            del self._bytes[:thrown]
            self._missing -= thrown
        if len(self._bytes) <= self._missing:
            return False
        if self._bytes[self._missing] != ord("\n"):
            raise Refused("bad-request", final=True)
        if not isinstance(self._request, Refused):
            self._request.body = bytes(self._bytes[: self._missing])
        del self._bytes[: self._missing + 1]
        return True

"""Requests as they come in: lines, their bodies, and what is wrong with them."""

import re

LONGEST_LINE = 1024
LONGEST_BODY = 65536
QUEUE = re.compile(r"[a-z0-9-]{1,64}")
ANY_QUEUE = re.compile(QUEUE.pattern + r"(\.dead)?")
KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
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
    key = ""
    prio = 5
    ttl = 0
    attempt = 0
    seconds = 0
    wait = 0
    lease = 60
    number = 0

    def __init__(self, command):
        self.command = command
        self.requests = []  # Those of a batch, or what is wrong with them.


LEASE = range(1, 86401)
# The words behind each command.
FORMS = {
    "PUT": ("queue", "length"),
    "TAKE": ("queue",),
    "ACK": ("id", "attempt"),
    "NACK": ("id", "attempt"),
    "TOUCH": ("id", "attempt", "seconds"),
    "PURGE": ("queue",),
    "BATCH": ("number",),
    "QUEUES": (),
    "LEN": ("queue",),
    "QUIT": (),
}
# What may follow them: a word that names an option, and its value, from this range or of this form.
OPTIONS = {
    "PUT": {"KEY": KEY, "PRIO": range(10), "TTL": range(1, 31536001)},
    "TAKE": {"WAIT": range(3601), "LEASE": LEASE},
}


def value(name, word):
    """Return what a word stands for; refuse one that is no name or number."""
    if not (ANY_QUEUE if name == "queue" else NUMBER).fullmatch(word):
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
    if command == "PUT" and not QUEUE.fullmatch(request.queue):
        raise Refused("bad-request")
    parse_options(request, words[len(form) :])
    if command == "BATCH" and request.number not in range(1, 101):
        raise Refused("bad-request")
    if command == "TOUCH" and request.seconds not in LEASE:
        raise Refused("bad-request")
    if request.length > LONGEST_BODY:
        raise Refused("too-large")
    return request


def parse_options(request, words):
    known = dict(OPTIONS.get(request.command, {}))
    for option, word in zip(words[::2], words[1::2], strict=True):
        allowed = known.pop(option, None)  # None, too, where it comes a second time.
        if isinstance(allowed, range) and value(option, word) in allowed:
            setattr(request, option.lower(), int(word))
        elif allowed is KEY and KEY.fullmatch(word):
            request.key = word
        else:
            raise Refused("bad-request")


class Inbox:
    """What a connection has sent and nobody has dealt with yet."""

    def __init__(self):
        self._bytes = bytearray()
        self._request = None  # Or what is wrong with it, while its body is on the way.
        self._missing = None  # Bytes of the body that are not thrown away yet; None where there is no body.
        self._batch = None

    def feed(self, data):
        self._bytes += data

    def next(self):
        """Return the next whole request, or None; raises Refused."""
        if self._batch is None:
            request = self._next()
            if request is None or request.command != "BATCH":
                return request
            self._batch = request
        while len(self._batch.requests) < self._batch.number:
            try:
                request = self._next()
                if request is None:
                    return None
                if request.command not in ("PUT", "ACK", "NACK"):
                    raise Refused("bad-request")
            except Refused as refused:
                if refused.final:
                    raise
                request = refused
            self._batch.requests.append(request)
        batch, self._batch = self._batch, None
        return batch

    def _next(self):
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

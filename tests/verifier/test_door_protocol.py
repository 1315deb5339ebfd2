"""The door's protocol, fuzzed at both ends: what comes is an answer or a documented error, and nobody hangs."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytest_evocode.environments.programs import FileStatus, ProgramResult, TakeOutput
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.verifier.door import Door
from pytest_evocode.verifier.in_container import door_client, protocol
from pytest_evocode.verifier.in_container.door_client import DoorClient, DoorError
from pytest_evocode.verifier.in_container.protocol import VERSION, Frame, FrameError, FrameReader, Plan, encode

ANY_PLAN: Plan = {
    "debugging": False,
    "apart": True,
    "workdir": "/app",
    "user": "",
    "rounds": ["round-1"],
    "all_rounds": ["round-1"],
    "shared": "round-1",
    "introduced": {},
    "case_timeout": 60.0,
    "grace": 5.0,
    "timeout_multiplier": 1.0,
    "only": "",
    "backwards": False,
    "until_failure": False,
    "variables": [],
    "retired": None,
    "cases": [],
    "patterns": [],
}
#: Long after an answer has come, on whatever machine.
HANGS = 60.0
#: So small that what is above them is quickly made.
LIMITS = {"HEAD_LIMIT": 300, "BODY_LIMIT": 200}
_HEADER = struct.Struct(">III")

fuzzed = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
texts = st.text(max_size=20) | st.sampled_from(
    ["/app", "/", "..", "/a/../b", "\0", "\ud800", "\udcff", "nobody", "true"]
)
leaves = st.sampled_from([None, True, -1, 0, 1, 2**70, 0.5, float("nan"), float("inf")]) | st.integers() | texts
nested = st.lists(leaves, max_size=3) | st.dictionaries(texts, leaves, max_size=3)
values = leaves | nested | st.lists(nested, max_size=2)
numbers = st.integers(0, 2**32 - 1)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Bytes of which parts are frames: whole, cut off, with lengths that are not theirs, or no JSON."""
    parts = []
    for _ in range(draw(st.integers(0, 4))):
        head = draw(st.binary(max_size=30) | st.dictionaries(st.text(max_size=5), values, max_size=3).map(_json))
        body = draw(st.binary(max_size=30))
        lengths = draw(st.just((len(head), len(body))) | st.tuples(numbers, numbers))
        frame = _HEADER.pack(draw(numbers), *lengths) + head + body
        parts.append(frame[: draw(st.just(len(frame)) | st.integers(0, len(frame)))])
    return b"".join(parts)


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _read(data: bytes, sizes: list[int]) -> tuple[list[Frame], bool]:
    """Read a stream in pieces: the frames before the first that is none, and whether there was one."""
    reader, found = FrameReader(), []
    try:
        while data:
            size = sizes.pop() if sizes else len(data)
            piece, data = data[:size], data[size:]
            for frame in reader.feed(piece):
                found.append(frame)
    except FrameError:
        return found, True
    return found, False


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in LIMITS.items():
        monkeypatch.setattr(protocol, name, limit)


@pytest.mark.usefixtures("small_limits")
@fuzzed
@given(streams() | st.binary(max_size=100), st.lists(st.integers(1, 40), max_size=20))
@example(_HEADER.pack(1, 2**32 - 1, 0), [])
@example(_HEADER.pack(1, 2, 2**32 - 1) + b"{}", [])
@example(_HEADER.pack(1, 250, 0) + b"[" * 250, [])
@example(_HEADER.pack(1, 200, 0) + b'{"a":' + b"9" * 195, [])
def test_bytes_are_frames_or_an_error_however_they_are_cut(data: bytes, sizes: list[int]) -> None:
    found, broken = _read(data, sizes)
    assert (found, broken) == _read(data, [])
    assert all(len(frame.body) <= LIMITS["BODY_LIMIT"] for frame in found)
    assert sum(_HEADER.size + len(frame.body) for frame in found) <= len(data)


@fuzzed
@given(
    st.lists(st.tuples(numbers, st.dictionaries(st.text(), values, max_size=3), st.binary(max_size=50)), max_size=4),
    st.lists(st.integers(1, 60), max_size=20),
)
def test_what_is_sent_arrives(sent: list[tuple[int, dict[str, Any], bytes]], sizes: list[int]) -> None:
    data = b"".join(encode(Frame(*frame)) for frame in sent)
    found, broken = _read(data, sizes)
    # NaN is not equal to itself, but its JSON is.
    assert [(frame.number, _json(frame.head), frame.body) for frame in found] == [(n, _json(h), b) for n, h, b in sent]
    assert not broken


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("frame", [Frame(1, {"a": "x" * 300}), Frame(1, {}, b"x" * 201)], ids=["head", "body"])
def test_what_is_too_large_is_not_sent(frame: Frame) -> None:
    with pytest.raises(FrameError, match="above the limit"):
        encode(frame)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("lengths", [(301, 0), (0, 201), (2**32 - 1, 2**32 - 1)])
def test_of_what_is_too_large_nothing_is_kept(lengths: tuple[int, int]) -> None:
    reader = FrameReader()
    with pytest.raises(FrameError, match="above the limit"):
        list(reader.feed(_HEADER.pack(1, *lengths)))


# The host's end.


class Fork:
    """A workspace whose files and programs are whatever a test says; it takes only what an engine could take."""

    workdir = "/app"

    def __init__(self, contents: bytes, result: object) -> None:
        self._contents = contents
        self._result = result

    def _answer(self) -> Any:
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    def run_program(self, command: Any, **more: Any) -> ProgramResult:
        for text in (*command.argv, *command.env, *command.env.values(), command.cwd):
            os.fsencode(text)
        assert all(name and "=" not in name for name in command.env)
        self._answer()
        return ProgramResult(0, self._contents[: more["limit"]], b"", (0, 0), 0.0)

    def open_program(self, command: Any, take: TakeOutput) -> Any:
        for text in (*command.argv, command.cwd):
            os.fsencode(text)
        self._answer()
        take(1, self._contents)
        return self

    def end_programs(self, alongside: Any = ()) -> None:
        self._answer()

    def connect(self, port: int, timeout: float) -> socket.socket:
        self._answer()
        ours, theirs = socket.socketpair()
        theirs.sendall(self._contents)
        theirs.close()
        return ours

    def write_files(self, directory: str, files: Mapping[str, bytes], **more: Any) -> None:
        os.fsencode(directory)
        for name in files:
            assert not {b"", b".", b".."} & {*os.fsencode(name).split(b"/")}
        self._answer()

    def file_status(self, path: str) -> FileStatus | None:
        os.fsencode(path)
        self._answer()
        return FileStatus("file", 1, 0o644, 0.0)

    def list_directory(self, path: str) -> list[str]:
        os.fsencode(path)
        self._answer()
        return [os.fsdecode(self._contents)] * 3

    def read_files(self, limits: Mapping[str, int]) -> Mapping[str, bytes]:
        self._answer()
        return {os.fsdecode(os.fsencode(path)): self._contents for path in limits}

    def remove(self, paths: list[str]) -> None:
        self._answer()

    # What it opens.

    def write(self, data: bytes, timeout: float | None = None) -> None:
        self._answer()

    def close_input(self) -> None:
        self._answer()

    def signal(self, number: int) -> None:
        assert 0 <= number <= 64

    def wait(self, timeout: float | None = None) -> int | None:
        return 0


_RIGHT: dict[str, object] = {
    "command": "true",
    "env": {},
    "cwd": "/app",
    "timeout": 0,
    "limit": 10,
    "program": 1,
    "stream": 1,
    "start": 0,
    "seen": -1,
    "programs": [1],
    "port": 80,
    "connection": 1,
    "directory": "/app",
    "sizes": {},
    "path": "/app/x",
    "number": 15,
    "version": VERSION,
    "id": "a",
    "where": "b",
}
_PROGRAM = ("command", "env", "cwd", "user")
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "hello": ("version",),
    "case": ("id", "where"),
    "report": (),
    "run": (*_PROGRAM, "timeout", "limit"),
    "open": _PROGRAM,
    "write": ("program", "timeout"),
    "close_input": ("program",),
    "signal": ("program", "number"),
    "wait": ("program", "timeout"),
    "read": ("program", "stream", "start", "seen", "timeout"),
    "end": ("programs",),
    "connect": ("port", "timeout"),
    "send": ("connection",),
    "receive": ("connection", "timeout"),
    "shut": ("connection",),
    "close": ("connection",),
    "write_files": ("directory", "sizes", "user"),
    "mkdir": ("path", "user"),
    "read_file": ("path", "limit"),
    "status": ("path",),
    "list": ("path",),
    "remove": ("path",),
}


@st.composite
def requests(draw: st.DrawFn) -> Frame:
    """A request, of which an argument may be missing or not be what it has to be, or one that there is not."""
    number: int = draw(numbers)
    if draw(st.integers(0, 9)) == 0:
        return Frame(number, {"call": draw(values)})
    call = draw(st.sampled_from([*ARGUMENTS]))
    head = {name: _RIGHT[name] for name in ARGUMENTS[call] if name in _RIGHT}
    if draw(st.integers(0, 2)) and head:
        name = draw(st.sampled_from(ARGUMENTS[call]))
        head[name] = draw(values)
        if draw(st.integers(0, 9)) == 0:
            del head[name]
    return Frame(number, {"call": call, **head}, draw(st.binary(max_size=20)))


class Session:
    """What a suite's session sees of the door."""

    def __init__(self, fork: Fork, plan: Plan = ANY_PLAN) -> None:
        self.door = Door(fork, None, {}, plan)  # type: ignore[arg-type]
        self._reader = FrameReader()
        self._arrived = threading.Condition()
        self.replies: list[Frame] = []
        self.door.open_to(self._take)

    def _take(self, data: bytes) -> None:
        with self._arrived:
            self.replies += self._reader.feed(data)
            self._arrived.notify_all()

    def wait_for(self, count: int) -> list[Frame]:
        """Return the first replies, which have to come."""
        deadline = time.monotonic() + HANGS
        with self._arrived:
            while len(self.replies) < count and time.monotonic() < deadline:
                assert self.door.fault is None or isinstance(self.door.fault, FrameError), repr(self.door.fault)
                self._arrived.wait(0.1)
            assert len(self.replies) >= count
            return self.replies


@contextlib.contextmanager
def session(contents: bytes = b"", result: object = None) -> Iterator[Session]:
    made = Session(Fork(contents, result))
    try:
        yield made
    finally:
        made.door.close()


_KNOWN = {"request", "missing", "exists", "directory", "timeout", "refused", "closed", "large", "door"}
_RAISED = [
    None,
    NotADirectoryError("n"),
    TimeoutError(),
    ConnectionRefusedError(),
    BrokenPipeError(),
    OverflowError("o"),
]


def test_every_call_is_fuzzed() -> None:
    assert ARGUMENTS.keys() == {name.removeprefix("_call_") for name in vars(Door) if name.startswith("_call_")}


@settings(fuzzed, max_examples=300)
@given(st.lists(requests(), max_size=8), st.binary(max_size=50), st.sampled_from(_RAISED))
def test_each_request_has_one_answer_and_none_breaks_the_door(
    asked: list[Frame], contents: bytes, raised: Exception | None
) -> None:
    with session(contents, raised) as suite:
        for request in asked:
            suite.door.take(encode(request))
        replies = suite.wait_for(len(asked))
        assert sorted(reply.number for reply in replies) == sorted(request.number for request in asked)
        assert {reply.head["error"] for reply in replies if "error" in reply.head} <= _KNOWN
        assert suite.door.fault is None
        # It goes on as if nothing had been.
        suite.door.take(encode(Frame(7, {"call": "hello", "version": VERSION})))
        assert suite.wait_for(len(asked) + 1)[-1].head == {"plan": ANY_PLAN}


BESIDE: Plan = {**ANY_PLAN, "apart": False}


@pytest.mark.parametrize("call", [*ARGUMENTS])
def test_a_session_beside_the_program_may_tell_of_itself_and_ask_for_nothing_else(call: str) -> None:
    suite = Session(Fork(b"", EnvironmentFault("it was asked")), BESIDE)
    head = {name: _RIGHT[name] for name in ARGUMENTS[call] if name in _RIGHT}
    suite.door.take(encode(Frame(1, {"call": call, **head})))
    (reply,) = suite.wait_for(1)
    assert reply.head.get("error") == (None if call in ("hello", "case", "report") else "request")
    assert (suite.door.fault, suite.door.calls) == (None, 0)
    suite.door.close()


@pytest.mark.parametrize(("plan", "breaks"), [(BESIDE, True), (ANY_PLAN, False)], ids=["beside", "apart"])
def test_what_is_asked_beside_the_program_without_waiting_is_not_kept(plan: Plan, breaks: bool) -> None:
    door = Door(Fork(b"", None), None, {}, plan)  # type: ignore[arg-type]
    reading = threading.Event()

    def send(data: bytes) -> None:
        reading.wait(HANGS)

    door.open_to(send)  # Nobody reads the answers.
    for number in range(20):
        door.take(encode(Frame(number, {"call": "case", "id": "a", "where": "b"})))
    reading.set()
    door.close()
    assert door.broken.is_set() == isinstance(door.fault, FrameError) == breaks


class MovingFork(Fork):
    """A workspace in which nothing can be removed, because a program moves it about."""

    def __init__(self, status: FileStatus | None) -> None:
        super().__init__(b"", None)
        self._status = status

    def file_status(self, path: str) -> FileStatus | None:
        return self._status

    def remove(self, paths: list[str]) -> None:
        raise EnvironmentFault(f"could not be removed: {paths[0]}")


@pytest.mark.parametrize(
    ("status", "answer"),
    [(FileStatus("file", 1, 0o644, 0.0), {"error": "system", "message": "could not be removed: /app/x"}), (None, {})],
    ids=["put back", "away"],
)
def test_what_is_moved_while_it_is_removed_is_no_fault_of_the_engines(
    status: FileStatus | None, answer: dict[str, str]
) -> None:
    suite = Session(MovingFork(status))
    suite.door.take(encode(Frame(1, {"call": "remove", "path": "/app/x"})))
    assert suite.wait_for(1)[0].head == answer
    assert suite.door.fault is None
    suite.door.close()


@fuzzed
@given(streams())
@example(_HEADER.pack(1, 2**32 - 1, 2**32 - 1))
def test_bytes_that_are_no_request_end_the_suite_and_nothing_else(data: bytes) -> None:
    found, broken = _read(data, [])
    with session() as suite:
        suite.door.take(data)
        assert suite.door.broken.is_set() == broken
        suite.wait_for(len(found))
        if broken:
            suite.door.take(encode(Frame(1, {"call": "hello"})))  # What comes later is not looked at.
        assert len(suite.replies) == len(found)
    assert isinstance(suite.door.fault, FrameError) == broken


def test_another_version_is_refused() -> None:
    with session() as suite:
        suite.door.take(encode(Frame(1, {"call": "hello", "version": VERSION + 1})))
        (reply,) = suite.wait_for(1)
    assert reply.head["error"] == "door"
    assert "another version" in reply.head["message"]


def test_an_answer_that_is_too_large_is_an_error_of_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_LIMIT", 200)
    with session(b"n" * 100) as suite:
        suite.door.take(encode(Frame(3, {"call": "list", "path": "/app"})))
        (reply,) = suite.wait_for(1)
    assert (reply.number, reply.head["error"]) == (3, "large")


# The suite's end.


class Host:
    """What a suite's client talks to: pipes, with whatever a test lets come through."""

    def __init__(self) -> None:
        self._mine, theirs = os.pipe()
        replies, self.replies = os.pipe()
        self.client = DoorClient(replies, theirs)
        self._reader = FrameReader()

    def request(self) -> Frame:
        """Return the next request."""
        while True:
            for frame in self._reader.feed(os.read(self._mine, 2**16)):
                return frame

    def say(self, data: bytes) -> None:
        """Write to the client, and close the door."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self.replies, data)
        os.close(self.replies)

    def close(self) -> None:
        """Close what is left."""
        os.close(self._mine)


@contextlib.contextmanager
def asking(**arguments: Any) -> Iterator[tuple[Host, list[object], threading.Thread]]:
    """A call that waits for its answer, and what came of it."""
    host = Host()
    came: list[object] = []

    def ask() -> None:
        try:
            came.append(host.client.ask("status", **arguments))
        except Exception as error:
            came.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    host.request()
    try:
        yield host, came, thread
    finally:
        thread.join(HANGS)
        host.close()


_DOCUMENTED = (DoorError, FrameError, OSError, ValueError, OverflowError, Frame)


@fuzzed
@given(streams() | st.binary(max_size=100), st.booleans())
def test_whatever_the_host_says_a_call_ends(data: bytes, answered: bool) -> None:
    with asking() as (host, came, thread):
        host.say(data + (encode(Frame(1, {"status": None})) if answered else b""))
        thread.join(HANGS)
        assert not thread.is_alive()
    (one,) = came
    assert isinstance(one, _DOCUMENTED)
    # The host closed the door, and that is known by the time that a call has failed for it.
    with pytest.raises(DoorError):
        host.client.ask("status")


@fuzzed
@given(values, values)
def test_any_error_of_the_host_is_one_that_a_test_can_name(kind: Any, message: Any) -> None:
    with asking() as (host, came, _):
        host.say(encode(Frame(1, {"error": kind, "message": message})))
    (one,) = came
    assert isinstance(one, _DOCUMENTED)
    known = isinstance(kind, str) and kind in door_client._ERRORS
    assert isinstance(one, door_client._ERRORS[kind] if known else (Frame if kind is None else DoorError))


def test_answers_that_nobody_waits_for_are_dropped() -> None:
    """Replies come in any order; late ones, repeated ones and those to requests that never were are nobody's."""
    with asking() as (host, came, _):
        others = [Frame(number, {"status": "wrong"}) for number in (0, 2, 99, 2**32 - 1)]
        right = Frame(1, {"status": "right"})
        host.say(b"".join(map(encode, [*others, right, Frame(1, {"status": "repeated"})])))
    (one,) = came
    assert one == right

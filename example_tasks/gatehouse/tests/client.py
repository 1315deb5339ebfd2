"""The service as a test handles it, and the people who use it."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import quote

T = TypeVar("T")

REPLY = 30
"""Seconds in which an answer has come: many times what any machine needs."""
PASSWORD = "Korridor 7b"
WORD = "open sesame"
"""What the desk has in GATEHOUSE_WORD, which nobody gets in by."""
KEEP_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""Variables with which no program is compiled anew; the image has it otherwise, for the sake of the agent's files."""

PEOPLE = [("otto", "Otto Ahl", "staff"), ("anna", "Anna Berg", "member"), ("bert", "Bert Cohn", "member")]

# What keeps everybody from writing into a database until it is killed; whoever wants to write then waits.
HOLD = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], timeout=20)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(600)
"""

# The database as it was before the first round.
OLD_SCHEMA = """
CREATE TABLE users (name TEXT PRIMARY KEY, full_name TEXT, role TEXT, password TEXT);
CREATE TABLE sessions (id TEXT PRIMARY KEY, user TEXT);
CREATE TABLE resets (code TEXT PRIMARY KEY, user TEXT, asked INTEGER);
CREATE TABLE things (id INTEGER PRIMARY KEY, kind TEXT, name TEXT, place TEXT);
CREATE TABLE bookings (
    id INTEGER PRIMARY KEY, thing INTEGER, user TEXT, start TEXT, finish TEXT, note TEXT
);
"""


class Reply:
    """An answer."""

    def __init__(self, status: int, headers: http.client.HTTPMessage, body: bytes):
        self.status = status
        self.headers = headers
        self.body = body

    def __repr__(self) -> str:
        return f"<{self.status} {self.body[:300]!r}>"

    @property
    def value(self):
        """What the JSON says."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise AssertionError(f"no JSON: {self!r}") from None

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def session(self) -> str:
        """The session that the cookie has."""
        found = [re.match(r"session=([^;]*)", each) for each in self.headers.get_all("Set-Cookie", [])]
        return next((match[1] for match in found if match and match[1]), "")


class Person:
    """Somebody with a session, or with none."""

    def __init__(self, house: House, name: str = "", session: str = ""):
        self.house = house
        self.name = name
        self.session = session

    def ask(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Reply:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        cookie = {"Cookie": f"session={self.session}"} if self.session else {}
        connection = http.client.HTTPConnection("127.0.0.1", self.house.port, timeout=REPLY)
        connection.sock = self.house.connect()
        try:
            connection.request(method, path, data, cookie | (headers or {}))
            answer = connection.getresponse()
            return Reply(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> Reply:
        return self.ask("GET", path)

    def post(self, path: str, body: object = None) -> Reply:
        return self.ask("POST", path, {} if body is None else body)

    def delete(self, path: str) -> Reply:
        return self.ask("DELETE", path)

    def things(self, query: str) -> list[str]:
        """Return the names of the things that are found."""
        return [thing["name"] for thing in self.got(f"/things?{query}")["things"]]

    def got(self, path: str):
        """Return the value of an answer that is right."""
        reply = self.get(path)
        assert reply.status == 200, f"GET {path}: {reply!r}"
        return reply.value

    def book(self, thing: int, start: str, finish: str, **more: object) -> int:
        """Book a thing, and return the booking's number."""
        reply = self.post("/bookings", {"thing": thing, "from": start, "to": finish, **more})
        assert reply.status == 201, f"{self.name} books {thing} from {start} to {finish}: {reply!r}"
        return reply.value["id"]

    def upload(self, booking: int, name: str, body: bytes = b"plan") -> Reply:
        return self.post(f"/bookings/{booking}/files/{quote(name, safe='')}", body)

    def download(self, booking: int, name: str) -> Reply:
        return self.get(f"/bookings/{booking}/files/{quote(name, safe='')}")

    @property
    def signed_in(self) -> bool:
        reply = self.get("/me")
        assert reply.status in (200, 401), repr(reply)
        assert reply.status == 401 or reply.value["name"] == self.name, f"{self.name} is {reply!r}"
        return reply.status == 200


class House:
    """The service over a directory of its own.

    It is prepared and started when somebody asks for its port, and otto, anna and bert sign in when somebody asks for
    them: what fails in this fails in a test, and is no fault of a fixture.
    """

    def __init__(self, workspace, prepare: Callable[[House], object], password: str = PASSWORD):
        self.workspace = workspace
        self.data = f"{workspace.path}/data-{time.monotonic_ns()}"
        self.password = password
        self.number = 0
        self._prepare: Callable[[House], object] | None = prepare
        self._failed = ""
        self._mailed = False
        self._made: dict[Callable[[House], object], object] = {}

    def __getattr__(self, name: str):
        if name == "nobody":
            return Person(self)
        if name in ("otto", "anna", "bert"):
            person = self.sign_in(name, self.password.format(name=name))
            setattr(self, name, person)
            return person
        if name not in ("process", "port"):
            raise AttributeError(name)
        # What could not be started once is not tried for every test.
        assert not self._failed, f"it did not start: {self._failed}"
        try:
            prepare, self._prepare = self._prepare, None
            if prepare:
                prepare(self)
            if "port" not in self.__dict__:
                self.start()
        except BaseException as error:
            self._failed = str(error).strip().rpartition("\n")[2] or type(error).__name__
            raise
        return getattr(self, name)

    def start(self, arguments: str = "") -> None:
        command = ["python3", "-m", "gatehouse", "--data", self.data, "--port", "0", *arguments.split()]
        self.process = self.workspace.popen(command, env=KEEP_BYTECODE | {"GATEHOUSE_WORD": WORD})
        self.port = int(self.process.read_until("\n", timeout=60).removeprefix("listening "))

    def restart(self, arguments: str = "") -> None:
        """End it as it is, and start it again; whoever is asked for then signs in anew."""
        self.process.signal("SIGKILL")
        self.process.wait(timeout=60)
        for name in ("process", "port", "otto", "anna", "bert"):
            self.__dict__.pop(name, None)
        self.start(arguments)

    @property
    def ended(self) -> bool:
        """Whether it was started, and has ended since."""
        return "process" in self.__dict__ and not self.process.running

    def once(self, make: Callable[[House], T]) -> T:
        """Return what is made by the first test that asks for it."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]

    def connect(self):
        connection = self.workspace.connect(self.port, timeout=REPLY)
        connection.settimeout(REPLY)
        return connection

    def populate(self) -> None:
        """Add otto of the staff from the command line, and anna and bert as he does it."""
        command = ["python3", "-m", "gatehouse", "--data", self.data, "--add-user", "otto"]
        command += ["--full-name", "Otto Ahl", "--role", "staff"]
        done = self.workspace.run(command, input=f"{PASSWORD}\n", env=KEEP_BYTECODE)
        assert done.exit_code == 0, done.stderr
        self.start()
        self.anna, self.bert = self.person("anna", "Anna Berg"), self.person("bert", "Bert Cohn")

    def inherit(self) -> None:
        """Lay the same people into a database of the time before the first round."""
        self.lay({"users": [(*person, old_password(PASSWORD)) for person in PEOPLE]})

    def person(self, name: str = "", full_name: str = "Eva Doe", role: str = "member") -> Person:
        """Add somebody, and sign in."""
        self.number += 1
        name = name or f"guest{self.number}"
        added = {"name": name, "full_name": full_name, "role": role, "password": PASSWORD}
        reply = self.otto.post("/users", added)
        assert reply.status == 201, repr(reply)
        return self.sign_in(name)

    def login(self, name: str, password: str = PASSWORD) -> Reply:
        return Person(self).post("/login", {"name": name, "password": password})

    def sign_in(self, name: str, password: str = PASSWORD) -> Person:
        reply = self.login(name, password)
        assert reply.status == 200, f"{name} signs in: {reply!r}"
        assert reply.session, "no cookie with a session"
        return Person(self, name, reply.session)

    def thing(self, kind: str = "room", name: str = "", place: str = "1st floor") -> int:
        """Add a thing, and return its number."""
        self.number += 1
        reply = self.otto.post("/things", {"kind": kind, "name": name or f"Thing {self.number}", "place": place})
        assert reply.status == 201, repr(reply)
        return reply.value["id"]

    def raw(self, request: bytes, end: bool = False) -> Reply:
        """Send bytes, and return the answer; with an end, no more can come."""
        connection = self.connect()
        try:
            connection.sendall(request)
            if end:
                connection.shutdown(1)
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            return Reply(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def at_once(self, requests: list[tuple[Person, str, str, object]], held: bool = False) -> list[Reply]:
        """Make requests in parallel: all have begun before one has ended.

        With `held`, none can write for half a second, so that those which look before they write have all looked.
        """
        begun = threading.Event()
        ready = threading.Barrier(len(requests), begun.set)
        replies: list[Reply | BaseException] = [AssertionError("no answer")] * len(requests)

        def make(number: int, person: Person, method: str, path: str, body: object) -> None:
            data = json.dumps(body).encode()
            head = (
                f"{method} {path} HTTP/1.0\r\nCookie: session={person.session}\r\nContent-Length: {len(data)}\r\n\r\n"
            )
            try:
                connection = self.connect()
                connection.sendall(head.encode() + data[:-1])
                ready.wait(REPLY)
                connection.sendall(data[-1:])
                answer = http.client.HTTPResponse(connection)
                answer.begin()
                replies[number] = Reply(answer.status, answer.headers, answer.read())
                connection.close()
            except BaseException as error:
                replies[number] = error

        threads = [threading.Thread(target=make, args=(number, *each)) for number, each in enumerate(requests)]
        hold = self.workspace.popen(["python3", "-c", HOLD, f"{self.data}/gatehouse.db"]) if held else None
        if hold:
            hold.read_until("held\n", timeout=60)
        for thread in threads:
            thread.start()
        if hold:
            begun.wait(REPLY)
            time.sleep(0.5)
            hold.signal("SIGKILL")
        for thread in threads:
            thread.join()
        for reply in replies:
            if isinstance(reply, BaseException):
                raise reply
        return replies

    # What lies on the disk.

    def outbox(self) -> list[str]:
        """Return the names of all mails, in their order."""
        outbox = f"{self.data}/outbox"
        self._mailed = self._mailed or self.workspace.exists(outbox)
        if not self._mailed:
            return []
        return sorted(name for name in self.workspace.list(outbox) if name.endswith(".eml"))

    def new_mails(self, action: Callable[[], object]) -> list[str]:
        """Return the mails that an action leaves."""
        before = self.outbox()
        action()
        return [self.workspace.read_text(f"{self.data}/outbox/{name}") for name in self.outbox() if name not in before]

    def new_links(self, *names: str) -> list[str]:
        """Ask for a link for each of these people, and return the paths that came."""

        def ask() -> None:
            for name in names:
                assert Person(self).post("/reset", {"name": name}).status == 200

        mails = self.new_mails(ask)
        links = [match[1] for mail in mails for match in re.finditer(r"(?m)^(/reset/\S+)\r?$", mail)]
        assert len(set(links)) == len(names), f"{len(names)} new links: {links}"
        return links

    def new_link(self, name: str) -> str:
        """Ask for a link, and return the one that came."""
        return self.new_links(name)[0]

    def dump(self, directory) -> str:
        """Return all rows of the database as text."""
        for suffix in ("", "-wal", "-journal"):
            path = f"{self.data}/gatehouse.db{suffix}"
            if self.workspace.exists(path):
                (directory / f"copy.db{suffix}").write_bytes(self.workspace.read(path))
        db = sqlite3.connect(directory / "copy.db")
        try:
            return "\n".join(db.iterdump())
        finally:
            db.close()

    def lay(self, rows: dict[str, list[tuple]], files: dict[str, bytes] | None = None) -> House:
        """Put a database there as it was before the first round, with attachments."""
        db = sqlite3.connect(":memory:")
        db.executescript(OLD_SCHEMA)
        for table, values in rows.items():
            marks = ", ".join("?" * len(values[0]))
            db.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
        db.commit()
        self.workspace.write(f"{self.data}/gatehouse.db", db.serialize())
        db.close()
        for name, contents in (files or {}).items():
            self.workspace.write(f"{self.data}/files/{name}", contents)
        return self


def old_password(password: str) -> str:
    """Return a password in the form that the database had before the third round."""
    return hashlib.sha1(password.encode()).hexdigest()

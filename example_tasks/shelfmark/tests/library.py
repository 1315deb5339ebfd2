"""The register as a test handles it: databases, dumps, and `shelf` run on them."""

from __future__ import annotations

import base64
import itertools
import shlex
from typing import NamedTuple

from editions import BUILD
from wire import Connection, SqlError

FORWARD = """
import socket, threading
def pump(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    for each in (a, b):
        try:
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
server = socket.create_server(("127.0.0.1", 0))
print("port", server.getsockname()[1], "", flush=True)
while True:
    a = server.accept()[0]
    b = socket.create_connection(("db", 5432))
    for pair in ((a, b), (b, a)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
"""
ENV = {"PYTHONDONTWRITEBYTECODE": ""}
"""Variables with which nothing is compiled anew; the image has it otherwise, for the sake of the agent's files."""

TIMEOUT = 30

RUN = """
timeout -s KILL %d shelf %s >.out 2>.err </dev/null
echo "$? $(base64 -w0 .out) $(base64 -w0 .err)"
"""
"""Runs a program of many, and prints a line with what it did."""

WIPE = "DROP SCHEMA IF EXISTS legacy CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION register"
"""Makes a database empty."""

DELETE = """
DO $$ DECLARE name text; BEGIN
    FOREACH name IN ARRAY ARRAY['contact', 'loan', 'copy', 'title', 'member', 'left_member', 'reject'] LOOP
        IF to_regclass('public.' || name) IS NOT NULL THEN EXECUTE 'DELETE FROM public.' || name; END IF;
    END LOOP;
END $$"""
"""Takes all rows out of a database."""


class Done(NamedTuple):
    """What a program did."""

    exit_code: int
    stdout: str
    stderr: str


_numbers = itertools.count(1)


class Library:
    """Databases of a case. They go back to a pool with it, and are emptied when another case asks for one."""

    def __init__(self, workspace, session, shared) -> None:
        self.workspace = workspace
        self._session = session
        self._shared = shared
        self._used = []
        self._others = []

    def connect(self, name: str) -> Connection:
        """Return a new connection to a database."""
        if "port" not in self._shared:
            process = self._session.popen(["python3", "-I", "-c", FORWARD])
            self._shared["port"] = int(process.read_until("\n", timeout=20).split()[1])
        return Connection(self._session.connect(self._shared["port"], 20), name)

    def other(self, name: str) -> Connection:
        """Return a connection of somebody else to a database, who is gone when the case ends."""
        self._others.append(self.connect(name))
        return self._others[-1]

    def connection(self, name: str) -> Connection:
        """Return the connection to a database, which lives as long as the session."""
        connections = self._shared.setdefault("connections", {})
        if name not in connections:
            connections[name] = self.connect(name)
        return connections[name]

    def _take(self, kind: str, clean: str) -> Database | None:
        """Return a database of the pool that could be emptied."""
        pool = self._shared.setdefault(kind, [])
        while pool:
            database = Database(self, pool.pop())
            try:
                database.query(f"ROLLBACK; SET lock_timeout = '5s'; {clean}")
            except (SqlError, OSError, AssertionError):
                continue
            self._used.append((kind, database.name))
            return database
        return None

    def empty(self) -> Database:
        """Return a database that has nothing."""
        database = self._take("empty", WIPE)
        if database is None:
            database = Database(self, f"case_{next(_numbers)}")
            self.connection("postgres").query(
                f"CREATE DATABASE {database.name} OWNER register TEMPLATE template0"
                " ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
            )
            self._used.append(("empty", database.name))
        return database

    def fresh(self) -> Database:
        """Return a database that `shelf migrate` has brought to the present edition, and that has no rows."""
        database = self._take("fresh", f"{DELETE}; UPDATE edition SET number = {self.workspace.index}")
        if database is None:
            database = self.empty()
            database.says("migrate")
            self._used[-1] = ("fresh", database.name)
        return database

    def old(self, edition: int, sql: str = "") -> Database:
        """Return a database as an earlier edition left it, with more in it."""
        database = self.empty()
        build = ["SET ROLE register;", *BUILD[:edition], f"UPDATE edition SET number = {edition};", sql, ";RESET ROLE"]
        database.query("".join(build))
        return database

    def live(self) -> Database:
        """Return the register itself."""
        return Database(self, "register")

    def once(self, name: str, make):
        """Return what `make` returned when it was first called by this name; a failure fails each case that asks."""
        if name not in self._shared:
            used = len(self._used)
            try:
                self._shared[name] = make(), None
            except Exception as error:
                self._shared[name] = None, error
            del self._used[used:]  # What it has taken stays as it is.
        found, error = self._shared[name]
        if error is not None:
            raise AssertionError(f"{name}: {error}")
        return found

    def close(self) -> None:
        for other in self._others:
            other.close()
        for kind, name in self._used:
            self._shared.setdefault(kind, []).append(name)


class Database:
    """One database, by SQL and by the programs under test."""

    def __init__(self, library: Library, name: str) -> None:
        self.library = library
        self.name = name

    def again(self, library: Library) -> Database:
        """Return this database for another case."""
        return Database(library, self.name)

    def shelve(self, **titles: int) -> None:
        """Put titles in: `KI_12=2` is KI 12 with two copies."""
        sql = []
        for name, copies in titles.items():
            sig = name.replace("_", " ")
            if self.library.workspace.index < 8:
                sql.append(f"INSERT INTO title (sig, title, copies) VALUES ('{sig}', 'T', {copies})")
            else:
                sql.append(f"INSERT INTO title (sig, title) VALUES ('{sig}', 'T')")
                sql.append(f"INSERT INTO copy (sig, number) SELECT '{sig}', generate_series(1, {copies})")
        self.query(";".join(sql))

    def enrol(self, **members: int) -> None:
        """Put members in: `Roth=2` is Ms. Roth, NO 2."""
        rows = ", ".join(f"({no}, '{name}', '1990-01-01')" for name, no in members.items())
        self.query(f"INSERT INTO member (no, name, since) VALUES {rows}")

    def query(self, sql: str) -> list[tuple]:
        return self.library.connection(self.name).query(sql)

    def column(self, sql: str) -> list:
        return [row[0] for row in self.query(sql)]

    def shelf(self, *arguments: str, files: dict[str, bytes] | None = None):
        """Run `shelf` on this database, in a directory with these files."""
        env = {**ENV, "PGDATABASE": self.name}
        if files is None:
            return self.library.workspace.run(["shelf", *arguments], env=env, timeout=TIMEOUT)
        return self.library.workspace.run(["shelf", *arguments], env=env, timeout=TIMEOUT, files=files)

    def shelf_each(self, *calls: str, files: dict[str, bytes] | None = None) -> list[Done]:
        """Run `shelf` with one line of arguments after the other, all in one call; return what each did."""
        script = "".join(RUN % (TIMEOUT, arguments) for arguments in calls)
        env = {**ENV, "PGDATABASE": self.name}
        done = self.library.workspace.run(script, env=env, timeout=TIMEOUT * len(calls), files=files or {".err": b""})
        found = []
        for line in done.stdout.splitlines():
            code, out, err = line.split(" ")
            out, err = (base64.b64decode(text).decode(errors="replace") for text in (out, err))
            found.append(Done(int(code), out, err))
        assert len(found) == len(calls), f"{len(found)} of {len(calls)} have ended: {done.stderr}"
        return found

    def start(self, *arguments: str):
        return self.library.workspace.popen(["shelf", *arguments], env={**ENV, "PGDATABASE": self.name})

    def says(self, *arguments: str, files: dict[str, bytes] | None = None) -> str:
        """Return what `shelf` prints, which has to end well."""
        return well(shlex.join(arguments), self.shelf(*arguments, files=files))

    def say(self, *calls: str, files: dict[str, bytes] | None = None) -> list[str]:
        """Return what `shelf` prints for each line of arguments, each of which has to end well."""
        return [well(*each) for each in zip(calls, self.shelf_each(*calls, files=files), strict=True)]

    def load(self, **dumps: bytes) -> str:
        """Load dumps: `load(members=...)` is the file MEMBERS.DMP."""
        files = {f"{name.upper()}.DMP": data for name, data in dumps.items()}
        return self.says("load", *files, files=files)

    def columns(self, table: str) -> dict[str, str]:
        """Return the types of a table's columns, with ! where they are never NULL."""
        rows = self.query(
            "SELECT attname, format_type(atttypid, NULL) || CASE WHEN attnotnull THEN '!' ELSE '' END"
            f" FROM pg_attribute WHERE attrelid = to_regclass('public.{table}') AND attnum > 0 AND NOT attisdropped"
        )
        return dict(rows)

    def edition(self) -> int:
        return self.query("SELECT number FROM public.edition")[0][0]


def well(arguments: str, done) -> str:
    """Return the output of a program, which has to have ended well, whatever it says beside that."""
    assert done.exit_code == 0, f"shelf {arguments}: {done.exit_code} {done.stderr}"
    return done.stdout


class Later:
    """A database that is made when a case first uses it: what goes wrong there fails the case, and no fixture."""

    def __init__(self, make) -> None:
        self._make = make
        self._made = None

    def __getattr__(self, name):
        if self._made is None:
            self._made = self._make()
        return getattr(self._made, name)


def dump(
    kind: str, *records: str | bytes, version: str = "2.1", count: int | None = None, code: str = "cp850"
) -> bytes:
    """Return a dump as BIBLIO writes it."""
    lines = [record.encode(code) if isinstance(record, str) else record for record in records]
    head = f"BIBLIO {version} {kind} {len(lines)}".encode()
    return b"".join(line + b"\r\n" for line in (head, *lines)) + b"\x1a"

"""Tasks with services of a compose file: what a service was told in one round is there in all later ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(2), pytest.mark.docker]

#: A database behind a port: each line that comes is a statement, and what it selects goes back.
DATABASE = """\
import socketserver, sqlite3, threading
rows = sqlite3.connect("/var/lib/notes/notes.db", check_same_thread=False, isolation_level=None)
rows.execute("CREATE TABLE IF NOT EXISTS notes (round INTEGER, text TEXT)")
lock = threading.Lock()
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        statement = self.rfile.readline().decode()
        with lock: found = rows.execute(statement).fetchall()
        print(statement.strip(), flush=True)
        self.wfile.write(repr(found).encode())
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("", 5000), Handler).serve_forever()
"""
COMPOSE = """\
services:
  main:
    depends_on: {db: {condition: service_healthy}}
  db:
    image: python:3.11-slim-bookworm
    command: [python, /database.py]
    environment: {PASSWORD: "${PASSWORD}"}
    volumes: ["./database.py:/database.py:ro", "notes:/var/lib/notes"]
    healthcheck: {test: [CMD, python, -c, "import socket; socket.create_connection(('localhost', 5000))"], interval: 1s}
volumes: {notes: {}}
"""
ASK = """\
ask() { python3 -c 'import socket, sys
with socket.create_connection(("db", 5000), 20) as c:
    c.sendall(sys.argv[1].encode() + b"\\n"); c.shutdown(1); print(c.makefile().read())' "$1"; }
"""


def stores(index: int) -> str:
    return f"{ASK}ask \"INSERT INTO notes VALUES ({index}, 'of round {index}')\"\n"


def has_rounds(last: int) -> str:
    """Passes where the database has what was stored in each round up to one, and nothing of a later one or a suite."""
    rows = [(each, f"of round {each}") for each in range(1, last + 1)]
    return (
        f"echo 0 > /logs/verifier/reward.txt\n{ASK}"
        f'[ "$(ask "SELECT * FROM notes ORDER BY round")" = "{rows}" ] && echo 1 > /logs/verifier/reward.txt\n'
        "ask \"INSERT INTO notes VALUES (0, 'of a suite')\"\n"
    )


def compose_files(directory: Path, compose: str = COMPOSE) -> None:
    (directory / "environment/docker-compose.yaml").write_text(compose)
    (directory / "environment/database.py").write_text(DATABASE)


def test_a_database_has_in_each_fork_what_all_rounds_up_to_its_own_stored_and_nothing_of_suites(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTS_PASSWORD", "of-the-host-alone")
    # The first suite waits until the turn after its own has stored something, which its fork must not have.
    toml = (
        'artifacts = [{ source = "/dump", service = "db" }]\n'
        '[environment.env]\nPASSWORD = "given"\n'
        '[[verifier.collect]]\ncommand = "echo $PASSWORD > /dump"\nservice = "db"\n'
    )
    directory = write_task(
        "a",
        2,
        toml=toml,
        solve={each: stores(each) for each in (1, 2)},
        test={1: f"sleep 1\n{has_rounds(1)}", 2: has_rounds(2)},
    )
    compose_files(directory)
    session = run_tasks("tasks", env="docker")
    assert session.outcomes == {"passed": 2}
    steps = session.attempt() / "steps"
    assert (steps / "round-2/artifacts/dump").read_text() == "given\n"
    assert json.loads((steps / "round-2/services/services.json").read_text())["db"]["state"] == "running"
    log = (steps / "round-2/services/db.log").read_text()
    assert "of round 1" in log
    assert "of a suite" not in log
    assert "of a suite" in (steps / "round-2/verifier/logs/services/db.log").read_text()


@pytest.mark.nightly
def test_services_as_they_were_built_know_nothing_of_earlier_rounds(write_task: WriteTask, run_tasks: RunTasks) -> None:
    toml = '[metadata.evocode.sidecars]\ndb = "image"\n[environment.env]\nPASSWORD = ""\n'
    directory = write_task(
        "a", 2, toml=toml, solve={1: stores(1), 2: stores(2)}, test={1: has_rounds(1), 2: has_rounds(0)}
    )
    compose_files(directory)
    assert run_tasks("tasks", env="docker").outcomes == {"failed": 1, "passed": 1}


def test_what_a_compose_file_may_not_do_ends_the_attempt_with_its_line(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    directory = write_task("a", 1)
    compose_files(directory, "services:\n  db:\n    image: python\n    privileged: true\n")
    session = run_tasks("tasks", env="docker")
    assert session.outcomes == {"errors": 1}
    session.has("*docker-compose.yaml:4: services.db.privileged: it reaches the host*")


def test_the_sandbox_refuses_services_by_the_name_of_the_file(write_task: WriteTask, run_tasks: RunTasks) -> None:
    directory = write_task("a", 1)
    compose_files(directory)
    session = run_tasks("tasks", env="sandbox")
    assert session.outcomes == {"errors": 1}
    session.has("*docker-compose.yaml:1: this task needs Docker: the sandbox starts no services*")

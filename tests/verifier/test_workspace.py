"""The fixture ``workspace``: one suite uses all of it, in both environments, apart from the program under test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from pytest_evocode.environments import Engine, choose_engine
from pytest_evocode.results.records import Case
from tests.verifier.conftest import run_native_suite

# What the agent made; none of it is in the image that the suite runs in.
WORKSPACE = r"""
cat > ledger.py <<'END'
import os, socket, sys, time

def add(*numbers, by=1):
    return sum(numbers) * by

def fail(text):
    raise LookupError(text)

if __name__ == "__main__":
    command = sys.argv[1]
    if command == "echo":
        sys.stdout.buffer.write(sys.stdin.buffer.read())
    elif command == "talk":
        for line in sys.stdin:
            print("said", line.strip(), flush=True)
    elif command == "serve":
        server = socket.create_server(("127.0.0.1", int(sys.argv[2])))
        print("ready", flush=True)
        while True:
            connection, _ = server.accept()
            request = connection.recv(4096)
            body = b"you asked: " + request.split(b"\r\n")[0]
            connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            connection.close()
    elif command == "flood":
        sys.stdout.write("x" * 5_000_000 + "end")
    elif command == "daemon":
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(1000)
            os._exit(0)
END
mkdir data; echo found > data/in.txt; chmod 640 data/in.txt
ln -s /etc/passwd data/link; ln -s . data/loop; mkfifo data/pipe
"""

FIRST = """
import pytest


@pytest.mark.filterwarnings("error")
def test_first(workspace, workspace_module, workspace_session, evocode_round):
    assert {each.index for each in (workspace, workspace_module, workspace_session)} == {evocode_round.index} == {2}
"""
SUITE = r"""
import socket
import threading
import urllib.request
from pathlib import Path

import pytest

ledger = ["python3", "ledger.py"]


def test_what_the_agent_made_is_there_and_here_is_not_what_it_made(workspace):
    assert workspace.exists("ledger.py")
    assert not Path(workspace.workdir, "ledger.py").exists()
    assert not workspace.exists("/tests") and not workspace.exists("/logs/verifier")


def test_streams_are_apart_and_binary(workspace):
    done = workspace.run("cat; echo no >&2; exit 3", input=b"\x00\xff\n")
    assert (done.exit_code, done.stdout_bytes, done.stderr) == (3, b"\x00\xff\n", "no\n")
    assert not done.timed_out and not done.truncated and done.seconds > 0


def test_long_input_comes_back(workspace):
    text = "ä\n" * 1_00_000
    assert workspace.run([*ledger, "echo"], input=text).stdout == text


def test_a_signal_is_an_exit_code(workspace):
    assert workspace.run("kill -TERM $$").exit_code == 143


def test_a_program_that_is_missing_is_a_result(workspace):
    done = workspace.run(["no-such-program"])
    assert done.exit_code == 127 and "no-such-program" in done.stderr


def test_a_hung_program_is_killed_at_its_timeout(workspace):
    done = workspace.run(["sleep", "1000"], timeout=0.5)
    assert done.timed_out and done.exit_code is None


@pytest.mark.timeout(3)
def test_a_hung_program_is_killed_before_the_case_ends(workspace):
    assert workspace.run(["sleep", "1000"]).timed_out


def test_long_output_has_a_gap_that_is_told(workspace):
    done = workspace.run([*ledger, "flood"])
    assert done.truncated and len(done.stdout_bytes) < 2**21 and "bytes left out" in done.stdout
    assert done.stdout.endswith("end")


def test_nothing_outlives_a_run(workspace):
    assert workspace.run([*ledger, "daemon"]).exit_code == 0
    assert "ledger.py" not in workspace.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout


def test_files_go_beside_the_program(workspace):
    done = workspace.run("cat a.txt b/c.txt; pwd", files={"a.txt": "A", "b/c.txt": b"C"})
    assert done.stdout == f"AC{workspace.path}\n"
    assert workspace.list(workspace.path) == ["a.txt", "b"]


def test_a_path_is_fresh_in_every_test(workspace):
    assert workspace.list(workspace.path) == []


def test_variables_directory_and_user(workspace):
    assert workspace.user == "root"
    done = workspace.run("echo $A; pwd; id -un", env={"A": "b c"}, cwd="data", user="nobody")
    assert done.stdout == f"b c\n{workspace.workdir}/data\nnobody\n"
    mine = workspace.with_defaults(env={"A": "1", "B": "2"}, cwd="data")
    assert mine.run("echo $A$B; pwd", env={"B": "3"}).stdout == f"13\n{workspace.workdir}/data\n"


@pytest.mark.workspace(env={"A": "of the marker"})
def test_defaults_of_a_marker(workspace):
    assert workspace.run("echo $A").stdout == "of the marker\n"


def test_no_variable_of_the_suite_reaches_a_program(workspace):
    assert "PYTEST" not in workspace.run("env").stdout


def test_files(workspace):
    assert workspace.read("data/in.txt") == b"found\n" and workspace.read_text("data/in.txt") == "found\n"
    with pytest.raises(FileNotFoundError, match="data/none"):
        workspace.read("data/none")
    for path in ("data/link", "data", "data/pipe"):
        with pytest.raises(ValueError, match="data"):
            workspace.read(path)
    with pytest.raises(ValueError):
        workspace.read("data/in.txt", limit=3)
    workspace.write("data/new/x.txt", "text")
    assert workspace.run("cat data/new/x.txt; stat -c %U data/new/x.txt; id -un").stdout.splitlines()[0] != ""
    assert workspace.read_text("data/new/x.txt") == "text"
    workspace.mkdir("data/made/deep")
    assert workspace.stat("data/made/deep").kind == "directory"
    workspace.remove("data/new")
    assert not workspace.exists("data/new")
    with pytest.raises(ValueError, match=r"\.\."):
        workspace.write("../out", "x")


def test_stat_and_list(workspace):
    found = workspace.stat("data/in.txt")
    assert (found.kind, found.size, found.mode & 0o777) == ("file", 6, 0o640) and found.modified > 1e9
    link = workspace.stat("data/link")
    assert (link.kind, link.target) == ("link", "/etc/passwd")
    assert workspace.stat("data/pipe").kind == "other"
    assert workspace.exists("data/link") and not workspace.exists("data/none")
    with pytest.raises(FileNotFoundError):
        workspace.stat("data/none")
    assert workspace.list("data")[:1] == ["in.txt"]
    with pytest.raises(NotADirectoryError):
        workspace.list("data/loop")


def test_directories_of_the_suite_are_copied_in(workspace, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.bin").write_bytes(b"\x00")
    assert workspace.copy_in(tmp_path) == workspace.path
    assert workspace.read(f"{workspace.path}/sub/a.bin") == b"\x00"


def test_a_dialogue(workspace):
    talk = workspace.popen([*ledger, "talk"])
    talk.write("one\n")
    assert talk.read_until("\n") == "said one\n"
    talk.write("two\nthree\n")
    assert talk.read_until("three") == "said two\nsaid three"
    with pytest.raises(TimeoutError, match="never"):
        talk.read_until("never", timeout=0.2)
    assert talk.running
    talk.close_input()
    assert talk.wait() == 0 and not talk.running
    assert talk.output == "said one\nsaid two\nsaid three\n" and talk.errors == ""
    with pytest.raises(EOFError, match="never"):
        talk.read_until("never")


def test_a_program_is_signalled(workspace):
    sleeper = workspace.popen(["sleep", "1000"])
    with pytest.raises(TimeoutError):
        sleeper.wait(0.1)
    with pytest.raises(ValueError, match="no signal is called 'SIGINTERRUPT'"):
        sleeper.signal("SIGINTERRUPT")
    sleeper.signal("INT")
    assert sleeper.wait() == 130


def test_a_server_answers_while_programs_run(workspace):
    server = workspace.popen([*ledger, "serve", "8765"])
    server.read_until("ready")
    workspace.wait_for_port(8765)
    assert workspace.run([*ledger, "daemon"]).exit_code == 0
    with urllib.request.urlopen(workspace.url(8765, "/page?x=1"), timeout=20) as answer:
        assert answer.read() == b"you asked: GET /page?x=1 HTTP/1.1"
    with workspace.connect(8765) as connection:
        connection.sendall(b"raw\r\n")
        connection.settimeout(20)
        assert connection.makefile("rb").read().endswith(b"you asked: raw")
    assert server.running


def test_the_server_has_died_with_its_test(workspace):
    with pytest.raises(ConnectionRefusedError):
        workspace.connect(8765)
    with pytest.raises(TimeoutError, match="8765"):
        workspace.wait_for_port(8765, timeout=0.2)


@pytest.fixture(scope="module")
def server(workspace_module):
    process = workspace_module.popen([*ledger, "serve", "8766"])
    process.read_until("ready")
    return process


def test_a_server_of_the_module(workspace, server):
    assert urllib.request.urlopen(workspace.url(8766), timeout=20).status == 200


def test_a_server_of_the_module_is_still_there(workspace, server):
    assert server.running and urllib.request.urlopen(workspace.url(8766), timeout=20).status == 200


def test_calls_side_by_side(workspace):
    results = []
    def call(number):
        results.append(workspace.run(f"sleep 0.2; echo {number}").stdout)
    threads = [threading.Thread(target=call, args=(number,)) for number in range(5)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(results) == [f"{number}\n" for number in range(5)]


def test_python_and_calls(workspace):
    assert workspace.python("import ledger\nledger.add(*args)", 1, 2) == 3
    assert workspace.python("x = 1") is None
    assert workspace.call("ledger:add", 1, 2, by=5) == 15
    assert workspace.call("ledger:add", 1, 2, by="ab") == "ababab"


def test_exceptions_come_as_text(workspace):
    with pytest.raises(Exception, match="LookupError: nothing there") as raised:
        workspace.call("ledger:fail", "nothing there")
    error = raised.value
    assert (type(error).__name__, error.type, error.message) == ("RemoteError", "LookupError", "nothing there")
    assert "in fail" in error.traceback
    with pytest.raises(type(error), match="NoAnswer: python3 left no answer"):
        workspace.python("import os; os._exit(5)")
    with pytest.raises(type(error), match="TypeError"):
        workspace.python("object()")


def test_which_round(workspace, evocode_round):
    assert (workspace.round, workspace.index) == ("round-2", 2) == (evocode_round.name, evocode_round.index)


def test_wrong_calls_are_refused(workspace):
    for wrong in ("", [], ["a\0b"]):
        with pytest.raises(ValueError):
            workspace.run(["true"] if wrong == "" else wrong, env={"A": "\0"} if wrong == "" else None)
    with pytest.raises(ValueError, match="no port"):
        workspace.connect(0)


def test_what_the_agent_left_in_the_way_fails_that_call_and_no_more(workspace):
    with pytest.raises(OSError, match="in.txt"):
        workspace.write("data/in.txt/below/file", "x")
    assert workspace.read_text("data/in.txt") == "found\n"


def test_a_failure_describes_itself(workspace):
    done = workspace.run([*ledger, "echo"], input="given\n", timeout=30)
    assert (done.exit_code, done.stdout) == (0, "wanted\n")


def test_a_failing_text(workspace):
    assert "nothing of that" in workspace.run([*ledger, "echo"], input="given\n").stdout


def test_a_failing_output(workspace):
    assert workspace.run([*ledger, "echo"], input="given\n").stdout == "wanted\n"


def test_failing_lines(workspace):
    assert workspace.run([*ledger, "echo"], input="given\n").stdout.splitlines() == ["wanted"]


def test_a_failing_end(workspace):
    assert workspace.run("echo why >&2; exit 3").exit_code == 0


def test_a_failing_stream(workspace):
    done = workspace.run("echo too heavy; exit 3")
    assert (done.exit_code, done.stdout, done.stderr) == (3, "", "too heavy\n")


def test_a_failing_error(workspace):
    done = workspace.run("printf half; echo why >&2; exit 3")
    assert (done.exit_code, done.stderr) == (3, "reason\n")


def test_a_failing_answer(workspace):
    done = workspace.run("echo given")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "wanted\n", "")


def test_a_program_that_is_killed(workspace):
    done = workspace.run("echo begun; sleep 60", timeout=0.5)
    assert (done.exit_code, done.stdout) == (0, "begun\n")
"""


@pytest.fixture(scope="module")
def engine_of_module(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The engine that a test names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVOCODE_CACHE", str(tmp_path_factory.mktemp("cache")))
        engine, _ = choose_engine(request.param)
        yield engine
        engine.close()


@pytest.fixture(scope="module")
def cases(engine_of_module: Engine, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Case]:
    """What came of the suite, by the name of the test."""
    files = {"round-1/test_first.py": FIRST, "round-2/test_all.py": SUITE}
    directory: Path = tmp_path_factory.mktemp("task")
    run = run_native_suite(engine_of_module, directory, files, workspace=WORKSPACE, apart=True)
    assert run.verdict is not None, f"{run.fault}\n{run.output}"
    return {case.id.rpartition("::")[2]: case for case in run.verdict.cases}


@pytest.mark.parametrize("engine_of_module", ["sandbox"], indirect=True)
def test_all_calls(cases: Mapping[str, Case]) -> None:
    """All in one test, because every worker that has one of several would run the whole suite."""
    assert_all_calls(cases)


@pytest.mark.docker
@pytest.mark.nightly
@pytest.mark.parametrize("engine_of_module", ["docker"], indirect=True)
def test_all_calls_in_docker(cases: Mapping[str, Case]) -> None:
    assert_all_calls(cases)


def assert_all_calls(cases: Mapping[str, Case]) -> None:
    broken = {name: case.reason for name, case in cases.items() if case.status != "passed"}
    failing = {"output", "text", "end", "stream", "error", "answer"}
    assert broken.keys() == {
        "test_a_failure_describes_itself",
        "test_failing_lines",
        "test_a_program_that_is_killed",
        *(f"test_a_failing_{name}" for name in failing),
    }, broken
    assert cases["test_first"].status == "passed"  # No fixture is one that pytest warns of.

    case = cases["test_a_failure_describes_itself"]
    assert case.status == "failed"
    assert case.scenario == "python3 ledger.py echo"
    assert case.input == "given\n"
    assert case.expected == "status 0\nwanted\n"
    assert case.actual == "status 0\ngiven\n"
    assert "wanted" in case.reason
    assert "given" in case.reason

    # Text that is not in an output is what was expected.
    case = cases["test_a_failing_text"]
    assert (case.status, case.expected, case.actual) == ("failed", "nothing of that", "given\n")
    # What is compared without how the program ended is shown without it, and with it on both sides or on none.
    sides = {
        "test_a_failing_output": ("wanted\n", "given\n"),
        "test_failing_lines": ("['wanted']", "['given']"),
        "test_a_failing_end": ("status 0", "status 3\nstderr:\nwhy\n"),
        # Streams have their names where one side has errors.
        "test_a_failing_stream": ("status 3\nstderr:\ntoo heavy\n", "status 3\nstdout:\ntoo heavy\n"),
        "test_a_failing_error": ("status 3\nstderr:\nreason\n", "status 3\nstdout:\nhalf\nstderr:\nwhy\n"),
        "test_a_failing_answer": ("status 0\nwanted\n", "status 0\ngiven\n"),
    }
    assert {name: (cases[name].expected, cases[name].actual) for name in sides} == sides
    assert [line for line in cases["test_a_failing_stream"].reason.splitlines() if line[2:4] in ("- ", "+ ")] == [
        "  - stderr:",
        "  + stdout:",
    ]
    case = cases["test_a_program_that_is_killed"]
    assert case.expected == "status 0\nbegun\n"
    assert case.actual.startswith("killed at its timeout after ")
    assert [line for line in case.reason.splitlines() if "status 0" in line or "killed" in line][-2:] == [
        "  - status 0",
        "  + killed at its timeout",
    ]

"""What every environment promises about programs with their streams apart, ports and files."""

from __future__ import annotations

import socket
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_evocode.environments import Command, Environment, Program
from pytest_evocode.environments.sandbox import running

pytestmark = [pytest.mark.turns(2), pytest.mark.matrix]

WAIT = 60.0  # seconds after which something that should have happened at once has not


class Taken:
    """What a program has printed."""

    def __init__(self) -> None:
        self.streams: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
        self._changed = threading.Condition()

    def take(self, stream: int, chunk: bytes) -> None:
        with self._changed:
            self.streams[stream] += chunk
            self._changed.notify_all()

    def wait_for(self, text: bytes, stream: int = 1) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: text in self.streams[stream], WAIT), self.streams

    @property
    def both(self) -> tuple[bytes, bytes]:
        return bytes(self.streams[1]), bytes(self.streams[2])


@pytest.fixture
def programs(environment: Environment) -> Environment:
    """A started environment of the plain task."""
    return environment


def opened(programs: Environment, *argv: str, user: str | None = None) -> tuple[Program, Taken]:
    taken = Taken()
    return programs.open_program(Command(argv, user), taken.take), taken


def bash(script: str) -> Command:
    return Command(("bash", "-c", script))


def processes(programs: Environment) -> list[str]:
    """The names of all processes but PID 1, as a command sees them that kills nothing."""
    script = "cd /proc; for p in [0-9]*; do [ $p = 1 ] || [ $p = $$ ] || cat $p/comm 2>/dev/null; done; true"
    return sorted(programs.exec(script, cwd="/").output.split())


def test_a_program_reads_and_writes_while_it_runs(programs: Environment) -> None:
    program, taken = opened(programs, "bash", "-c", "while read -r word; do echo $word; echo no >&2; done; exit 3")
    program.write(b"one\n")
    taken.wait_for(b"one\n")
    assert program.wait(0.05) is None
    program.write(b"two\n", timeout=WAIT)
    taken.wait_for(b"two\n")
    program.close_input()
    program.close_input()
    assert program.wait(WAIT) == 3
    assert taken.both == (b"one\ntwo\n", b"no\nno\n")
    assert program.wait() == 3


def test_a_program_gets_and_gives_megabytes_byte_for_byte(programs: Environment) -> None:
    program, taken = opened(programs, "cat")
    data = bytes(range(256)) * 2**16
    program.write(data, timeout=WAIT)
    program.close_input()
    assert program.wait(WAIT) == 0
    assert taken.both == (data, b"")


def test_nobody_reads_what_is_written_to_a_program_that_has_ended(programs: Environment) -> None:
    program, _ = opened(programs, "true")
    assert program.wait(WAIT) == 0
    with pytest.raises(BrokenPipeError):
        program.write(b"too late")
    program.signal(9)
    program.close_input()


def test_input_that_is_not_taken_in_time_is_a_timeout(programs: Environment) -> None:
    program, _ = opened(programs, "sleep", "300")
    with pytest.raises(TimeoutError):
        program.write(bytes(2**24), timeout=0.3)
    program.signal(9)
    assert program.wait(WAIT) == 137


def test_a_signal_goes_to_all_of_a_programs_group(programs: Environment) -> None:
    script = "trap 'echo stopped; exit 5' TERM; sleep 300 & echo $!; wait"
    program, taken = opened(programs, "bash", "-c", script)
    taken.wait_for(b"\n")
    child = taken.both[0].decode().strip()
    program.signal(15)
    assert program.wait(WAIT) == 5
    assert taken.both[0].endswith(b"stopped\n")
    assert programs.exec(f"while [ -e /proc/{child} ]; do sleep 0.05; done", timeout=WAIT).ok


@pytest.mark.parametrize("number", [9, 15])
def test_a_program_that_a_signal_ended_says_so(programs: Environment, number: int) -> None:
    program, _ = opened(programs, "sleep", "300")
    program.signal(number)
    assert program.wait(WAIT) == 128 + number


def test_the_end_of_a_program_that_was_killed_on_request_is_told_without_looking_for_its_killer(
    programs: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_DYING", 3600.0)
    program, _ = opened(programs, "sleep", "300")
    program.signal(9)
    assert program.wait(WAIT) == 137


def test_output_that_descendants_hold_open_is_not_waited_for(programs: Environment) -> None:
    program, taken = opened(programs, "bash", "-c", "sleep 300 & echo done; exit 4")
    started = time.monotonic()
    assert program.wait(WAIT) == 4
    assert time.monotonic() - started < 30
    assert taken.both == (b"done\n", b"")


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [
        (Command(("no-such-program",)), 127),
        (Command(("/etc/passwd",)), 126),
        (Command(("true",), user="no-such-user"), 126),
        (Command(("true",), cwd="/no-such-directory"), 126),
    ],
    ids=["no program", "no permission", "no user", "no directory"],
)
def test_a_program_that_cannot_be_started_says_why_on_stderr(
    programs: Environment, command: Command, exit_code: int
) -> None:
    taken = Taken()
    program = programs.open_program(command, taken.take)
    assert program.wait(WAIT) == exit_code
    assert taken.both[0] == b""
    assert taken.both[1]


def test_programs_run_beside_one_another(programs: Environment) -> None:
    one, one_taken = opened(programs, "cat")
    two, two_taken = opened(programs, "cat")
    one.write(b"first")
    two.write(b"second")
    one_taken.wait_for(b"first")
    two_taken.wait_for(b"second")
    for program in (one, two):
        program.close_input()
        assert program.wait(WAIT) == 0
    assert (one_taken.both[0], two_taken.both[0]) == (b"first", b"second")


def test_a_program_has_the_commands_user_directory_and_variables(programs: Environment) -> None:
    taken = Taken()
    command = Command(("bash", "-c", "pwd; echo $ONE"), env={"ONE": "a b\nc"}, cwd="/usr")
    assert programs.open_program(command, taken.take).wait(WAIT) == 0
    assert taken.both == (b"/usr\na b c\n", b"")


def test_a_program_that_is_run_has_its_streams_apart(programs: Environment) -> None:
    result = programs.run_program(bash("cat; echo err >&2; exit 7"), input=b"a\0b\xff\n%s\\")
    assert (result.exit_code, result.stdout, result.stderr) == (7, b"a\0b\xff\n%s\\", b"err\n")
    assert result.left_out == (0, 0)
    assert 0 < result.seconds < WAIT


def test_a_program_without_input_reads_the_end_of_it(programs: Environment) -> None:
    assert programs.run_program(Command(("cat",)), timeout=WAIT).exit_code == 0


@pytest.mark.parametrize("size", [10_000, 3_000_000])
def test_input_arrives_whole_and_need_not_be_read(programs: Environment, size: int) -> None:
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    result = programs.run_program(Command(("cat",)), input=data, limit=2**24, timeout=WAIT)
    assert result.stdout == data
    assert programs.run_program(Command(("true",)), input=data, timeout=WAIT).exit_code == 0


def test_what_is_beyond_the_limit_is_left_out_of_the_middle(programs: Environment) -> None:
    script = "printf first; head -c 5000000 /dev/zero; printf last; printf few >&2"
    result = programs.run_program(bash(script), limit=1000, timeout=WAIT)
    assert result.stdout.startswith(b"first\0")
    assert result.stdout.endswith(b"\0last")
    assert len(result.stdout) < 1100
    assert b"bytes left out" in result.stdout
    assert result.left_out == (5_000_009 - 1000, 0)
    assert result.stderr == b"few"


def test_a_program_is_killed_at_its_timeout_and_its_output_kept(programs: Environment) -> None:
    result = programs.run_program(bash("echo begun; echo so >&2; sleep 300"), timeout=1)
    assert (result.exit_code, result.stdout, result.stderr) == (None, b"begun\n", b"so\n")
    assert 1 <= result.seconds < 30
    assert processes(programs) == []


@pytest.mark.parametrize("number", [6, 9, 15])
def test_a_run_that_a_signal_ended_says_so(programs: Environment, number: int) -> None:
    assert programs.run_program(bash(f"kill -{number} $$; sleep 300"), timeout=WAIT).exit_code == 128 + number


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [
        (Command(("no-such-program",)), 127),
        (Command(("/etc/passwd",)), 126),
        (Command(("true",), user="no-such-user"), 126),
        (Command(("true",), cwd="/no-such-directory"), 126),
    ],
    ids=["no program", "no permission", "no user", "no directory"],
)
def test_a_run_that_cannot_be_started_says_why_on_stderr(
    programs: Environment, command: Command, exit_code: int
) -> None:
    result = programs.run_program(command, timeout=WAIT)
    assert (result.exit_code, result.stdout) == (exit_code, b"")
    assert result.stderr


def test_nothing_that_a_run_has_started_is_alive_after_it(programs: Environment) -> None:
    script = "sleep 300 & (setsid bash -c 'trap \"\" TERM HUP; sleep 301 & sleep 302' >/dev/null 2>&1 &) & echo done"
    result = programs.run_program(bash(script), timeout=WAIT)
    assert (result.exit_code, result.stdout) == (0, b"done\n")
    assert result.seconds < 30
    assert processes(programs) == []


def test_output_that_children_hold_open_does_not_keep_a_run_waiting(programs: Environment) -> None:
    result = programs.run_program(bash("yes & sleep 300 & exec 1>&- 2>&-; exit 3"), timeout=WAIT)
    assert result.exit_code == 3
    assert result.seconds < 30


def test_programs_alongside_live_on_with_their_children_and_no_others(programs: Environment) -> None:
    kept, taken = opened(programs, "bash", "-c", "sleep 300 & echo ready; while read -r line; do echo $line; done")
    other, _ = opened(programs, "sleep", "300")
    taken.wait_for(b"ready\n")
    for _ in range(3):
        programs.run_program(bash("sleep 301 & setsid sleep 302 & true"), alongside=[kept], timeout=WAIT)
    assert processes(programs) == ["bash", "sleep"]
    assert other.wait(WAIT) == 137
    assert programs.run_program(Command(("sleep", "300")), alongside=[kept], timeout=0.5).exit_code is None
    kept.write(b"still here\n")
    taken.wait_for(b"still here\n")
    programs.end_programs([kept])
    assert kept.wait(0.05) is None
    programs.end_programs()
    assert kept.wait(WAIT) == 137
    assert processes(programs) == []


def test_programs_that_run_at_the_same_time_do_not_end_each_other(programs: Environment) -> None:
    def run(number: int) -> bytes:
        script = f"sleep 0.0{number}; (sleep 0.{number}; true); sleep 300 & echo {number}"
        return programs.run_program(bash(script), timeout=WAIT).stdout

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(run, range(1, 7))) == [b"%d\n" % number for number in range(1, 7)]
    assert processes(programs) == []


def test_a_program_that_is_opened_while_another_one_runs_outlives_that(programs: Environment) -> None:
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(programs.run_program, bash("touch /tmp/begun; sleep 2 & wait; sleep 300 &"), timeout=WAIT)
        assert programs.exec("until [ -e /tmp/begun ]; do sleep 0.05; done", timeout=WAIT).ok
        opened_meanwhile, taken = opened(programs, "cat")
        assert run.result().exit_code == 0
    opened_meanwhile.write(b"alive")
    taken.wait_for(b"alive")
    assert processes(programs) == ["cat"]


def test_a_run_has_the_commands_user_directory_and_variables(programs: Environment) -> None:
    environment = {"ONE": "a b\nc", "TWO": "$(echo)'\""}
    result = programs.run_program(Command(("bash", "-c", 'pwd; echo "$ONE" "$TWO"'), env=environment, cwd="/usr"))
    assert result.stdout == b"/usr\na b\nc $(echo)'\"\n"
    nobody = programs.run_program(Command(("bash", "-c", "id -un; pwd"), user="nobody"), timeout=WAIT)
    assert (nobody.stdout, nobody.stderr) == (b"nobody\n/app\n", b"")


ECHO = """
import socket
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
print(server.getsockname()[1], flush=True)
while True:
    client = server.accept()[0]
    while chunk := client.recv(2**16):
        client.sendall(chunk)
    client.sendall(b"over")
    client.close()
"""


def serving(programs: Environment) -> tuple[Program, int]:
    server, taken = opened(programs, "python3", "-c", ECHO)
    taken.wait_for(b"\n")
    return server, int(taken.both[0])


def received(connection: socket.socket) -> bytes:
    connection.settimeout(WAIT)
    with connection.makefile("rb") as file:
        return file.read()


@pytest.mark.parametrize("data", [b"short", bytes(range(256)) * 2**12], ids=["short", "long"])
def test_a_port_of_the_loopback_is_reached(programs: Environment, data: bytes) -> None:
    server, port = serving(programs)

    def send() -> None:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)

    with programs.connect(port, WAIT) as connection:
        sender = threading.Thread(target=send)
        sender.start()
        assert received(connection) == data + b"over"
        sender.join()
    server.signal(9)
    assert server.wait(WAIT) == 137


def test_a_connection_outlives_runs_beside_its_server(programs: Environment) -> None:
    server, port = serving(programs)
    with programs.connect(port, WAIT) as connection:
        connection.settimeout(WAIT)
        for _ in range(2):
            programs.run_program(Command(("true",)), alongside=[server], timeout=WAIT)
            connection.sendall(b"ping")
            assert connection.recv(4) == b"ping"
    programs.end_programs()
    assert processes(programs) == []


def test_a_connection_ends_with_its_server(programs: Environment) -> None:
    server, port = serving(programs)
    with programs.connect(port, WAIT) as connection:
        connection.sendall(b"ping")
        connection.settimeout(WAIT)
        assert connection.recv(4) == b"ping"
        server.signal(9)
        assert connection.recv(1) == b""


def test_a_port_where_nobody_listens_refuses(programs: Environment) -> None:
    with pytest.raises(ConnectionRefusedError):
        programs.connect(9, WAIT)


def test_files_are_written_with_their_directories_and_owner(programs: Environment) -> None:
    contents = {"a.txt": b"a", "deep/er/b": bytes(range(256)) * 1000, "a name\nof \udcff": b"", "deep/c": b"c"}
    programs.write_files("/opt/new/place", contents)
    assert programs.read_files({"/opt/new/place/a.txt": 10})["/opt/new/place/a.txt"] == b"a"
    assert programs.read_files({"/opt/new/place/deep/er/b": 10**6})["/opt/new/place/deep/er/b"] == contents["deep/er/b"]
    assert programs.list_directory("/opt/new/place") == ["a name\nof \udcff", "a.txt", "deep"]
    for path, mode in (("/opt/new", 0o755), ("/opt/new/place/deep/er", 0o755), ("/opt/new/place/deep/c", 0o644)):
        status = programs.file_status(path)
        assert status is not None
        assert status.mode == mode
    assert programs.exec("stat -c %U /opt/new/place/deep /opt/new/place/a.txt").output.split() == ["root", "root"]


def test_an_empty_mapping_makes_the_directory_alone(programs: Environment) -> None:
    programs.write_files("/opt/empty/one", {})
    assert programs.list_directory("/opt/empty/one") == []
    programs.exec("chmod 1777 /opt/empty/one; touch /opt/empty/one/kept")
    programs.write_files("/opt/empty/one/", {})
    assert programs.list_directory("/opt/empty/one") == ["kept"]
    status = programs.file_status("/opt/empty/one")
    assert status is not None
    assert status.mode == 0o1777


def test_no_link_is_followed_below_the_directory_that_is_written_to(programs: Environment) -> None:
    programs.exec(
        "mkdir -p /opt/target/directory /opt/place/is-directory/x /opt/place/file-to-be/x; echo old > /opt/target/file;"
        "ln -s /opt/place /opt/way; cd /opt/place; ln -s /opt/target there; ln -s /opt/target/file link;"
        "ln /opt/target/file hard; ln -s /nowhere/at/all dangling; mkfifo fifo; echo x > was-a-file; ln -s . loop"
    )
    names = ("there/file", "link", "hard", "dangling", "fifo", "was-a-file/x", "is-directory/new", "file-to-be")
    files = {name: name.encode() for name in (*names, "loop/loop/x")}
    programs.write_files("/opt/way", files)
    for name, contents in files.items():
        path = f"/opt/place/{name}"
        assert programs.read_files({path: 100})[path] == contents
    assert programs.exec("cat /opt/target/file; ls /opt/target").output.startswith("old\ndirectory\nfile\n")
    assert programs.file_status("/nowhere") is None
    assert programs.list_directory("/opt/place/is-directory") == ["new", "x"]
    assert programs.list_directory("/opt/place") == sorted(
        [*(name for name in names if "/" not in name), "there", "was-a-file", "is-directory", "loop"]
    )


@pytest.mark.parametrize(
    ("directory", "user"),
    [("/opt/new", "no-such-user"), ("/etc/passwd/below", None), (f"/opt/passwd{'x' * 300}/etc/passwd", None)],
    ids=["no user", "a file above", "a long name"],
)
def test_files_that_cannot_be_written_are_an_error_of_that_call(
    programs: Environment, directory: str, user: str | None
) -> None:
    with pytest.raises(OSError, match=r"no-such-user|/etc/passwd"):
        programs.write_files(directory, {"a": b"a"}, user=user)
    assert programs.file_status("/etc/passwd/below") is None


def test_what_stands_at_a_path_is_described(programs: Environment) -> None:
    programs.exec(
        "mkdir /opt/seen; cd /opt/seen; printf 12345 > file; chmod 4750 file; touch -d @1234567890.5 file;"
        "mkdir -m 1777 directory; ln -s 'a b/../c' link; mkfifo fifo; ln -s directory way; touch directory/inner;"
        "ln -s round round"
    )
    file = programs.file_status("/opt/seen/file")
    assert file is not None
    assert (file.kind, file.size, file.mode, file.modified) == ("file", 5, stat.S_ISUID | 0o750, 1234567890.5)
    directory = programs.file_status("/opt/seen/directory")
    assert directory is not None
    assert (directory.kind, directory.size, directory.mode) == ("directory", 0, 0o1777)
    link = programs.file_status("/opt/seen/link")
    assert link is not None
    assert (link.kind, link.size, link.target) == ("link", 0, "a b/../c")
    loop = programs.file_status("/opt/seen/round")
    assert loop is not None
    assert loop.kind == "link"
    fifo = programs.file_status("/opt/seen/fifo")
    assert fifo is not None
    assert (fifo.kind, fifo.size) == ("other", 0)
    assert programs.file_status("/opt/seen/none") is None
    assert programs.file_status("/opt/seen/file/below") is None
    inner = programs.file_status("/opt/seen/way/inner")
    assert inner is not None
    assert inner.kind == "file"
    assert programs.file_status("/") is not None


def test_names_in_a_directory_are_listed_whatever_they_are(programs: Environment) -> None:
    programs.exec(
        r"""mkdir -p /opt/names/sub; cd /opt/names; ln -s sub link;"""
        r"""touch -- .hidden $'new\nline' $'\xff\xfe' '*' '-n' ' ' $'\e[31m'"""
    )
    names = ["\x1b[31m", " ", "*", "-n", ".hidden", "link", "new\nline", "sub", "\udcff\udcfe"]
    assert programs.list_directory("/opt/names") == names
    assert programs.list_directory("/opt/names/", limit=9) == names
    with pytest.raises(OverflowError):
        programs.list_directory("/opt/names", limit=8)
    for path in ("/opt/names/link", "/opt/names/-n", "/opt/none", "/opt/names/-n/below"):
        with pytest.raises(NotADirectoryError):
            programs.list_directory(path)
    assert programs.list_directory("/opt/names/link/../sub") == []

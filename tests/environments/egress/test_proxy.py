"""What the proxy of an allowlist lets through, asked without an environment: by name, by address, and by protocol."""

from __future__ import annotations

import gc
import socket
import ssl
import struct
import sys
import time
import weakref
from collections.abc import Iterator

import pytest

from pytest_evocode.environments.egress import EgressGate
from pytest_evocode.environments.egress.exchange import ClientHello, ServedEnvironment
from pytest_evocode.environments.egress.proxy import EgressProxy
from pytest_evocode.tasks import Allowlist
from tests.environments.egress.outside import HOSTS, LISTED, OTHER, resolve, served


class Ask:
    """Speaks to a proxy as a program would that may be hostile."""

    def __init__(self, port: int, gate: EgressGate, outside: int) -> None:
        self.port = port
        self.gate = gate
        self.outside = outside

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def raw(self, request: bytes) -> bytes:
        """Send bytes, and return all that comes back until the proxy hangs up."""
        with self.connect() as connection:
            connection.sendall(request)
            answer = b""
            while piece := connection.recv(2**16):
                answer += piece
            return answer

    def get(self, authority: str, *more: str) -> bytes:
        lines = [f"GET http://{authority}/x HTTP/1.1", *(more or ("Host: x",)), "Connection: close", "", ""]
        return self.raw("\r\n".join(lines).encode("utf-8"))

    def status(self, host: str, port: int | None = None) -> int:
        """CONNECT to a host, ask the server for a page if that is let through, and return the proxy's status."""
        with self.connect() as connection:
            connection.sendall(f"CONNECT {host}:{port or self.outside} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            answer = connection.recv(2**16)
            return int(answer.split()[1])

    def denied(self) -> list[tuple[str, int]]:
        return [(each.host, each.count) for each in self.gate.take_denied("agent")]


@pytest.fixture(scope="module")
def proxy() -> Iterator[EgressProxy]:
    proxy = EgressProxy(resolve)
    yield proxy
    proxy.close()


@pytest.fixture(scope="module")
def outside() -> Iterator[int]:
    with served(LISTED) as port, served(OTHER, port):
        yield port


@pytest.fixture
def ask(proxy: EgressProxy, outside: int) -> Iterator[Ask]:
    gate = EgressGate(Allowlist.of(HOSTS), default="no-network")
    environment = ServedEnvironment(proxy, gate)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    environment.listen(listener)
    yield Ask(port, gate, outside)
    environment.close()


@pytest.mark.parametrize(
    "host",
    [
        "good.test",
        "GOOD.Test",
        "good.test.",
        "a.wild.test",
        "a.b.wild.test",
        "A.WILD.TEST.",
        "xn--bcher-kva.test",
        "XN--BCHER-kva.test.",
        "both.wild.test",
        LISTED,
        f"[::ffff:{LISTED}]",
    ],
)
def test_what_is_listed_is_reached(ask: Ask, host: str) -> None:
    assert ask.status(host) == 200
    assert b" 200 " in ask.get(f"{host}:{ask.outside}")
    assert ask.denied() == []


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("evil.test", "the name is not listed"),
        ("wild.test", "the name is not listed"),
        ("evilwild.test", "the name is not listed"),
        ("good.test.evil.test", "the name is not listed"),
        ("xgood.test", "the name is not listed"),
        ("localhost", "the name is not listed"),
        ("good.test..", "it is no name of a host"),
        ("good..test", "it is no name of a host"),
        ("%67ood.test", "it is no name of a host"),
        ("127.2", "it is no name of a host"),
        ("2130706434", "it is no name of a host"),
        ("0x7f.0.0.2", "it is no name of a host"),
        ("0177.0.0.2", "it is no name of a host"),
        ("127.0.0.2.", "it is no name of a host"),
        (OTHER, "the address is the host's own or next to it"),
        ("[::1]", "the address is the host's own or next to it"),
        ("[::ffff:7f00:3]", "the address is the host's own or next to it"),
        ("0.0.0.0", "the address is the host's own or next to it"),
        ("169.254.169.254", "the address is the host's own or next to it"),
        ("[fe80::1%25lo]", "it is no name of a host"),
        ("[64:ff9b::a9fe:a9fe]", "the address is the host's own or next to it"),
        ("[64:ff9b::808:808]", "the address is not listed"),
        ("[2002:a9fe:a9fe::]", "the address is the host's own or next to it"),
        ("10.1.2.3", "the address is not public, and not listed"),
        ("8.8.8.8", "the address is not listed"),
        ("[2001:4860:4860::8888]", "the address is not listed"),
        ("loopback.wild.test", f"it leads to {OTHER}: the address is the host's own or next to it"),
        ("metadata.wild.test", "it leads to 169.254.169.254: the address is the host's own or next to it"),
        ("mapped.wild.test", "it leads to 169.254.169.254: the address is the host's own or next to it"),
        ("private.wild.test", "it leads to 10.1.2.3: the address is not public, and not listed"),
    ],
)
def test_what_is_not_listed_is_refused_and_counted(ask: Ask, host: str, why: str) -> None:
    assert ask.status(host) == 403
    assert b" 403 " in ask.get(f"{host}:{ask.outside}")
    (denied,) = ask.gate.take_denied("agent")
    assert (denied.host, denied.port, denied.count, denied.why) == (host, ask.outside, 2, why)


def test_an_address_of_this_machine_is_the_hosts_own_whatever_it_looks_like(ask: Ask) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # Nothing is sent: this only finds the address that would be used.
        except OSError:
            pytest.skip("this machine has no address but its loopback")
        own = probe.getsockname()[0]
    ask.gate.allow(Allowlist.of([*HOSTS, "0.0.0.0/0", "::/0"]))
    for near in (own, "127.0.0.1", "169.254.169.254", "[fd00:ec2::254]"):
        assert ask.status(near) == 403
    assert {each.why for each in ask.gate.take_denied("agent")} == {"the address is the host's own or next to it"}


def test_a_listed_host_may_be_asked_at_any_port(ask: Ask) -> None:
    with socket.create_server((LISTED, 0)) as odd:
        port = odd.getsockname()[1]
        assert ask.status("good.test", port) == 200
    assert ask.status("good.test", port) == 502  # Allowed, and nobody is there any more.
    assert ask.denied() == []


def test_a_listed_name_without_an_address_is_no_denial(ask: Ask) -> None:
    assert b"cannot be resolved: Name or service not known" in ask.get("missing.wild.test")
    assert ask.denied() == []


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET / HTTP/1.1", 400),
        ("GET https://good.test/ HTTP/1.1", 400),
        ("GET ftp://good.test/ HTTP/1.1", 400),
        ("GET http://good.test@evil.test/ HTTP/1.1", 400),
        ("GET http://good.test\\@evil.test/ HTTP/1.1", 400),
        ("GET http:///x HTTP/1.1", 400),
        ("CONNECT good.test HTTP/1.1", 400),
        ("CONNECT good.test:0 HTTP/1.1", 400),
        ("CONNECT good.test:65536 HTTP/1.1", 400),
        ("CONNECT http://good.test:80 HTTP/1.1", 400),
        ("nonsense", 400),
    ],
)
def test_what_is_no_request_to_a_proxy_is_refused(ask: Ask, request_line: str, status: int) -> None:
    answer = ask.raw(f"{request_line}\r\nHost: good.test\r\n\r\n".encode())
    assert int(answer.split()[1]) == status


def test_the_server_is_told_the_host_that_was_looked_at(ask: Ask) -> None:
    answer = ask.get(f"good.test:{ask.outside}", "Host: evil.test", "X-Other: kept", "Proxy-Authorization: secret")
    assert answer.endswith(f"/x good.test:{ask.outside}".encode())


def test_bodies_pass_in_both_directions_and_connections_are_used_again(ask: Ask) -> None:
    base = f"http://good.test:{ask.outside}"
    with ask.connect() as connection, connection.makefile("rb") as answers:
        for path, headers, body, size in (
            ("/?size=3000000", "", b"", 3_000_000),
            ("/", "Content-Length: 2000000\r\n", b"x" * 2_000_000, 0),
            ("/", "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n", b"5\r\nhello\r\n0\r\n\r\n", 0),
        ):
            method = "POST" if body else "GET"
            connection.sendall(f"{method} {base}{path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode() + body)
            status = answers.readline()
            if b" 100 " in status:
                assert answers.readline() == b"\r\n"
                status = answers.readline()
            assert b" 200 " in status
            length = 0
            while (line := answers.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            assert len(answers.read(length)) >= size


def hello(name: str | None) -> bytes:
    """What a client of TLS sends first."""
    inward, outward = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(inward, outward, server_hostname=name).do_handshake()
    return outward.read()


@pytest.mark.parametrize(
    ("asked", "passes"),
    [("good.test", True), ("a.wild.test", True), (None, True), ("evil.test", False), ("127.0.0.1", True)],
)
def test_tls_asks_for_no_name_but_listed_ones(ask: Ask, asked: str | None, passes: bool) -> None:
    message = hello(asked)
    with socket.create_server((LISTED, 0)) as server, ask.connect() as connection:
        port = server.getsockname()[1]
        connection.sendall(f"CONNECT good.test:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        taken, _ = server.accept()
        with taken:
            taken.settimeout(20)
            assert b" 200 " in connection.recv(2**16)
            for piece in (message[:3], message[3:50], message[50:]):
                connection.sendall(piece)
                time.sleep(0.01)
            got = b""
            while len(got) < len(message) and (piece := taken.recv(2**16)):
                got += piece
    assert got == (message if passes else b"")
    assert ask.denied() == ([] if passes else [("evil.test", 1)])


def test_a_broken_beginning_of_tls_names_nobody() -> None:
    message = bytearray(hello("good.test"))
    for cut in range(5, len(message) - 5, 7):
        broken = ClientHello()
        broken.feed(bytes(message[:5]) + b"\1\0\0" + bytes([cut % 251]) + bytes(message[9:cut]))
        assert broken.server_name in (None, "", "good.test")


def record(fragment: bytes, kind: int = 22) -> bytes:
    return struct.pack(">BHH", kind, 0x301, len(fragment)) + fragment


def test_a_beginning_of_tls_in_pieces_is_read_or_names_nobody() -> None:
    message = hello("evil.test")[5:]
    first, second = record(message[:60]), record(message[60:])
    size = 2**16
    beginnings = {
        first + second: "evil.test",
        first + record(b"") + second: "evil.test",  # As servers read it.
        first + record(b"\1\0", kind=21) + second: "",  # A warning, which some servers read over.
        b"".join(map(record, (b"\1" + size.to_bytes(3, "big"), *[bytes(2**14)] * 4))): "",
        b"GET / HTTP/1.1\r\n": None,
    }
    for beginning, name in beginnings.items():
        whole, by_bytes = ClientHello(), ClientHello()
        assert whole.feed(beginning)
        assert any(by_bytes.feed(beginning[at : at + 1]) for at in range(len(beginning)))
        assert (whole.server_name, by_bytes.server_name) == (name, name)


def test_a_name_that_is_not_ascii_is_nobodys_and_no_error_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    asked = ClientHello()
    assert asked.feed(hello("good.test").replace(b"good", b"\xff\xfeod"))
    assert (asked.server_name, told) == ("", [])
    assert sys.unraisablehook == told.append


def test_nothing_is_kept_of_connections_that_have_begun() -> None:
    begun = ClientHello()
    begun.feed(hello("good.test"))
    left = weakref.ref(begun._server)
    del begun
    gc.collect()
    assert left() is None


def test_a_server_that_speaks_first_is_heard(ask: Ask) -> None:
    with socket.create_server((LISTED, 0)) as server, ask.connect() as connection:
        connection.sendall(f"CONNECT good.test:{server.getsockname()[1]} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        taken, _ = server.accept()
        with taken, connection.makefile("rb") as answer:
            assert b" 200 " in answer.readline()
            assert answer.readline() == b"\r\n"
            taken.sendall(b"220 ready\r\n")
            assert answer.readline() == b"220 ready\r\n"


def test_a_change_ends_what_is_open_and_the_same_again_does_not(ask: Ask) -> None:
    with socket.create_server((LISTED, 0)) as server, ask.connect() as connection:
        connection.sendall(f"CONNECT good.test:{server.getsockname()[1]} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        taken, _ = server.accept()
        with taken:
            assert b" 200 " in connection.recv(2**16)
            ask.gate.allow(Allowlist.of(HOSTS))
            taken.sendall(b"still there")
            assert connection.recv(2**16) == b"still there"
            ask.gate.allow("no-network")
            assert connection.recv(2**16) == b""
    assert ask.status("good.test") == 403
    ask.gate.allow("public")
    assert ask.status("evil.test") == 502  # Nobody knows the name, and nobody minds that it is not listed.
    assert ask.status("loopback.wild.test") == 403


def test_the_list_of_what_was_denied_has_a_bound(ask: Ask) -> None:
    for number in range(60):
        assert ask.status(f"host-{number}.evil.test") == 403
    assert ask.status("host-0.evil.test") == 403
    denied = ask.denied()
    assert (len(denied), denied[0], denied[-1]) == (51, ("host-0.evil.test", 2), ("", 10))
    assert ask.denied() == []

"""A client of PostgreSQL in the suite's own process.

The server is reached through a forwarder in the workspace, which an agent may have tampered with. So the connection is
encrypted, and bound to a password that server and suite alone know (SCRAM-SHA-256-PLUS, RFC 5802 and 5929): nobody in
between can answer in the server's place, or change what it says.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import ssl
import struct

_AUDIT = "audit", "h2-Vb71-quire-fathom-9Kd"
_INTEGERS = {20, 21, 23}
_BOOLEAN = 16


class SqlError(Exception):
    """An error of the server's; ``code`` is its SQLSTATE."""

    def __init__(self, fields: dict[str, str]) -> None:
        self.code = fields.get("C", "")
        super().__init__(f"{self.code} {fields.get('M', '')}")


class Connection:
    """A connection of the role ``audit`` to one database."""

    def __init__(self, raw, database: str) -> None:
        raw.settimeout(30)
        raw.sendall(struct.pack("!ii", 8, 80877103))
        assert raw.recv(1) == b"S", "what is called db is no server with TLS"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # The password binds its certificate.
        self._socket = context.wrap_socket(raw)
        self._stream = self._socket.makefile("rb")
        start = f"user\0{_AUDIT[0]}\0database\0{database}\0\0".encode()
        self._socket.sendall(struct.pack("!ii", len(start) + 8, 196608) + start)
        self._authenticate()
        while self._message()[0] != b"Z":
            pass

    def _send(self, kind: bytes, body: bytes) -> None:
        self._socket.sendall(kind + struct.pack("!i", len(body) + 4) + body)

    def _message(self) -> tuple[bytes, bytes]:
        head = self._stream.read(5)
        assert len(head) == 5, "the server has closed the connection"
        kind, body = head[:1], self._stream.read(struct.unpack("!i", head[1:])[0] - 4)
        if kind == b"E":
            raise SqlError({part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part})
        return kind, body

    def _challenge(self, expected: int) -> bytes:
        kind, body = self._message()
        assert (kind, struct.unpack("!i", body[:4])[0]) == (b"R", expected), "no server that knows the suite"
        return body[4:]

    def _authenticate(self) -> None:
        assert b"SCRAM-SHA-256-PLUS\0" in self._challenge(10)
        certificate = hashlib.sha256(self._socket.getpeercert(binary_form=True)).digest()
        bare = b"n=,r=" + base64.b64encode(os.urandom(18))
        first = b"p=tls-server-end-point,," + bare
        self._send(b"p", b"SCRAM-SHA-256-PLUS\0" + struct.pack("!i", len(first)) + first)
        said = self._challenge(11)
        part = dict(each.split(b"=", 1) for each in said.split(b","))
        assert part[b"r"].startswith(bare[5:])
        salted = hashlib.pbkdf2_hmac("sha256", _AUDIT[1].encode(), base64.b64decode(part[b"s"]), int(part[b"i"]))
        key = _mac(salted, b"Client Key")
        last = b"c=" + base64.b64encode(b"p=tls-server-end-point,," + certificate) + b",r=" + part[b"r"]
        everything = b",".join((bare, said, last))
        signature = _mac(hashlib.sha256(key).digest(), everything)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        self._send(b"p", last + b",p=" + base64.b64encode(proof))
        verified = self._challenge(12)
        assert verified == b"v=" + base64.b64encode(_mac(_mac(salted, b"Server Key"), everything)), "a false server"
        self._challenge(0)

    def query(self, sql: str) -> list[tuple]:
        """Return the rows of the last statement; integers and booleans as such, NULL as None, the rest as text."""
        self._send(b"Q", sql.encode() + b"\0")
        rows, types, error = [], [], None
        while True:
            try:
                kind, body = self._message()
            except SqlError as caught:
                error = caught
                continue
            if kind == b"T":
                types, rows = _types(body), []
            elif kind == b"D":
                rows.append(_row(body, types))
            elif kind == b"Z":
                if error:
                    raise error
                return rows

    def close(self) -> None:
        try:
            self._send(b"X", b"")
            self._socket.close()
        except OSError:
            pass


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _types(body: bytes) -> list[int]:
    found, at = [], 2
    for _ in range(struct.unpack("!h", body[:2])[0]):
        at = body.index(b"\0", at) + 1
        found.append(struct.unpack("!i", body[at + 6 : at + 10])[0])
        at += 18
    return found


def _row(body: bytes, types: list[int]) -> tuple:
    values, at = [], 2
    for type_ in types:
        (size,) = struct.unpack("!i", body[at : at + 4])
        at += 4
        if size < 0:
            values.append(None)
            continue
        text = body[at : at + size].decode()
        at += size
        values.append(int(text) if type_ in _INTEGERS else text == "t" if type_ == _BOOLEAN else text)
    return tuple(values)

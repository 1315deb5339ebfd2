"""Connections to what listens on a container's loopback, which no call of the engine reaches.

A program of the container's own image takes them there: perl, or bash where there is none. Bash cannot pass on that one
direction has ended while the other goes on.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable
from signal import SIGKILL

from pytest_evocode.environments.docker.execs import DockerProgram
from pytest_evocode.environments.programs import Command, Stream, TakeOutput

_PERL = r"""
use Socket qw(:DEFAULT inet_pton pack_sockaddr_in6 AF_INET6 IPPROTO_TCP TCP_NODELAY);
my ($port, $to) = (shift, undef);
for ([AF_INET, pack_sockaddr_in($port, inet_aton("127.0.0.1"))],
     [AF_INET6, pack_sockaddr_in6($port, inet_pton(AF_INET6, "::1"))]) {
  socket(my $try, $_->[0], SOCK_STREAM, 0) or next;
  if (connect($try, $_->[1])) { $to = $try; last }
}
exit 111 unless $to;
setsockopt($to, IPPROTO_TCP, TCP_NODELAY, 1);
syswrite(STDOUT, "+");
sub pass { my ($in, $out) = @_;
  while (sysread($in, my $data, 65536)) {
    for (my $sent = 0; $sent < length $data;) {
      $sent += syswrite($out, $data, length($data) - $sent, $sent) || return;
    }
  }
}
my $other = fork() // exit 111;
if (!$other) { close(STDOUT); pass(\*STDIN, $to); shutdown($to, 1); exit }
pass($to, \*STDOUT);
kill 9, $other;
"""
_BASH = r"""
perl=$1; port=$2
hash perl 2>/dev/null && perl -e 'use Socket 2.0; exit 0' 2>/dev/null && exec perl -e "$perl" "$port"
{ exec 3<>/dev/tcp/127.0.0.1/$port || exec 3<>/dev/tcp/::1/$port; } 2>/dev/null || exit 111
exec 4<&0
printf +
cat <&4 >&3 &
cat <&3
kill -9 $!
"""


class Relay:
    """A socket on this side, a program inside, and what passes between the two."""

    def __init__(self, port: int, open_program: Callable[[Command, TakeOutput], DockerProgram]) -> None:
        """Start the program by ``open_program``, which gets what is to take its output."""
        self._port, self._begun = port, time.monotonic()
        self.socket, self._inner = socket.socketpair()
        self._answered = threading.Event()
        self._connected = False
        try:
            # It connects its stdin and stdout to the port, after a `+` once it is connected.
            command = Command(("bash", "-c", _BASH, "bash", _PERL, str(port)), user="0", cwd="/")
            self.program = open_program(command, self._take)
        except BaseException:
            self.socket.close()
            self._inner.close()
            raise

    def connect(self, timeout: float, closed: Callable[[], None]) -> socket.socket:
        """Wait until it is connected, and return the socket; raises as :meth:`Environment.connect` does.

        ``closed`` is called when the socket has been closed, or there is no connection.
        """
        threading.Thread(target=self._pass_output, name="relay-output", daemon=True).start()
        in_time = self._answered.wait(max(0.0, self._begun + timeout - time.monotonic()))
        if self._connected:
            threading.Thread(target=self._pass_input, args=[closed], name="relay-input", daemon=True).start()
            return self.socket
        closed()
        self.socket.close()
        self._inner.close()
        if in_time:
            raise ConnectionRefusedError(f"nobody listens at port {self._port}")
        self.program.signal(SIGKILL)
        raise TimeoutError(f"port {self._port} did not take a connection within {timeout} s")

    def _take(self, stream: Stream, chunk: bytes) -> None:
        if stream == 2:
            return
        if not self._connected:
            self._connected = chunk[:1] == b"+"
            self._answered.set()
            chunk = chunk[1:]
        if self._connected and chunk:
            with contextlib.suppress(OSError):  # Whoever has closed the socket wants no more of it.
                self._inner.sendall(chunk)

    def _pass_output(self) -> None:
        self.program.wait()
        self._answered.set()
        with contextlib.suppress(OSError):
            self._inner.shutdown(socket.SHUT_WR)

    def _pass_input(self, closed: Callable[[], None]) -> None:
        with contextlib.suppress(OSError), self._inner:
            while chunk := self._inner.recv(2**16):
                self.program.write(chunk)
            self.program.close_input()
            poll = select.poll()
            poll.register(self._inner, 0)
            poll.poll()  # Until the socket is closed for both directions.
        closed()

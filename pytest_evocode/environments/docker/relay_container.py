"""A container in the network of another one, which carries connections from there to the session.

Beside one with an allowlist it holds the network that both are in, a loopback and nothing else. A program in it listens
at a port and passes everything on to the session over the stream by which the engine runs it, so that it works with
every engine, be it on another machine. It is out of reach for what runs in the other container, which sees neither its
processes nor its files; it is of the task's image as built, and ends when the session does.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import queue
import socket
import threading
from collections.abc import Callable
from typing import Any

from pytest_evocode.environments.docker import multiplexer
from pytest_evocode.environments.docker.calls import discard, faults
from pytest_evocode.environments.docker.container_settings import ContainerSettings
from pytest_evocode.environments.docker.execs import FramedStream
from pytest_evocode.environments.egress.proxy import ServedConnections
from pytest_evocode.environments.programs import Stream
from pytest_evocode.errors import EnvironmentFault

_STARTING = 30.0  # seconds for the program to listen
_RELAY_MEMORY, _RELAY_PROCESSES = 256 * 2**20, 32
_NOBODY = "65534:65534"
_CONNECTIONS = "256"  # that Perl takes at once; for Python's the session closes others
# Does what the multiplexer does in Python.
_PERL = r"""
use strict;
use Socket qw(:DEFAULT IPPROTO_TCP TCP_NODELAY);
use Fcntl;
use Errno qw(EAGAIN EWOULDBLOCK EINTR);
my ($port, $window, $most) = @ARGV;
$SIG{PIPE} = "IGNORE";
binmode STDIN; binmode STDOUT;
my $listener;
socket($listener, PF_INET, SOCK_STREAM, 0) && setsockopt($listener, SOL_SOCKET, SO_REUSEADDR, 1)
  && bind($listener, pack_sockaddr_in($port, INADDR_LOOPBACK)) && listen($listener, 128) or die "port $port: $!\n";
my (%open, $received, $count);
sub tell_session {
  my ($kind, $number, $payload) = @_;
  my $message = pack("a1NN", $kind, $number, length $payload) . $payload;
  while (length $message) {
    my $sent = syswrite(STDOUT, $message);
    if (defined $sent) { substr($message, 0, $sent, "") } elsif ($! != EINTR) { exit 1 }
  }
}
sub drop { my $number = shift; close $open{$number}{socket}; delete $open{$number}; tell_session("C", $number, "") }
sub settle {
  my $number = shift;
  my $each = $open{$number} or return;
  return if !$each->{ending} || length $each->{out};
  shutdown($each->{socket}, 1) unless $each->{shut}++;
  drop($number) if $each->{ended};
}
sub busy { return $! == EAGAIN || $! == EWOULDBLOCK || $! == EINTR }
sub obey {
  my ($kind, $number, $payload) = @_;
  my $each = $open{$number} or return;
  if ($kind eq "D") { $each->{out} .= $payload }
  elsif ($kind eq "A") { $each->{window} += unpack("N", $payload) }
  elsif ($kind eq "E") { $each->{ending} = 1; settle($number) }
  elsif ($kind eq "C") { $each->{ending} = $each->{ended} = 1; settle($number) }
}
tell_session("O", 0, "");
while (1) {
  my ($reads, $writes) = ("", "");
  vec($reads, fileno(STDIN), 1) = 1;
  vec($reads, fileno($listener), 1) = 1 if keys %open < $most;
  for my $each (values %open) {
    vec($reads, fileno($each->{socket}), 1) = 1 if !$each->{ended} && $each->{window} > 0;
    vec($writes, fileno($each->{socket}), 1) = 1 if length $each->{out};
  }
  next if select($reads, $writes, undef, undef) < 0;
  for my $number (keys %open) {
    my $each = $open{$number};
    if (vec($writes, fileno($each->{socket}), 1)) {
      my $sent = syswrite($each->{socket}, $each->{out});
      if (defined $sent) { substr($each->{out}, 0, $sent, ""); tell_session("A", $number, pack("N", $sent)) }
      elsif (!busy()) { drop($number); next }
    }
    if (vec($reads, fileno($each->{socket}), 1)) {
      my $most_now = $each->{window} < 32768 ? $each->{window} : 32768;
      my $got = sysread($each->{socket}, my $data, $most_now);
      if ($got) { $each->{window} -= $got; tell_session("D", $number, $data) }
      elsif (defined $got) { $each->{ended} = 1; tell_session("E", $number, "") }
      elsif (!busy()) { drop($number); next }
    }
    settle($number);
  }
  if (vec($reads, fileno($listener), 1) && accept(my $socket, $listener)) {
    fcntl($socket, F_SETFL, fcntl($socket, F_GETFL, 0) | O_NONBLOCK);
    setsockopt($socket, IPPROTO_TCP, TCP_NODELAY, 1);
    $open{++$count} = { socket => $socket, out => "", window => $window };
    tell_session("O", $count, "");
  }
  if (vec($reads, fileno(STDIN), 1)) {
    my $got = sysread(STDIN, $received, 65536, length $received);
    exit if defined $got && !$got;
    while (length $received >= 9) {
      my ($kind, $number, $length) = unpack("a1NN", $received);
      last if length $received < 9 + $length;
      obey($kind, $number, substr($received, 9, $length));
      substr($received, 0, 9 + $length, "");
    }
  }
}
"""
# Arguments: both programs, and theirs: the port, the window and how many connections they take at once.
_PROGRAM = r"""
perl=$1 python=$2; shift 2
perl -MSocket -MFcntl -MErrno -e 'exit 0' 2>/dev/null && exec perl -e "$perl" "$@"
for name in python3 python; do
  "$name" -IS -c 'import asyncio; asyncio.run' 2>/dev/null && exec "$name" -IS -c "$python" "$@"
done
echo "the image has neither perl nor python3, and one of them has to; install it in environment/Dockerfile" >&2
exit 127
"""
_COMPLAINT = 2000  # bytes of what the program has to say


class RelayContainer:
    """One such container, from :meth:`start` to :meth:`stop`."""

    def __init__(self, settings: ContainerSettings, served: ServedConnections, *, port: int) -> None:
        """Have connections to a port of the loopback of a container with these settings served by ``served``."""
        self._client = settings.client
        self._settings = settings
        self._served = served
        self._port = port
        self._loop = served.loop
        self._ready = threading.Event()
        self._complaint = bytearray()
        self._outgoing: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._multiplexer = multiplexer.Multiplexer(self._outgoing.put, self._begin)
        self._carrying: set[asyncio.Task[None]] = set()
        self._stream: FramedStream | None = None
        self._listening = False
        self.container = ""

    def start(
        self,
        *,
        network: str = "none",
        endpoints: dict[str, Any] | None = None,
        dns: list[str] | None = None,
        join: Callable[[str], object] = lambda container: None,
    ) -> None:
        """Start it.

        Args:
            network: The network of another container, or what is in reach beside the loopback: a network of the
                engine's that has no way out.
            endpoints: The names that the container has there.
            dns: The name servers that the engine asks for other names than those in its networks.
            join: Connects it to more such networks.
        """
        from docker.types import LogConfig

        with faults("starting the container that carries connections"):
            created = self._client.create_container(
                self._settings.image,
                entrypoint=["bash", "-c", _PROGRAM, "bash"],
                command=[_PERL, inspect.getsource(multiplexer), str(self._port), str(multiplexer.WINDOW), _CONNECTIONS],
                user=_NOBODY,
                working_dir="/",
                labels=dict(self._settings.labels),
                stdin_open=True,
                network_disabled=network == "none",
                networking_config=endpoints,
                host_config=self._client.create_host_config(
                    network_mode=network,
                    dns=dns,
                    mem_limit=_RELAY_MEMORY,
                    memswap_limit=_RELAY_MEMORY,
                    pids_limit=_RELAY_PROCESSES,
                    cap_drop=["ALL"],
                    read_only=True,
                    security_opt=["no-new-privileges:true"],
                    log_config=LogConfig(type="none"),
                ),
            )
            self.container = created["Id"]
            join(self.container)
            attach = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            self._stream = FramedStream(self._client.attach_socket(self.container, params=attach), self._take)
            self._client.start(self.container)
        name = f"relay-{self.container[:12]}"
        threading.Thread(target=self._read, args=[self._stream], name=name, daemon=True).start()
        threading.Thread(target=self._write, args=[self._stream], name=name, daemon=True).start()
        if not (self._ready.wait(_STARTING) and self._listening):
            why = self._complaint.decode("utf-8", "replace").strip() or "it does not listen"
            self.stop()
            raise EnvironmentFault(f"no program can carry connections out of this container: {why}")

    def stop(self) -> None:
        """Remove it, and end all connections; a second call does nothing."""
        container, self.container = self.container, ""
        if not container:
            return
        self._served.close()
        self._outgoing.put(b"")
        discard(self._client, "container", container)
        if self._stream is not None:
            self._stream.shutdown()

    # Threads of the stream.

    def _read(self, stream: FramedStream) -> None:
        try:
            with contextlib.suppress(OSError), stream:
                stream.collect(None)
        finally:
            self._ready.set()
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._multiplexer.close)

    def _write(self, stream: FramedStream) -> None:
        with contextlib.suppress(OSError, ValueError):
            while message := self._outgoing.get():
                stream.send(message)

    def _take(self, stream: Stream, chunk: bytes) -> None:
        if stream == 2:
            self._complaint += chunk[: _COMPLAINT - len(self._complaint)]
            return
        with contextlib.suppress(RuntimeError):  # The session is over, and its loop closed.
            self._loop.call_soon_threadsafe(self._multiplexer.take, chunk)

    # The proxy's thread.

    def _begin(self, number: int) -> None:
        if number == 0:
            self._listening = True
            self._ready.set()
            return
        self._multiplexer.expect(number)
        carrying = self._loop.create_task(self._carry(number))
        self._carrying.add(carrying)
        carrying.add_done_callback(self._carrying.discard)

    async def _carry(self, number: int) -> None:
        inner, outer = socket.socketpair()
        served = self._loop.create_task(self._served.serve(*await asyncio.open_connection(sock=outer)))
        await self._multiplexer.carry(number, *await asyncio.open_connection(sock=inner), served)

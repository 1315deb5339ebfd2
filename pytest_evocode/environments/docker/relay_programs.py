"""The programs that carry connections out of a container's network: in Perl, and in Python where an image has no Perl.

They do the same and are told the same: the port, the window and how many connections they take at once.
"""

from __future__ import annotations

WINDOW = 2**18
"""Bytes of one connection that may be under way in one direction."""
_CONNECTIONS = 256

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
tell_session("R", 0, "");
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
_PYTHON = r"""
import os, select, socket, struct, sys
port, window, most = map(int, sys.argv[1:])
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", port))
listener.listen(128)
opened, received, count = {}, bytearray(), 0
class Each:
    def __init__(self, taken):
        self.socket, self.out, self.window = taken, bytearray(), window
        self.ended = self.ending = self.shut = False
def tell_session(kind, number, payload=b""):
    message = struct.pack(">cII", kind, number, len(payload)) + payload
    while message:
        message = message[os.write(1, message):]
def drop(number):
    opened.pop(number).socket.close()
    tell_session(b"C", number)
def settle(number):
    each = opened.get(number)
    if each is None or not each.ending or each.out:
        return
    if not each.shut:
        each.shut = True
        try:
            each.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
    if each.ended:
        drop(number)
def obey(kind, number, payload):
    each = opened.get(number)
    if each is None:
        return
    if kind == b"D":
        each.out += payload
    elif kind == b"A":
        each.window += int.from_bytes(payload, "big")
    elif kind == b"E":
        each.ending = True
        settle(number)
    elif kind == b"C":
        each.ending = each.ended = True
        settle(number)
def serve(number, each, readable, writable):
    if writable:
        sent = each.socket.send(each.out)
        del each.out[:sent]
        tell_session(b"A", number, sent.to_bytes(4, "big"))
    if readable:
        data = each.socket.recv(min(each.window, 32768))
        each.window -= len(data)
        each.ended = not data
        tell_session(b"D" if data else b"E", number, data)
tell_session(b"R", 0)
while True:
    poll = select.poll()
    poll.register(0, select.POLLIN)
    if len(opened) < most:
        poll.register(listener, select.POLLIN)
    by_fd = {}
    for number, each in opened.items():
        wanted = select.POLLIN if not each.ended and each.window > 0 else 0
        wanted |= select.POLLOUT if each.out else 0
        if wanted:
            poll.register(each.socket, wanted)
            by_fd[each.socket.fileno()] = (number, each)
    ready = dict(poll.poll())
    for fd, event in ready.items():
        if fd in by_fd:
            number, each = by_fd[fd]
            broken = event & (select.POLLHUP | select.POLLERR)
            try:
                readable = not each.ended and each.window > 0 and (event & select.POLLIN or broken)
                serve(number, each, readable, each.out and (event & select.POLLOUT or broken))
            except BlockingIOError:
                pass
            except OSError:
                drop(number)
            settle(number)
    if listener.fileno() in ready:
        taken, _ = listener.accept()
        taken.setblocking(False)
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        count += 1
        opened[count] = Each(taken)
        tell_session(b"O", count)
    if 0 in ready:
        data = os.read(0, 65536)
        if not data:
            break
        received += data
        while len(received) >= 9:
            kind, number, length = struct.unpack_from(">cII", received)
            if len(received) < 9 + length:
                break
            payload = bytes(received[9:9 + length])
            del received[:9 + length]
            obey(kind, number, payload)
"""
PROGRAM = r"""
perl=$1 python=$2; shift 2
perl -MSocket -MFcntl -MErrno -e 'exit 0' 2>/dev/null && exec perl -e "$perl" "$@"
for name in python3 python; do
  "$name" -IS -c 'import select, socket, struct' 2>/dev/null && exec "$name" -IS -c "$python" "$@"
done
echo "the image has neither perl nor python3, and one of them has to; install it in environment/Dockerfile" >&2
exit 127
"""
"""A script for ``bash -c``, which gets :func:`arguments`."""


def arguments(port: int) -> list[str]:
    """Return the arguments of :data:`PROGRAM` that make it listen at a port."""
    return [_PERL, _PYTHON, str(port), str(WINDOW), str(_CONNECTIONS)]

"""The program that carries connections out of a container's network: in Perl, and in Python where an image has no Perl.

Both do the same; see :mod:`~pytest_evocode.environments.docker.multiplexer`, which is the one in Python.
"""

from __future__ import annotations

import inspect

from pytest_evocode.environments.docker import multiplexer

_CONNECTIONS = 256  # that Perl takes at once; for Python's the session closes others

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
PROGRAM = r"""
perl=$1 python=$2; shift 2
perl -MSocket -MFcntl -MErrno -e 'exit 0' 2>/dev/null && exec perl -e "$perl" "$@"
for name in python3 python; do
  "$name" -IS -c 'import asyncio; asyncio.run' 2>/dev/null && exec "$name" -IS -c "$python" "$@"
done
echo "the image has neither perl nor python3, and one of them has to; install it in environment/Dockerfile" >&2
exit 127
"""
"""A script for ``bash -c``, which gets :func:`arguments`."""


def arguments(port: int) -> list[str]:
    """Return the arguments of :data:`PROGRAM` that make it listen at a port."""
    return [_PERL, inspect.getsource(multiplexer), str(port), str(multiplexer.WINDOW), str(_CONNECTIONS)]

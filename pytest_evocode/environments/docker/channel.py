"""A long-lived connection to a container's PID 1, by which programs of root run without an engine call each."""

from __future__ import annotations

import contextlib
import shlex
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_evocode.environments.docker.execs import EngineCommand, FramedStream
from pytest_evocode.environments.programs import CappedOutput, Stream, TakeOutput
from pytest_evocode.errors import ChannelClosed

if TYPE_CHECKING:
    from docker import APIClient

# Kills processes, as a function of PID 1's bash, which needs no program but itself: `evocode_sweep [ROOT...]` kills
# what is neither a root nor below one, nor in its group or session, and fails when something is still alive after five
# seconds. Descriptor 4 is one on which nothing ever comes, for pauses.
#
# Without roots one call of the kernel's kills all at once, whatever they fork meanwhile; it fails when nobody is left.
# With roots, when new ones have appeared five times, it stops all at once, for those that fork as fast as they are
# killed. Of a line of /proc/PID/stat, behind the name, which may contain anything: $1 is the state, $2 the parent, $3
# the group, $4 the session, ${18} the number of threads, ${20} the start; a dead main thread with others alive looks
# like a zombie.
_SWEEP = r"""
evocode_sweep() {
  local IFS=$' \t\n' LC_ALL=C file line pid changed left rounds=0 end=$((SECONDS + 5))
  if (($# == 0)); then
    while kill -9 -1; do
      ((SECONDS < end)) || return 1
      read -t 0.002 -u 4
    done
    return 0
  fi
  local -A root=() killed=()
  for pid; do root[$pid]=1; done
  while ((SECONDS < end)); do
    local -a parent=() group=() session=() start=() new=()
    local -A spared=()
    for file in /proc/[1-9]*/stat; do
      line=
      IFS= read -r -d '' line < "$file"
      [[ $line ]] || continue
      pid=${file//[!0-9]/}
      set -- ${line##*) }
      [[ $1 == X || $1 == Z && ${18} -le 1 || $pid == 1 ]] && continue
      parent[pid]=$2 group[pid]=$3 session[pid]=$4 start[pid]=${20}
    done
    for ((changed = 1; changed;)); do
      changed=0
      for pid in "${!parent[@]}"; do
        [[ ${spared[$pid]} ]] && continue
        if [[ ${root[$pid]} || ${root[${group[pid]}]} || ${root[${session[pid]}]} || ${spared[${parent[pid]}]} ]]; then
          spared[$pid]=1 changed=1
        fi
      done
    done
    left=0
    for pid in "${!parent[@]}"; do
      [[ ${spared[$pid]} ]] && continue
      left=1
      [[ ${killed[$pid.${start[pid]}]} ]] && continue
      killed[$pid.${start[pid]}]=1 new+=("$pid")
    done
    ((left)) || break
    if ((${#new[@]})); then
      kill -9 "${new[@]}"
      ((++rounds == 5)) && kill -STOP -1
    else
      read -t 0.002 -u 4
    fi
  done
  ((rounds < 5)) || kill -CONT -1
  ((!left))
}
"""
#: The signals that bash may have handlers of its own for, which end it: for more than half of them only from its first
#: read with a timeout on. SIGCHLD's does not.
_HANDLED = "HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 PIPE ALRM TERM XCPU XFSZ VTALRM SYS"
# PID 1 evaluates requests from its stdin, each ended by a NUL. No signal from inside can end it: the kernel drops those
# without a handler, and ":" handles the others. `set -m` gives every program its own process group. When the connection
# ends, the session is gone: PID 1 ends, and the container with it, so that nothing in it goes on paying for a model. A
# container that is kept for a person goes on reaping orphans in its place: the kernel does so for one that ignores
# SIGCHLD.
# Docker's own --init would end with its child, and `kill -9 -1` by an agent would take the container down.
# Descriptor 3 is stderr, so that what bash itself has to say is in no program's; on 4 nothing ever comes, so reading
# from it is a pause that starts no program.
KEEPER = [
    "bash",
    "-c",
    f"{_SWEEP} trap : {_HANDLED}; set -m; exec 3>&2 2>/dev/null 4<> <(:);"
    """ while IFS= read -r -d '' request || [ $? -gt 128 ]; do eval "$request"; done;"""
    " [[ $evocode_stays ]] || exit; trap '' CHLD; exec tail -f /dev/null",
]
# While a program runs, a signal from outside makes PID 1 look for more requests. A signal also ends the wait for a
# status that is there, so that is asked for again. A flood of them from root inside can cost a program its status: bash
# loses that of a child when a signal arrives as the kernel hands it over. It counts as killed by that signal.
_WAIT = """
while wait $running; status=$?; [[ $status -gt 128 && -e /proc/$running ]]; do
  while read -t 0; do IFS= read -r -d '' request && eval "$request"; done
  read -t 0.01 -u 4
done
for ((tries = 0; status > 128 && tries < 20; tries++)); do wait $running; status=$?; done
running=
"""
_KILL = "[[ $running ]] && kill -9 -- -$running $running"
REQUEST_LIMIT = 2**16  # bytes
_READ_ONLY = {"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"}
_ANSWER = 10.0  # seconds for an answer of PID 1, which takes it milliseconds
_WAKING = 0.2  # seconds after which PID 1 is woken once more; a signal just before it waits is lost
_CLOSING = 2.0  # seconds for PID 1 to end by itself
_PLAIN = frozenset((9, 10, *range(32, 127))) - frozenset(b"%\\'")


@dataclass(slots=True)
class _Request:
    """A request of which the answer is awaited."""

    number: int
    take: TakeOutput | None = None
    """Takes what is printed before the answer."""
    unanswered: set[Stream] = field(default_factory=lambda: {1})
    """The streams on which the marker that ends it has not come yet."""
    status: int = 0


class Channel:
    """A connection that runs one program at a time; a second one meanwhile takes the engine's slower way.

    All that the container's processes write to PID 1's stdout and stderr arrives here. What comes while no program runs
    is from background services and is dropped, so that they never block on a full pipe.
    """

    def __init__(self, client: APIClient, container: str) -> None:
        """Prepare one to a container that was made with an open stdin and :data:`KEEPER` as its entry point.

        Until it is attached, everything takes the engine's way.
        """
        self._client = client
        self._container = container
        self._state = threading.Condition()
        self._busy = threading.Lock()
        self._sending = threading.Lock()
        self._current: _Request | None = None
        self._requests: dict[int, _Request] = {}
        self._count = 0
        self._mark = f"\0{uuid.uuid4().hex} ".encode()
        self._stuck = True
        self._stream: FramedStream | None = None
        self.closed = False
        """Whether the connection has ended, and so most likely the container."""

    def attach(self) -> None:
        """Attach to the container; where it was started anew, that has ended everything that ran in it."""
        self.close()
        with self._state:
            for request in self._requests.values():  # Whoever killed the program still waits for its end.
                request.unanswered.clear()
                request.status = 137
            self._requests.clear()
        attach = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        stream = FramedStream(self._client.attach_socket(self._container, params=attach), self._take)
        self._held: dict[Stream, bytes] = {1: b"", 2: b""}
        self._stream = stream
        self.closed = self._stuck = False
        name = f"channel-{self._container[:12]}"
        self._reader = threading.Thread(target=self._read, args=[stream], name=name, daemon=True)
        self._reader.start()

    def _read(self, stream: FramedStream) -> None:
        try:
            with contextlib.suppress(OSError), stream:
                stream.collect(None)
        finally:  # Whoever waits for an answer must not wait for ever.
            with self._state:
                self.closed = True
                self._state.notify_all()

    def _take(self, stream: Stream, chunk: bytes) -> None:
        """Pass output on, and find the markers in it that answer requests; a marker may come in pieces."""
        with self._state:
            held = self._held[stream] + chunk
            while (position := held.find(self._mark)) >= 0:
                self._pass_on(stream, held[:position])
                held = held[position:]
                number, end, rest = held[len(self._mark) :].partition(b"\n")
                if not end:
                    break
                self._answer(stream, number.split())
                held = rest
            else:
                begun = held.rfind(b"\0", max(0, len(held) - len(self._mark)))
                if begun < 0 or not self._mark.startswith(held[begun:]):
                    begun = len(held)
                self._pass_on(stream, held[:begun])
                held = held[begun:]
            self._held[stream] = held[: 2 * len(self._mark)]

    def _pass_on(self, stream: Stream, output: bytes) -> None:
        if output and self._current is not None and self._current.take is not None:
            self._current.take(stream, output)

    def _answer(self, stream: Stream, words: list[bytes]) -> None:
        number, status = (int(word) if word.isdigit() else -1 for word in (*words, b"", b"")[:2])
        request = self._requests.get(number)
        if request is not None and stream in request.unanswered:
            request.unanswered.discard(stream)
            request.status = status if 0 <= status <= 255 else 1
            if not request.unanswered:
                del self._requests[number]
                self._state.notify_all()

    def run(
        self,
        command: EngineCommand,
        take: TakeOutput,
        *,
        merge: bool = False,
        kill: Callable[[], None] | None = None,
    ) -> tuple[int, bool] | None:
        """Run a program as root.

        Args:
            command: What to run.
            take: Takes what it prints.
            merge: Let its stderr be its stdout.
            kill: Called at the deadline to end the program; by default PID 1 kills its process group.

        Returns:
            The exit code, and whether the program was killed at its deadline. None, and nothing has run, when another
            program runs, PID 1 is stuck, or bash cannot take the command's variables or length.

        Raises:
            ChannelClosed: The container stops meanwhile.
        """
        if not _can_take(command.env) or 4 * len(command.input) > REQUEST_LIMIT:
            return None
        script = _start_script(command, merge) + _WAIT
        streams: set[Stream] = {1} if merge else {1, 2}
        return self._run(script, take, streams, command.deadline, kill or self._kill_program)

    def control(self, script: str, patience: float = _ANSWER, output: CappedOutput | None = None) -> bool:
        """Make PID 1 run a short script itself; False when that fails, also after ``patience`` seconds.

        It does so while it waits for a program, too, whose number is ``$running``, unless there is an ``output`` that
        is to have what the script prints.
        """
        script = f"{script}\nstatus=$?\n"
        take = None if output is None else lambda _, chunk: output.add(chunk)
        try:
            ended = self._run(script, take, {1}, time.monotonic() + patience, lambda: None)
            if ended is None and output is None:
                return self._interrupt(script, patience)
            return ended == (0, False)
        except ChannelClosed:
            return False

    def _run(
        self,
        script: str,
        take: TakeOutput | None,
        streams: set[Stream],
        deadline: float | None,
        kill: Callable[[], None],
    ) -> tuple[int, bool] | None:
        if self._stuck or not self._busy.acquire(blocking=False):
            return None
        try:
            request = self._send(script, take, streams)
            if request is None:
                return None
            timed_out = not self._wait(request, deadline)
            if timed_out:
                kill()
                self._stuck = not self._wait(request, time.monotonic() + _CLOSING)
            with self._state:
                if self.closed and request.unanswered and not timed_out:
                    raise ChannelClosed
                return request.status, timed_out
        finally:
            with self._state:
                self._current = None
            self._busy.release()

    def _interrupt(self, script: str, patience: float = _ANSWER) -> bool:
        """Make PID 1 run a script while it waits for a program."""
        if self._stuck:
            return False
        request = self._send(script, None, {1})
        deadline = time.monotonic() + patience
        while request is not None and not self.closed and time.monotonic() < deadline:
            with contextlib.suppress(Exception):  # Of a container that has just ended.
                self._client.kill(self._container, signal="USR1")
            if self._wait(request, min(deadline, time.monotonic() + _WAKING)):
                return not request.unanswered and request.status == 0
        return False

    def _kill_program(self) -> None:
        self._interrupt(f"{_KILL}\nstatus=0\n")

    def end(self) -> None:
        """Make PID 1 end, and the container with it, unless a program runs; cheaper than the engine's kill."""
        if self._stream is not None and self._busy.acquire(blocking=False):
            try:
                with contextlib.suppress(ChannelClosed):
                    self._send_bytes(b"exit")
                    self._reader.join(_CLOSING)
            finally:
                self._busy.release()

    def stay(self) -> None:
        """Have PID 1 live on when the connection ends."""
        with contextlib.suppress(ChannelClosed):
            self._send_bytes(b"evocode_stays=1")

    def close(self) -> None:
        """Disconnect, which ends the container unless it is to :meth:`stay`."""
        if self._stream is not None:
            self._stream.shutdown()
            self._reader.join(_CLOSING)

    def _send(self, script: str, take: TakeOutput | None, streams: set[Stream]) -> _Request | None:
        """Send a script that sets ``status``; None when it is too long."""
        with self._state:
            self._count += 1
            request = _Request(self._count, take, set(streams))
        format = f"{self._mark.decode()}{request.number} %s\\n".replace("\0", "\\000")
        answers = "".join(f"printf '{format}' $status >&{fd}\n" for fd in (1, 3)[: len(streams)])
        message = f"{script}{answers}".encode("utf-8", "surrogateescape")
        if len(message) > REQUEST_LIMIT:
            return None
        with self._state:
            self._requests[request.number] = request
            if take is not None:
                self._current = request
        # Bash reads up to a NUL byte by byte, but in one piece what it knows the length of.
        self._send_bytes(f'IFS= LC_ALL=C read -r -N {len(message)} request; eval "$request"\0'.encode() + message)
        return request

    def _send_bytes(self, message: bytes) -> None:
        assert self._stream is not None
        try:
            with self._sending:
                # A NUL first, to end whatever somebody inside wrote into PID 1's stdin.
                self._stream.send(b"\0" + message + b"\0")
        except OSError:
            raise ChannelClosed from None

    def _wait(self, request: _Request, deadline: float | None) -> bool:
        """Wait for the answer, or the end of the connection; False at the deadline."""
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        with self._state:
            return self._state.wait_for(lambda: not request.unanswered or self.closed, left)


def _can_take(env: Mapping[str, str]) -> bool:
    """Tell whether bash can set all of these variables."""
    return all(name.isidentifier() and name.isascii() and name not in _READ_ONLY for name in env)


def _start_script(command: EngineCommand, merge: bool) -> str:
    """Return the script that starts a program, and sets ``running`` to its number."""
    exports = "".join(f"export {name}={shlex.quote(value)}; " for name, value in command.env.items())
    # PID 1's own stdout and stderr are opened anew, so that no program makes them non-blocking for it.
    streams = f">/proc/1/fd/1 {'2>&1' if merge else '2>/proc/1/fd/3'} 3>&- 4>&-"
    program = f"cd -- {shlex.quote(command.cwd)} || exit 126; {exports}exec -- {shlex.join(command.argv)}"
    feed = "exec 5</dev/null || exec 5</"
    if command.input:
        feed = f"exec 5< <(printf -- '{as_printf_format(command.input)}' 3>&- 4>&-)"
    # Without /dev/null, as after `rm -rf /`, a directory: nothing can be read from one either.
    return f"{feed}\n({program}) <&5 5<&- {streams} & running=$!\nexec 5<&-"


def as_printf_format(data: bytes) -> str:
    """Return what printf prints as these bytes, to stand between single quotes."""
    return "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in data)

"""Running a program as another user than root without an engine call, by the image's own ``setpriv``.

Where an image has none, or the agent has broken it, the program does not start, which is seen here; the engine runs it
then. What the engine would make of a name, a number and the container's own lists of users and groups is done alike.
"""

from __future__ import annotations

import shlex
import uuid
from dataclasses import dataclass, replace

from pytest_evocode.environments.command_environment import CappedOutput
from pytest_evocode.environments.docker.channel import Channel
from pytest_evocode.environments.docker.execs import EngineCommand
from pytest_evocode.environments.programs import Stream, TakeOutput

_LISTS = """for file in /etc/passwd /etc/group; do
  data=; [[ -f $file ]] && IFS= read -r -d '' data < $file
  printf '%s\\0' "$data"
done"""
_LONGEST_ID = 10  # digits
_HELD = 2**12  # bytes that are kept of what is printed before a program starts


@dataclass(frozen=True, slots=True)
class UserIds:
    """A user as the kernel knows it."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    home: str = "/"


def find_user(channel: Channel, user: str) -> UserIds | None:
    """Return a user of the container, given as a name or number; None where there is none or nobody can tell."""
    output = CappedOutput()
    if not channel.ask(_LISTS, output):
        return None
    passwd, _, group = output.text().partition("\0")
    return parse_user(passwd, group.rstrip("\0"), user)


def parse_user(passwd: str, group: str, user: str) -> UserIds | None:
    """Return a user by the contents of ``/etc/passwd`` and ``/etc/group``; a number needs no entry.

    >>> parse_user("a:x:5:6:Ann:/home/a:/bin/sh", "b:x:7:c,a", "a")
    UserIds(uid=5, gid=6, groups=(7,), home='/home/a')
    >>> parse_user("", "", "12")
    UserIds(uid=12, gid=0, groups=(), home='/')
    """
    for line in passwd.splitlines():
        fields = line.split(":")
        if len(fields) < 6 or user not in (fields[0], fields[2]):
            continue
        if is_id(fields[2]) and is_id(fields[3]):
            entries = (entry.split(":") for entry in group.splitlines())
            groups = (entry[2] for entry in entries if len(entry) == 4 and fields[0] in entry[3].split(","))
            return UserIds(int(fields[2]), int(fields[3]), tuple(map(int, filter(is_id, groups))), fields[5])
    return UserIds(int(user), 0) if is_id(user) else None


def is_id(text: str) -> bool:
    """Tell whether a text is a number of the kernel's; an agent may have written other digits where one should be."""
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_ID


class Switch:
    """A command that becomes another user's before anything else, and says so: :attr:`started`."""

    def __init__(self, command: EngineCommand, user: UserIds, take: TakeOutput) -> None:
        """``take`` gets what is printed from then on."""
        self._take_output = take
        self._gate = f"{uuid.uuid4().hex}\n".encode()
        self._held: dict[Stream, bytes] = {1: b"", 2: b""}
        gate = self._gate.decode().strip()
        exports = "".join(f"export {name}={shlex.quote(value)}; " for name, value in command.env.items())
        script = (
            f"printf '%s\\n' {gate}; printf '%s\\n' {gate} >&2; "
            f"[[ $HOME != /root ]] || export HOME={shlex.quote(user.home)}; "  # Otherwise it is the image's.
            f"cd -- {shlex.quote(command.cwd)} || exit 126; {exports}exec -- {shlex.join(command.argv)}"
        )
        groups = f"--groups={','.join(map(str, user.groups))}" if user.groups else "--clear-groups"
        argv = ["setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", groups, "--", "bash", "-c", script]
        self.command = replace(command, argv=argv, user="0", env={}, cwd="/")
        """What root has to run."""

    @property
    def started(self) -> bool:
        """Whether it became the user."""
        return 1 not in self._held

    def take(self, stream: Stream, chunk: bytes) -> None:
        """Take what the command prints."""
        held = self._held.get(stream)
        if held is None:
            self._take_output(stream, chunk)
            return
        before, gate, rest = (held + chunk).partition(self._gate)
        if not gate:
            self._held[stream] = before[-_HELD:]
            return
        del self._held[stream]
        if rest:
            self._take_output(stream, rest)

"""Base classes for environments, with what does not depend on the engine: commands, the ENTRYPOINT, and a shell.

The shell is what an agent's commands get where the container's own is gone, so that the agent can mend what it broke.
It is the image's own: its ``bash``, a few programs, their loader and libraries, taken from an environment of the image
as built and started by that loader, so that it needs no file of the container. It is brought when a command cannot be
started, and removed when the turn ends; a suite never sees it.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
import tarfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import BinaryIO, ClassVar

from pytest_evocode.environments.entry_points import EnteredProgram
from pytest_evocode.environments.programs import CappedOutput, Command, ExecResult, User
from pytest_evocode.environments.protocol import Environment
from pytest_evocode.errors import EnvironmentFault

logger = logging.getLogger(__name__)

# A longer script comes by stdin, which then is as empty for the script as it is for others.
_READ_SCRIPT = 'eval "exec </dev/null; $(cat)"'
SHELL = "/.evocode-shell"
_COLLECTING = 60.0  # seconds
_FUNCTIONS = f"{SHELL}/functions"
# `rm` because the engine removes by it, too.
_BROUGHT_FOR = ("bash", "sh", "rm")
# The files lie in `image` where the image has them, links to directories followed. It prints what starts bash.
_COLLECT = rf"""
set -e; umask 022; mkdir -p {SHELL}/image; loader= libraries= programs= functions=
add() {{ [[ ${{!1}}: == *:$2:* ]] || printf -v $1 %s "${{!1}}:$2"; }}
for name in bash sh cat chmod chown cp find grep ln ls mkdir mknod mv rm sed sleep tar touch; do
    program=$(type -P $name) || continue
    for file in $program $(ldd $program 2>&1 || :); do
        [[ $file == /* && -f $file ]] || continue
        place={SHELL}/image$(cd -P ${{file%/*}}; pwd)
        mkdir -p $place; cp -L $file $place
        case $file in
            $program)
                functions+="$name() {{ START$place/$name \"\$@\"; }}"$'\n'; add programs $place
                [[ $name != bash ]] || bash=$place/bash ;;
            */ld[-6.]*) loader=$place/${{file##*/}} ;;
            *) add libraries $place ;;
        esac
    done
done
for link in /bin /lib /lib64; do [[ ! -L $link ]] || cp -P $link {SHELL}/image; done
start=${{loader:+"$loader --library-path ${{libraries#:}} "}}
echo "${{functions//START/$start}}[[ :\$PATH: == *$programs:* ]] || PATH+=$programs" > {SHELL}/functions
echo "$start$bash"
"""
# Arguments: the directory, whether it was asked for, and the command. What nobody reads is told nothing.
_RUN = f"""
say() {{ [[ $given ]] || echo "evocode: $1" >&2; }}
directory=$1 given=$2; shift 2
if [[ ! -c /dev/null ]] || ! {{ type -P "$1" && command bash -c :; }} > /dev/null 2>&1; then
    export BASH_ENV={_FUNCTIONS}; . $BASH_ENV
    [[ -c /dev/null ]] || mknod -m 666 /dev/null c 1 3
    say "$1 cannot be started, so {SHELL} runs this, a copy of the image's that goes when the turn ends"
    say "'cp -an {SHELL}/image/. /' puts back those of its files that are missing"
fi
if [[ $given || -d $directory ]]; then
    cd -- "$directory" || exit 126
else
    say "there is no directory $directory, so this runs in /"
fi
"$@"
"""


def fits_argument(text: str) -> bool:
    """Tell whether the kernel takes a text as an argument, which has 128 KiB with the NUL at its end."""
    return len(text.encode("utf-8", "surrogatepass")) < 2**17


class CommandEnvironment(Environment, ABC):
    """A base class for environments, which implements ``exec`` on :meth:`run`.

    With :meth:`~pytest_evocode.environments.protocol.Environment.open_program` it runs the ENTRYPOINT of the image, and
    with ``_start_failures`` and ``_as_built`` it brings a shell where the container has none.
    """

    _start_failures: ClassVar[re.Pattern[str] | None] = None
    """What the output of a command begins with that could not be started; None where no shell is brought."""
    _shell: OwnShell | None = None
    _mending = False

    def exec(
        self,
        command: str | Sequence[str],
        *,
        user: User | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float | None = None,
        stdout: BinaryIO | None = None,
    ) -> ExecResult:
        """Implement :meth:`pytest_evocode.environments.protocol.Environment.exec`."""
        started = time.monotonic()
        argv, input = ("bash", "-c", command) if isinstance(command, str) else tuple(command), b""
        if isinstance(command, str) and not fits_argument(command):
            argv, input = ("bash", "-c", _READ_SCRIPT), command.encode("utf-8", "surrogateescape")
        output = CappedOutput(whole=stdout)
        # A model may ask for 1e999 seconds, for which no thread can wait.
        deadline = None if timeout is None or timeout > threading.TIMEOUT_MAX else started + timeout
        exit_code = self._run_or_mend(Command(argv, user, env or {}, cwd, input), output, deadline)
        output.check_whole()
        result = ExecResult(exit_code, output.text(), exit_code is None, time.monotonic() - started)
        if result.timed_out:
            self.enter(killed=True)
        return result

    @abstractmethod
    def run(self, command: Command, output: CappedOutput, deadline: float | None) -> int | None:
        """Run a command, add what it prints to ``output``, and return its exit code.

        At ``deadline`` (by ``time.monotonic``) kill every process but PID 1, and return None.
        """

    def enter(self, *, killed: bool = False) -> EnteredProgram | None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        if self.entry_point is None or (killed and self.entered is None):
            return None
        if self.entered is None:
            self.entered = EnteredProgram(self.entry_point)
        elif killed:
            self.entered.wait_for_end()
        else:
            return self.entered
        self.entered.begun(self.open_program(self.entered.command, self.entered.take))
        return self.entered

    def _as_built(self) -> Environment:
        """Return an environment of the image, not started, with nothing of the agent."""
        raise EnvironmentFault("this kind of environment has no shell to bring along")

    @contextlib.contextmanager
    def mendable(self) -> Iterator[None]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._mending = True
        try:
            yield
        finally:
            if self._shell is not None:
                self._shell.take_away()
            self._mending = False

    def _run_or_mend(self, command: Command, output: CappedOutput, deadline: float | None) -> int | None:
        """Do as :meth:`run`, and once more by the own shell for a command that could not be started."""
        exit_code = self.run(command, output, deadline)
        wanted = exit_code == 126 or (exit_code == 127 and command.argv[0] in _BROUGHT_FOR)
        failures = self._start_failures if self._mending and wanted else None
        if failures is None or failures.match(output.text()) is None:
            return exit_code
        if (start := self._own_shell().bring()) is None:
            return exit_code
        logger.info("a command could not be started, and is run by %s", SHELL)
        given = (command.cwd or self.workdir, "given" if command.cwd else "")
        user = "0" if command.user == "root" else command.user  # Which /etc/passwd may not know any more.
        whole = replace(command, argv=(*start, "-c", _RUN, "evocode", *given, *command.argv), user=user, cwd="/")
        return self.run(whole, output, deadline)

    def _own_shell(self) -> OwnShell:
        if self._shell is None:
            self._shell = OwnShell(self, self._as_built())
        return self._shell


class OwnShell:
    """The files of one image that make a shell."""

    def __init__(self, environment: Environment, as_built: Environment) -> None:
        """Take them from an environment of the image, not started, when they are first needed."""
        self._environment = environment
        self._as_built = as_built
        self._collecting = threading.Lock()
        self._start: list[str] | None = None
        self._files = b""
        self._is_there = False

    def bring(self) -> list[str] | None:
        """Put the shell into the environment unless it is there, and return what starts it; None for no shell."""
        with self._collecting:
            self._collect()
            if self._start:
                self._is_there = True  # Also where a fork has it from the turn that it was made in.
                if self._environment.read_files({_FUNCTIONS: 2**16})[_FUNCTIONS] is None:
                    self._environment.put_trees((), (), io.BytesIO(self._files))
            return self._start or None

    def take_away(self) -> None:
        """Remove the shell if it was brought."""
        was_there, self._is_there = self._is_there, False
        try:
            self._environment.remove([SHELL] if was_there else [])
        except EnvironmentFault as error:  # An agent that keeps it from being removed keeps it, and is no fault.
            logger.warning("%s stays: %s", SHELL, error)

    def put_back(self) -> None:
        """Put its files where the image has them, for good: an environment itself may need a shell to start."""
        with self._collecting:
            self._collect()
        files = io.BytesIO()
        with tarfile.open(fileobj=io.BytesIO(self._files)) as source, tarfile.open(fileobj=files, mode="w") as target:
            for member in source:
                _, at_image, member.name = member.name.partition(f"{SHELL}/image/".lstrip("/"))
                if at_image:
                    target.addfile(member, source.extractfile(member) if member.isreg() else None)
        files.seek(0)
        self._environment.put_trees((), (), files)

    def _collect(self) -> None:
        if self._start is not None:
            return
        source, files = self._as_built, io.BytesIO()
        try:
            source.start()
            collected = source.exec(_COLLECT, user="0", cwd="/", timeout=_COLLECTING)
            source.pack_trees([SHELL], files)
        finally:
            source.stop()
        self._start, self._files = collected.output.split() if collected.ok else [], files.getvalue()
        if not collected.ok:
            logger.warning("the image has no shell to bring along: %s", collected.tail(3))

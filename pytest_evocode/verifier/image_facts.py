"""What a task's image is like as built, before an agent has been there: found out once for each image."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import PurePosixPath

from filelock import FileLock

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.atomic_write import write_atomically

_VERSION = 1
#: Files and directories of a home directory that shells read by themselves.
SHELL_START_UP = (
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".login", ".logout",
    ".inputrc", ".kshrc", ".mkshrc", ".shrc", ".cshrc", ".tcshrc", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
    ".zlogout", ".config/fish", ".pam_environment", ".ssh/environment", ".ssh/rc", ".pythonrc", ".pythonrc.py",
    ".pythonstartup", ".pystartup",
)  # fmt: skip
ACCOUNTS = ("/etc/passwd", "/etc/group")
_LIMIT = 2**20  # bytes
_NOBODY = 65534
# Variables that name no place with programs or libraries.
_NOT_PLACES = re.compile(r"HOME|PWD|OLDPWD|TMPDIR|TMP|TEMP|MAIL|.*CACHE.*|.*LOG.*|HISTFILE|_")
# Of directories of the system every change counts, so what is there need not be known. The argument is the workspace.
_LOOK = r"""
LC_ALL=C
cat "/proc/$$/environ"; printf '\0\0'
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /usr -o -path /opt -o -path /etc \) -prune \
  -o \( -name pyvenv.cfg -o -name conda-meta \) -print0 2>/dev/null
printf '\0\0'
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /usr -o -path /opt -o -path /etc -o -path '/lib*' \
  -o -path /bin -o -path /sbin -o -path /tmp -o -path /run -o -path /var -o -path /root -o -path /home -o -path /logs \
  -o -path /tests -o -path /solution -o -path "$1" \) -prune -o ! -type d -print0 2>/dev/null
printf '\0\0'
IFS=:
for directory in $PATH; do
  case "$directory/" in "$1"/*) continue;; esac
  for program in "$directory"/*; do
    if [ -x "$program" ]; then printf '%s\0' "${program##*/}"; fi
  done
done
printf '\0'
"""


@dataclass(frozen=True)
class ImageFacts:
    """What an image is like as built."""

    variables: dict[str, str]
    """The environment variables of a command that gets no others."""
    environments: tuple[str, ...]
    """The directories of Python's virtual environments and of conda's, but for those in ``/usr`` and ``/opt``."""
    programs: frozenset[str]
    """The names of the programs on PATH that are not in the workspace."""
    files: frozenset[str]
    """The files outside of the workspace, of home directories and of the usual directories of a system."""
    accounts: dict[str, str]
    """The contents of :data:`ACCOUNTS`; without those that are not there."""
    start_up: dict[str, str]
    """The contents of :data:`SHELL_START_UP` in home directories, by absolute path."""

    @cached_property
    def own(self) -> frozenset[str]:
        """The files and the directories above them."""
        above = (parent for file in self.files for parent in PurePosixPath(file).parents)
        return self.files | {str(parent) for parent in above} - {"/"}

    @cached_property
    def path(self) -> tuple[str, ...]:
        """The directories on PATH."""
        return _directories(self.variables.get("PATH", ""))

    @cached_property
    def named(self) -> tuple[str, ...]:
        """All absolute paths that variables name, those of PATH, PYTHONPATH and JAVA_HOME among them."""
        values = (value for name, value in self.variables.items() if not _NOT_PLACES.fullmatch(name))
        return tuple(dict.fromkeys(path for value in values for path in _directories(value)))

    @cached_property
    def start_up_places(self) -> tuple[str, ...]:
        """Where shells and Pythons find in home directories what they run before anything else."""
        names = (*SHELL_START_UP, ".local/lib")
        return tuple(f"{home}/{name}" for home in self.homes for name in names)

    @cached_property
    def homes(self) -> tuple[str, ...]:
        """The home directories of root and of people's accounts."""
        return homes_in(self.accounts.get("/etc/passwd", ""))


def homes_in(passwd: str) -> tuple[str, ...]:
    r"""Return the home directories of root and of people, by the lines of an ``/etc/passwd``.

    >>> homes_in("root:x:0:0::/root:/bin/sh\nbin:x:2:2::/bin:\nme:x:1000:1000::/home/me:/bin/sh\n")
    ('/root', '/home/me')
    """
    homes = ["/root"]
    for line in passwd.split("\n"):
        fields = line.split(":")
        if len(fields) >= 6 and fields[2].isdigit() and (fields[2] == "0" or 1000 <= int(fields[2]) < _NOBODY):
            homes.append(fields[5].rstrip("/"))
    return tuple(dict.fromkeys(home for home in homes if home.startswith("/")))


def _directories(value: str) -> tuple[str, ...]:
    return tuple(part.rstrip("/") for part in value.split(":") if part.startswith("/") and part.strip("/"))


def image_facts(engine: Engine, task: Task) -> ImageFacts:
    """Return what a task's image is like; an environment is started for it unless it is known.

    Raises :class:`~pytest_evocode.errors.EnvironmentFault` and :class:`~pytest_evocode.errors.BuildError`.
    """
    known = cache_directory() / "images"
    known.mkdir(exist_ok=True)
    key = hashlib.sha256(f"{engine.name}\0{engine.image_key(task)}\0{_VERSION}\0{_LOOK}".encode()).hexdigest()[:32]
    file = known / f"{key}.json"
    if not file.exists():
        with FileLock(known / f"{key}.lock"):
            if not file.exists():
                facts = asdict(_find(engine, task))
                write_atomically(file, json.dumps(facts, default=sorted))
    found = json.loads(file.read_text())
    sets = {name: frozenset(found[name]) for name in ("programs", "files")}
    return ImageFacts(**{**found, **sets, "environments": tuple(found["environments"])})


def _find(engine: Engine, task: Task) -> ImageFacts:
    environment = engine.create(task.alone(), env={}, network="no-network")
    try:
        environment.start()
        look = ["bash", "-c", _LOOK, "look", environment.workdir.rstrip("/")]
        with tempfile.TemporaryFile() as output:
            result = environment.exec(look, user="0", cwd="/", timeout=120, stdout=output)
            output.seek(0)
            parts = output.read().decode("utf-8", "surrogateescape").split("\0\0")
        if not result.ok or len(parts) < 4:
            raise EnvironmentFault(f"the image of {task.name} cannot be looked at: {result.tail(3)}")
        variables, environments, files, programs = (part.strip("\0").split("\0") for part in parts[:4])
        accounts = _texts(environment, ACCOUNTS)
        homes = homes_in(accounts.get("/etc/passwd", ""))
        return ImageFacts(
            variables=dict(each.split("=", 1) for each in variables if "=" in each),
            environments=tuple(sorted({each.rpartition("/")[0] for each in environments if each.count("/") > 1})),
            programs=frozenset(filter(None, programs)),
            files=frozenset(filter(None, files)),
            accounts=accounts,
            start_up=_texts(environment, [f"{home}/{name}" for home in homes for name in SHELL_START_UP]),
        )
    finally:
        environment.stop()


def _texts(environment: Environment, paths: tuple[str, ...] | list[str]) -> dict[str, str]:
    """Return the contents of those of some files that are regular and small."""
    found = environment.read_files(dict.fromkeys(paths, _LIMIT))
    return {path: each.decode("latin-1") for path, each in found.items() if isinstance(each, bytes)}

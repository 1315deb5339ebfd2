"""Builds of images: each content once, a few ahead of their use at a time, and ended when nobody waits any more.

What agents need is installed with the machine's proxies and certificates; of what failed the log is told.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from pytest_evocode.environments.cache import cache_directory, try_lock
from pytest_evocode.environments.engines import BuildWish, Installation
from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import BuildError, Cancelled, EnvironmentFault
from pytest_evocode.secrets import Scrubber
from pytest_evocode.tasks.atomic_write import write_atomically

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
#: Variables of this machine that name a file of certificates, the most general first.
_CERTIFICATES = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
#: Where a script finds the certificates while it runs.
CERTIFICATES = "/run/evocode-certificates.pem"
_CERTIFICATE = re.compile(
    rb"-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----.*?-----END (?:TRUSTED |X509 )?CERTIFICATE-----", re.DOTALL
)
_SHOWN_LINES = 20
#: What BuildKit prints of a step's own output: its number, and the seconds since its start.
_OF_STEP = re.compile(r"^#\d+ \d+\.\d+ (.*)$")
#: Beginnings of lines that the builder before BuildKit prints after a step's own output.
_OF_OLD_BUILDER = ("The command '", "Removing intermediate container", " ---> ")
# Programs differ in whether their variable adds certificates or replaces the system's; a file with both serves all.
_TRUST = f"""
if [ -s {CERTIFICATES} ]; then
    evocode_certificates=$(mktemp)
    trap 'rm -f "$evocode_certificates"' EXIT
    for file in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
        if [ -s "$file" ]; then cat "$file" >>"$evocode_certificates"; echo >>"$evocode_certificates"; break; fi
    done
    cat {CERTIFICATES} >>"$evocode_certificates"
    chmod 644 "$evocode_certificates"
    for name in {" ".join(_CERTIFICATES)} npm_config_cafile GIT_SSL_CAINFO; do
        export "$name=$evocode_certificates"
    done
    if command -v apt-get >/dev/null; then
        export APT_CONFIG=$evocode_certificates.apt
        echo "Acquire::https::CaInfo \\"$evocode_certificates\\";" >"$APT_CONFIG"
        trap 'rm -f "$evocode_certificates" "$APT_CONFIG"' EXIT
    fi
fi
"""


def proxies(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the machine's settings of proxies, each in the two spellings that programs look for.

    >>> proxies({"https_proxy": "http://proxy:3128"})
    {'HTTPS_PROXY': 'http://proxy:3128', 'https_proxy': 'http://proxy:3128'}
    """
    found = {name: environ.get(name) or environ.get(name.lower()) for name in _PROXIES}
    return {each: value for name, value in found.items() if value for each in (name, name.lower())}


def certificates(installation: Installation, environ: Mapping[str, str] = os.environ) -> bytes:
    """Return the certificates that the installation is to trust beside the image's own; empty without any.

    They are those of :attr:`Installation.ca` and of all files that the machine's variables name.

    Raises:
        BuildError: One of the files cannot be read, or has no certificate.
    """
    named = [("the option ca", str(installation.ca))] if installation.ca is not None else []
    named += [(name, environ[name]) for name in _CERTIFICATES if environ.get(name)]
    found: dict[bytes, None] = {}
    for where, path in named:
        try:
            text = Path(path).read_bytes()
        except OSError as error:
            raise BuildError(f"{where} names {path}, which cannot be read: {error.strerror}; correct it") from None
        # A key beside them would be in a layer of the image.
        if not (blocks := _CERTIFICATE.findall(text)):
            raise BuildError(f"{where} names {path}, which has no certificate in PEM form; correct it")
        found[b"".join(block + b"\n" for block in blocks)] = None
    return b"".join(found)


def install_script(installation: Installation, engine: str) -> str:
    """Return the script to run, which trusts :data:`CERTIFICATES` where there are some."""
    # In a shell of its own, whose trap the script's does not replace.
    ending = f"done=$?\nrm -f {CERTIFICATES}\nexit $done\n"
    return f"export EVOCODE_ENGINE={engine}\n{_TRUST}\n(\n{installation.script}\n)\n{ending}"


def failed_installation(installation: Installation, where: str, output: str) -> BuildError:
    """Return the error for an installation that failed, with the failing command's last lines; keeps the whole log.

    Args:
        installation: What was to be installed.
        where: On what, and how it ended.
        output: All that was printed.
    """
    directory = cache_directory() / "installation-logs"
    directory.mkdir(exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", installation.name).strip("-")
    log = directory / f"{name}-{time.strftime('%Y-%m-%d__%H-%M-%S')}-{os.getpid()}.log"
    log.write_text(Scrubber().text(output), encoding="utf-8")  # Such as the password of a proxy.
    last = "\n".join(line[:2000] for line in own_lines(output)[-_SHOWN_LINES:])
    return BuildError(
        f"{installation.name} could not be installed {where}. The whole log is {log}; its last lines are:\n{last}"
    )


def own_lines(output: str) -> list[str]:
    r"""Return the lines that a script printed, without what BuildKit, or the builder before it, prints around them.

    >>> own_lines("#5 [2/2] RUN [...]\n#5 0.1 fetching\n#5 1.2 not found\n#5 ERROR: process ...\n------\n > [2/2]")
    ['fetching', 'not found']
    >>> own_lines("Step 2/2 : RUN [...]\n ---> Running in 5a\nnot found\nThe command 'bash' returned ...")
    ['not found']
    """
    lines = output.rstrip().splitlines()
    own = [found[1] for line in lines if (found := _OF_STEP.match(line))]
    running = [number for number, line in enumerate(lines) if line.startswith(" ---> Running in ")]
    if not own and running:
        # It ends with the whole script, in many lines.
        own = list(itertools.takewhile(lambda line: not line.startswith(_OF_OLD_BUILDER), lines[running[-1] + 1 :]))
    return [line for line in own if line.strip()] or lines


logger = logging.getLogger(__name__)

T = TypeVar("T")
_INTERVAL = 0.1  # seconds between two looks at whether a build is still wanted
_AT_ONCE = 4
"""Builds on this machine that nobody waits for yet: most of them wait for a network or a disk, and not for a core."""


def builds_at_once() -> int:
    """Return how many images this machine builds ahead of their use at the same time."""
    return min(_AT_ONCE, os.cpu_count() or 1)


class Builds:
    """Makes each image once, under a lock that all sessions on this machine share.

    With a directory for ``failed`` builds no build that failed is begun again by whoever shares that directory: an
    image that was built ahead of its use fails once, and where it is needed.
    """

    def __init__(self, failed: Path | None = None) -> None:
        self._failed = failed

    def once(
        self, name: str | None, lock: Path, find: Callable[[], T | None], build: Callable[[], T], wish: BuildWish
    ) -> tuple[T, bool]:
        """Return what ``find`` finds, or else what ``build`` makes, and whether it was made now.

        Args:
            name: Tells this build from others that may fail for other reasons; None for one that is begun again
                where it failed.
            lock: The file whose lock the builder holds; those who come meanwhile wait.
            find: Looks for what an earlier build made.
            build: Makes it.
            wish: How it is asked for.

        Raises:
            BuildError: The build failed, now or before.
            Cancelled: It is not wanted any more.
        """
        if (found := find()) is not None:
            return found, False
        with _slot(wish), _locked(lock, wish.cancelled):
            if (found := find()) is not None:
                return found, False
            failed = None
            if self._failed is not None and name is not None:
                failed = self._failed / f"{hashlib.sha256(os.fsencode(name)).hexdigest()[:32]}.json"
                if failed.exists():
                    raise BuildError(json.loads(failed.read_text(encoding="utf-8")))
            try:
                return build(), True
            except EnvironmentFault as error:
                if wish.cancelled.is_set():  # Then it was ended, and the error says nothing of the image.
                    raise Cancelled(STOPPED) from None
                if isinstance(error, BuildError) and failed is not None:
                    with contextlib.suppress(OSError):  # Then it fails a second time.
                        write_atomically(failed, json.dumps(str(error)))
                raise


@contextlib.contextmanager
def _slot(wish: BuildWish) -> Iterator[None]:
    """Hold one of the machine's slots for builds, or none where somebody waits for the image and all are taken."""
    directory = cache_directory() / "builds"
    directory.mkdir(exist_ok=True)
    files = [directory / f"slot-{number}.lock" for number in range(builds_at_once())]
    lock = next((lock for file in files if (lock := try_lock(file)) is not None), None)
    while lock is None and wish.ahead:
        if wish.cancelled.wait(_INTERVAL):
            raise Cancelled(STOPPED)
        lock = next((lock for file in files if (lock := try_lock(file)) is not None), None)
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


@contextlib.contextmanager
def _locked(path: Path, cancelled: threading.Event) -> Iterator[None]:
    lock = FileLock(path)
    while not lock.is_locked:
        if cancelled.is_set():
            raise Cancelled(STOPPED)
        with contextlib.suppress(Timeout):
            lock.acquire(timeout=_INTERVAL)
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def ending_when(cancelled: threading.Event, end: Callable[[], object]) -> Iterator[None]:
    """Call ``end`` from another thread if ``cancelled`` is set while the context lasts."""
    left = threading.Event()

    def watch() -> None:
        while not left.wait(_INTERVAL):
            if cancelled.is_set():
                # Again and again: it may have been about to start during an earlier call.
                with contextlib.suppress(EnvironmentFault):
                    end()

    watcher = threading.Thread(target=watch, name="build-watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        left.set()
        watcher.join()

"""The lowest layer of a sandbox's image: what a base image has beside ``/usr``, which is this machine's own.

On Debian and its kin it has the packages of a base image, by dpkg's own database: those that are essential, APT, and
what these depend on. All others count as not installed, so that ``apt-get install`` brings their files in ``/etc`` and
``/var`` and their users, too.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import platform
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from string import Template

from pytest_evocode.environments.sandbox.environment import PATH

# What programs need to start, resolve names of services and check certificates; nothing about this machine's users.
_ETC_ALLOWED = (
    "alternatives", "apt", "ca-certificates", "ca-certificates.conf", "debian_version", "dpkg", "ethertypes", "fonts",
    "java-*", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "magic", "mime.types", "nsswitch.conf",
    "os-release", "perl", "pki", "protocols", "python3*", "resolv.conf", "services", "ssl/certs", "ssl/openssl.cnf",
    "terminfo", "timezone",
)  # fmt: skip
# Of an address, of APT's auth.conf, and of a client's certificate.
_CREDENTIALS = re.compile(rb"://[^/\s\"]*@|\bmachine\s+\S+\s+(login|password)\s|PRIVATE KEY-----")
_PASSWD = """root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"""
_GROUP = "root:x:0:\ndaemon:x:1:\ntty:x:5:\nstaff:x:50:\nusers:x:100:\nnogroup:x:65534:\n"
# As Debian's images have it: a new user has a group of its own, and not "users".
_LOGIN_DEFS = """UID_MIN 1000
UID_MAX 60000
GID_MIN 1000
GID_MAX 60000
UMASK 022
USERGROUPS_ENAB yes
DEFAULT_HOME yes
ENCRYPT_METHOD SHA512
"""
# What pam-auth-update writes in Debian's images: this machine's own may ask for a directory of its users.
_PAM = {
    "auth_primary": "auth\t[success=1 default=ignore]\tpam_unix.so nullok",
    "account_primary": "account\t[success=1 new_authtok_reqd=done default=ignore]\tpam_unix.so",
    "password_primary": "password\t[success=1 default=ignore]\tpam_unix.so obscure yescrypt",
    "session_primary": "session\t[default=1]\t\t\tpam_permit.so",
    "session_additional": "session\trequired\tpam_unix.so",
    "session_nonint_primary": "session\t[default=1]\t\t\tpam_permit.so",
    "session_nonint_additional": "session\trequired\tpam_unix.so",
}
_DIRECTORIES = {
    "etc": 0o755, "home": 0o755, "media": 0o755, "mnt": 0o755, "opt": 0o755, "root": 0o700, "run": 0o755, "srv": 0o755,
    "tmp": 0o1777, "var/cache": 0o755, "var/lib": 0o755, "var/log": 0o755, "var/tmp": 0o1777, "usr": 0o755,
    "proc": 0o555, "dev": 0o755,
}  # fmt: skip
_DPKG = Path("/var/lib/dpkg")
_ONE_USER = 'APT::Sandbox::User "root";\n'
# Before dpkg replaces a file it makes a link to it, which the kernel allows to its owner alone. Names may have spaces:
# the shell is told to take what stands for one as it is.
_OWNING = (
    "set -f; IFS=; while read -r deb; do "
    "dpkg-deb --fsys-tarfile $deb | tar -t --quoting-style=literal | sed 's|^[.]||' | while read -r file; do "
    "if test -f $file && test ! -L $file && test ! -O $file; then cp -p $file $file.own && mv $file.own $file; fi; "
    "done; done"
)
# What dpkg was called with, by its number: packages, and directories of them for --recursive, as APT does.
_HOOK = "pre-invoke=sh /etc/dpkg/one-user $PPID\n"
_OWNING_PACKAGES = f"""\
case $DPKG_HOOK_ACTION in install|unpack) ;; *) exit 0 ;; esac
tr '\\0' '\\n' </proc/$1/cmdline | tail -n +2 | grep -v '^-' | while read -r path; do
    find "$path" -name '*.deb' 2>/dev/null
done | ({_OWNING})
"""
_FIELD = re.compile(r"^([\w-]+):[ \t]*(.*(?:\n[ \t].*)*)", re.MULTILINE)
_INSTALLED = re.compile(r"^Status: \w+ ok (?:installed|triggers-\w+)$", re.MULTILINE)
_TRIGGERS = re.compile(r"^Triggers-\w+:.*\n?", re.MULTILINE)
_ALONE = re.compile(r"[\s(:]")  # What may follow the name of a package that another depends on.


def host_system() -> str:
    """Return the host's distribution, such as ``Debian GNU/Linux 12 (bookworm)``."""
    with contextlib.suppress(OSError):
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    return "Linux"


def lay_least(base: Path) -> None:
    """Make the layer with what any program needs: directories, users and the name of the machine."""
    root = base / "root"
    for name, mode in _DIRECTORIES.items():
        _make(root / name)
        (root / name).chmod(mode)
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        host = Path("/", name)
        if host.is_symlink():
            (root / name).symlink_to(os.readlink(host))
        elif host.is_dir():
            _make(root / name)
    _make(base / "usr/local/bin")
    _lay_users(root / "etc")
    _lay_names(root / "etc")


def _make(directory: Path) -> None:
    """Make a directory, and those above it, open to all users whatever this process's umask is."""
    if not directory.exists():
        _make(directory.parent)
        directory.mkdir()
        directory.chmod(0o755)


def _write(file: Path, text: str) -> None:
    """Write a file that all users can read whatever this process's umask is."""
    file.write_text(text)
    file.chmod(0o644)


def _lay_names(etc: Path) -> None:
    """Write what engines, too, write into each container: the names of the machine."""
    _write(etc / "hosts", "127.0.0.1 localhost evocode\n::1 localhost\n")
    _write(etc / "hostname", "evocode\n")


def lay_over_image(base: Path, image: Path, *, rootless: bool) -> None:
    """Make the layer above a system that the user gave, with what engines, too, put into each container.

    Args:
        base: The directory of the layer.
        image: That of the system.
        rootless: Whether there is one user only.
    """
    root = base / "root"
    for name in ("etc", "proc", "dev"):
        _make(root / name)
    _make(base / "usr")
    _lay_names(root / "etc")
    with contextlib.suppress(OSError):
        _write(root / "etc/resolv.conf", Path("/etc/resolv.conf").read_text(errors="replace"))
    if rootless and (image / "root/etc/apt").is_dir():
        _lay_settings_of_one_user(root)


def _lay_settings_of_one_user(root: Path) -> None:
    """Tell APT that there is no other user that downloads could be left to."""
    settings = root / "etc/apt/apt.conf.d"  # There may be dpkg without APT.
    _make(settings)
    _write(settings / "99-one-user", _ONE_USER)


def _lay_hook_of_one_user(root: Path) -> None:
    """Have the files of the host's that a package replaces made one's own before."""
    _make(root / "etc/dpkg/dpkg.cfg.d")
    _write(root / "etc/dpkg/dpkg.cfg.d/one-user", _HOOK)
    _write(root / "etc/dpkg/one-user", _OWNING_PACKAGES)


def lay_base(base: Path, *, promised_tool: str | None, rootless: bool) -> None:
    """Make the layer, with the allowed files of ``/etc`` and the packages of a base image."""
    lay_least(base)
    root = base / "root"
    for name in ("shadow", "gshadow") if not rootless else ():
        with contextlib.suppress(LookupError):  # Only Debian and its kin have that group.
            shutil.chown(root / "etc" / name, group="shadow")
    for pattern in _ETC_ALLOWED:
        for found in sorted(glob.glob(f"/etc/{pattern}")):
            _copy_public(found, root)
    if (_DPKG / "status").is_file():
        _lay_packages(root, rootless=rootless)
        if rootless:
            _lay_settings_of_one_user(root)
            _lay_hook_of_one_user(root)
    if promised_tool == "python3":
        # Images named python have `python`; Debian's own system has only `python3`.
        if not shutil.which("python", path=PATH):
            (base / "usr/local/bin/python").symlink_to(shutil.which("python3", path=PATH) or "/usr/bin/python3")
        # And their pip installs into a Python that no distribution manages.
        _write(root / "etc/pip.conf", "[global]\nbreak-system-packages = true\n")


def lay_directories(layer: Path) -> None:
    """Make a layer of all directories of ``/usr``, empty and one's own.

    Without root, nobody but the host's root may write to the host's, and the files below show in these all the same.
    """
    made: list[tuple[str, Path]] = []
    (layer / "root").mkdir()
    for place, names, _ in os.walk("/usr"):
        names[:] = [name for name in names if os.path.join(place, name) != str(layer)]  # The cache may be there, too.
        made.append((place, layer / place.lstrip("/")))
        made[-1][1].mkdir()
    for place, own in reversed(made):  # From below, because what is made in a directory changes its times.
        with contextlib.suppress(FileNotFoundError):  # Somebody has just removed it.
            shutil.copystat(place, own)
        own.chmod(own.stat().st_mode | 0o700)


@cache
def packages_digest() -> str:
    """Return what stands for the packages of this machine; where dpkg has none, for its distribution alone.

    A session that runs while they change goes on with those that it began with.
    """
    status = b""
    with contextlib.suppress(OSError):
        status = (_DPKG / "status").read_bytes()
    return hashlib.sha256(status + host_system().encode()).hexdigest()


def _lay_users(etc: Path) -> None:
    """Write the users and groups that Debian gives every system, or the three that programs look for.

    None has a password. One that the file of passwords does not have PAM does not know, and lets nobody change it.
    """
    for name, otherwise, shadow, fields in (
        ("passwd", _PASSWD, "shadow", "*::0:99999:7:::"),
        ("group", _GROUP, "gshadow", "*::"),
    ):
        text = otherwise
        with contextlib.suppress(OSError):
            text = Path(f"/usr/share/base-passwd/{name}.master").read_text().replace(":*:", ":x:")
        _write(etc / name, text)
        _write(etc / shadow, "".join(f"{line.partition(':')[0]}:{fields}\n" for line in text.splitlines()))
        (etc / shadow).chmod(0o640)
    _write(etc / "login.defs", _LOGIN_DEFS)
    _make(etc / "default")
    _write(etc / "default/useradd", "SHELL=/bin/sh\n")


def _lay_packages(root: Path, *, rootless: bool) -> None:
    """Write dpkg's database of the base packages, and what they have in ``/etc`` and ``/var``."""
    packages = base_packages((_DPKG / "status").read_text(errors="replace"))
    here = root / _DPKG.relative_to("/")
    for name in ("info", "updates", "alternatives", "triggers", "parts"):
        _make(here / name)
    _write(here / "status", "".join(f"{text}\n\n" for text in packages.values()))
    for name in ("available", "diversions", "statoverride", "triggers/File", "triggers/Unincorp"):
        _write(here / name, "")
    _write(here / "info/format", "1\n")
    files: dict[str, list[Path]] = {}
    for file in (_DPKG / "info").iterdir():
        files.setdefault(file.stem, []).append(file)
    for name, text in packages.items():
        fields = dict(_FIELD.findall(text))
        kept = dict(line.split()[:2] for line in fields.get("Conffiles", "").splitlines() if line.strip())
        own = [*files.get(name, ()), *files.get(f"{name}:{fields.get('Architecture')}", ())]
        for file in own:
            shutil.copy(file, here / "info" / file.name)
        for path in _listed(own):
            _lay_packaged(path, root, kept.get(path), rootless=rootless)
    if "libpam-runtime" in packages:
        _lay_pam(root / "etc/pam.d")


def _lay_pam(settings: Path) -> None:
    """Write what the settings of programs that change or check users include; libpam-runtime has it in no package."""
    _make(settings)
    for template in Path("/usr/share/pam").glob("common-*"):
        if not template.suffix:
            _write(settings / template.name, Template(template.read_text()).safe_substitute(defaultdict(str, _PAM)))


def base_packages(status: str) -> dict[str, str]:
    """Return the paragraphs of dpkg's status of the packages that a base image has, by name.

    Of a package that is there for several architectures, it is the one for dpkg's own. None is held, and none waits for
    triggers, whatever this machine's do.
    """
    paragraphs: dict[str, str] = {}
    fields: dict[str, dict[str, str]] = {}
    provided: dict[str, str] = {}
    texts = [_TRIGGERS.sub("", text) for text in status.strip().split("\n\n") if _INSTALLED.search(text)]
    every: list[tuple[str, dict[str, str]]] = [
        (_INSTALLED.sub("Status: install ok installed", text), dict(_FIELD.findall(text))) for text in texts
    ]
    native = {found.get("Architecture") for _, found in every if found.get("Package") == "dpkg"} | {"all"}
    for text, found in every:
        name = found.get("Package")
        if name and (native == {"all"} or found.get("Architecture") in native):
            paragraphs[name], fields[name] = text, found
            provided |= dict.fromkeys(_names(found.get("Provides", ""), ","), name)
    base: dict[str, str] = {}
    waiting = [name for name, found in fields.items() if found.get("Essential") == "yes" or name == "apt"]
    while waiting:
        name = waiting.pop()
        if name in base:
            continue
        base[name] = paragraphs[name]
        for group in f"{fields[name].get('Pre-Depends', '')},{fields[name].get('Depends', '')}".split(","):
            there = [each if each in fields else provided.get(each, "") for each in _names(group, "|")]
            waiting += [each for each in there if each][:1]
    return dict(sorted(base.items()))


def _names(relation: str, between: str) -> list[str]:
    return [_ALONE.split(each.strip(), maxsplit=1)[0] for each in relation.split(between) if each.strip()]


def _listed(files: Iterable[Path]) -> Iterator[str]:
    """Yield the paths of a package in ``/etc`` and ``/var``, directories before what is in them."""
    for file in (each for each in files if each.suffix == ".list"):
        yield from (path for path in file.read_text().splitlines() if path.startswith(("/etc/", "/var/")))


def _lay_packaged(path: str, root: Path, digest: str | None, *, rootless: bool) -> None:
    """Copy a package's directory or file; not a file of settings with another digest, which is this machine's own."""
    target = root / path.lstrip("/")
    if os.path.isdir(path) and not os.path.islink(path):
        if not target.exists():
            _make(target)
            info = os.stat(path)
            if not rootless:
                os.chown(target, info.st_uid, info.st_gid)
            target.chmod(info.st_mode & 0o7777)
        return
    with contextlib.suppress(OSError):
        if not os.path.lexists(target) and (
            digest is None or hashlib.md5(Path(path).read_bytes(), usedforsecurity=False).hexdigest() == digest
        ):
            _copy_public(path, root)


def _copy_public(path: str, root: Path) -> None:
    """Copy what every user of this machine can read, without credentials; links stay, dangling ones are left out."""
    source, target = Path(path), root / path.lstrip("/")
    _make(target.parent)
    if source.is_dir() and not source.is_symlink():
        if source.stat().st_mode & 0o005 != 0o005:
            return
        _make(target)
        for child in source.iterdir():
            _copy_public(str(child), root)
    elif source.is_symlink() and str(source.readlink()).startswith(("/etc", "/usr", "/bin", "/sbin", "/lib", "..")):
        target.symlink_to(source.readlink())
    elif source.is_file() and _is_public(source) and not _CREDENTIALS.search(source.read_bytes()):
        shutil.copy(source, target)


def _is_public(file: Path) -> bool:
    """Tell whether all may read a file; what a link leads to may be in a directory that is closed to others."""
    above = file.resolve().parents if file.is_symlink() else ()
    return bool(file.stat().st_mode & 0o004) and all(each.stat().st_mode & 0o001 for each in above)

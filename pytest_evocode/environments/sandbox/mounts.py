"""Devices and ``/proc`` of a sandbox, so that no file there is the host's or another sandbox's too; standard library.

Bubblewrap's own devices are the host's inodes: their mode and times can be changed, and a lock on one is seen by all.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import struct
from typing import Any

from .identity import check, enter_namespaces, libc

CLONE_NEWNS = 0x00020000
OPAQUE = "user.overlay.opaque"  # bubblewrap mounts overlays with "userxattr", as root too.
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _SLAVE = 1, 2, 4, 8, 0x20, 0x1000, 0x4000, 0x80000
#: What bubblewrap puts into a sandbox's /dev.
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
# The kernel lets uid 0 write settings of the whole machine without any capability, a program to run for every core dump
# among them, and bubblewrap covers only what looks writable: /proc/sys itself does not.
_READ_ONLY = ("sys", "fs", "irq", "bus", "sysrq-trigger", "acpi", "scsi", "mtrr")
# What tells of the whole machine and no program needs: the counts of files, locks and keys could carry a message, and
# the others give addresses or times of the kernel.
_UNREADABLE = (
    *("allocinfo", "buddyinfo", "interrupts", "iomem", "ioports", "kallsyms", "kcore", "key-users", "keys", "kmsg"),
    *("kpagecgroup", "kpagecount", "kpageflags", "latency_stats", "locks", "modules", "pagetypeinfo", "sched_debug"),
    *("schedstat", "slabinfo", "softirqs", "timer_list", "vmallocinfo", "zoneinfo"),
    *(f"sys/fs/{name}" for name in ("aio-nr", "dentry-state", "file-nr", "inode-nr", "inode-state")),
    "sys/kernel/pty/nr",
)


def _mount(source: str, target: str, flags: int, kind: str | None = None) -> None:
    words = (source, target, kind)
    check(libc.mount(*(word and word.encode() for word in words), flags, None), f"mounting {target}")


def _cover(source: str, target: str, flags: int) -> None:
    """Let a file or directory be seen at another place with fewer rights."""
    _mount(source, target, _BIND)
    _restrict(target, flags)


def _restrict(mounted: str, flags: int) -> None:
    _mount("none", mounted, _REMOUNT | _BIND | _NOSUID | _NOEXEC | flags)


def own_devices() -> None:
    """Put devices into the /dev of this process that only the sandbox has that it becomes, where root may make some."""
    if os.getuid() != 0:
        return
    with contextlib.suppress(PermissionError):
        check(libc.unshare(CLONE_NEWNS), "unshare")
        _mount("none", "/", _REC | _SLAVE)
        _mount("tmpfs", "/dev/pts", _NOSUID | _NOEXEC, "tmpfs")  # A sandbox has other terminals than the host.
        for name in _DEVICES:
            device, own = f"/dev/{name}", f"/dev/pts/{name}"
            os.mknod(own, stat.S_IFCHR, os.stat(device).st_rdev)
            os.chmod(own, 0o666)
            _mount(own, device, _BIND)


def hold_devices() -> None:
    """Take shared locks of the host's devices, for as long as this process lives.

    Where sandboxes have to share them, nobody there gets another lock than a shared one, and nobody can tell whether
    somebody else has that: the first lock that the kernel names to who asks is always this one.
    """
    for name in _DEVICES[:-1]:
        with contextlib.suppress(OSError):  # Somebody of the host has a lock of it.
            device = os.open(f"/dev/{name}", os.O_RDONLY)
            fcntl.flock(device, fcntl.LOCK_SH | fcntl.LOCK_NB)
            whole = struct.pack("hhqqq", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
            fcntl.fcntl(device, fcntl.F_OFD_SETLK, whole)


def cover_what_is_shared(request: dict[str, Any], pidfd: int) -> dict[str, Any]:
    """Take from a sandbox what of its /proc is about the machine, and of the host's devices all but their bytes."""
    hosts = os.stat("/dev/null").st_dev
    enter_namespaces(pidfd, request["namespaces"])
    if os.stat("/dev/null").st_dev == hosts:
        _cover_devices(watched=not request["rootless"])
    for names, flags in ((_READ_ONLY, _RDONLY), (_UNREADABLE, _RDONLY | _NODEV)):
        for path in (f"/proc/{name}" for name in names if os.path.exists(f"/proc/{name}")):
            _cover("/dev/null" if flags & _NODEV else path, path, flags)
    return {}


def _cover_devices(watched: bool) -> None:
    """Let mode, owner and times of the host's devices stay, and nobody see who opens them, unless ``watched``."""
    for name in _DEVICES[:-1]:
        _restrict(f"/dev/{name}", _RDONLY)
    # The kernel changes the times of /dev/tty by itself; a socket cannot be opened, as where no terminal is.
    os.mknod("/dev/shm/tty", stat.S_IFSOCK | 0o666)
    _mount("/dev/shm/tty", "/dev/tty", _BIND)
    os.unlink("/dev/shm/tty")
    if not watched:  # It is a setting of the sandbox's own user namespace.
        with open("/proc/sys/user/max_inotify_watches", "w") as file:
            file.write("0")

"""Namespaces, capabilities and users of the launcher's workers; standard library only."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
# Docker's default capabilities without MKNOD and NET_RAW: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID,
# SETPCAP, NET_BIND_SERVICE, SYS_CHROOT, AUDIT_WRITE, SETFCAP.
CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 29, 31)
_PASSWD_LIMIT = 2**20  # bytes
_PR_CAPBSET_DROP = 24
_CAPABILITY_VERSION_3 = 0x20080522
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
# The numbers of add_key and of fanotify_init by the kernel's number of the architecture (x86-64, i386, arm64, arm,
# riscv64); request_key and keyctl are the two after the first.
_CALLS = {
    0xC000003E: (248, 300),
    0x40000003: (286, 338),
    0xC00000B7: (217, 262),
    0x40000028: (309, 367),
    0xC00000F3: (217, 262),
}
# The calls that give a file to another user, or let a process become another user, in that order.
_OWNING = {
    0xC000003E: (92, 93, 94, 260, 105, 106, 113, 114, 116, 117, 119, 122, 123),
    0xC00000B7: (54, 55, 143, 144, 145, 146, 147, 149, 151, 152, 159),
}
# Those that make a device, or a FIFO, which anybody may: each with the number of its argument that tells.
_MAKING = {0xC000003E: ((133, 1), (259, 2)), 0xC00000B7: ((33, 2),)}
_IO_URING = (425, 427)  # From io_uring_setup to io_uring_register, the same everywhere.
libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Raise :class:`OSError` if a C function failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def enter_namespaces(pidfd: int, flags: int) -> None:
    """Enter namespaces of a process."""
    check(libc.setns(pidfd, flags), "setns")


def hide_memory(hidden: bool = True) -> None:
    """Let nobody in a sandbox look into this process and those it forks, until they run another program.

    A worker's child is a process of the sandbox before it becomes a program there. It still has the launcher's memory
    then, with traces of what was asked for other sandboxes, and an agent may be root and wait for it.
    """
    check(libc.prctl(_PR_SET_DUMPABLE, int(not hidden), 0, 0, 0), "prctl")


def own_user_namespace() -> None:
    """Become root over one's own files, because an agent may leave files with mode bits that lock out their owner."""
    uid, gid = os.getuid(), os.getgid()
    if uid == 0:
        return
    process = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY)
    check(libc.unshare(CLONE_NEWUSER), "unshare")
    _map_ids(process, 0, uid, 0, gid)


def _map_ids(process: int, inner_uid: int, uid: int, inner_gid: int, gid: int) -> None:
    """Give this process its numbers in a new user namespace, by its directory in /proc."""
    settings = {"setgroups": "deny", "uid_map": f"{inner_uid} {uid} 1", "gid_map": f"{inner_gid} {gid} 1"}
    hide_memory(False)  # The files are root's as long as it is hidden.
    for name, value in settings.items():  # In this order: without privileges, groups are mapped only once denied.
        file = os.open(name, os.O_WRONLY, dir_fd=process)
        os.write(file, value.encode())
        os.close(file)
    hide_memory()


def limit_capabilities() -> None:
    """Give up the capabilities that a container's root does not have."""
    for capability in range(64):
        if capability not in CAPABILITIES:
            libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    mask = sum(1 << capability for capability in CAPABILITIES)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    low, high = mask & 0xFFFFFFFF, mask >> 32
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    check(libc.capset(header, data), "capset")


def refuse_calls() -> None:
    """Refuse the kernel's keyrings, io_uring and fanotify, as Docker does.

    Keyrings belong to a user or a session, and no namespace separates them: a program could hand what it read of a
    suite in one sandbox to another one, and the host's root has its keys there as well. No filter sees what io_uring
    does. Fanotify tells what another sandbox opens where both have the host's devices.
    """
    check(libc.prctl(_PR_SET_SECCOMP, 2, _FILTER, 0, 0), "seccomp")


def pretend_owners() -> None:
    """Let calls that need several users succeed without any effect, as tools that build images without root do.

    A package manager unpacks files of other users, which a sandbox without root has not: all become its one user's.
    """
    check(libc.prctl(_PR_SET_SECCOMP, 2, _PRETENDING, 0, 0), "seccomp")


_LOAD, _MASK, _EQUAL, _AT_LEAST, _ABOVE, _ANSWER = 0x20, 0x54, 0x15, 0x35, 0x25, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000  # with an error number; 0 is none, so that the call seems to succeed


def _pretending_filter() -> bytes:
    program = [(_LOAD, 0, 0, 4)]
    for architecture, numbers in _OWNING.items():
        calls = [line for number in numbers for line in ((_EQUAL, 0, 1, number), (_ANSWER, 0, 0, _REFUSE))]
        for number, argument in _MAKING[architecture]:
            calls += [(_EQUAL, 0, 6, number), (_LOAD, 0, 0, 16 + 8 * argument), (_MASK, 0, 0, stat.S_IFMT(0xFFFF))]
            calls += [(_EQUAL, 1, 0, stat.S_IFCHR), (_EQUAL, 0, 1, stat.S_IFBLK)]
            calls += [(_ANSWER, 0, 0, _REFUSE), (_ANSWER, 0, 0, _ALLOW)]
        program += [(_EQUAL, 0, len(calls) + 2, architecture), (_LOAD, 0, 0, 0), *calls, (_ANSWER, 0, 0, _ALLOW)]
    program.append((_ANSWER, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in program)


def _call_filter() -> bytes:
    # Load the architecture. A call may also come with the x32 bit, which is masked out below.
    program = [(_LOAD, 0, 0, 4)]
    for architecture, (add_key, fanotify) in _CALLS.items():
        calls = []
        for first, last in ((add_key, add_key + 2), (fanotify, fanotify), _IO_URING):
            calls += [(_AT_LEAST, 0, 2, first), (_ABOVE, 1, 0, last), (_ANSWER, 0, 0, _REFUSE | errno.EPERM)]
        calls.append((_ANSWER, 0, 0, _ALLOW))
        program += [(_EQUAL, 0, len(calls) + 2, architecture), (_LOAD, 0, 0, 0), (_MASK, 0, 0, 0xBFFFFFFF), *calls]
    program.append((_ANSWER, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in program)


# Made once, and not in every worker.
_LINES = [ctypes.create_string_buffer(lines, len(lines)) for lines in (_call_filter(), _pretending_filter())]
_FILTER, _PRETENDING = (
    ctypes.create_string_buffer(struct.pack("@HP", len(lines) // 8, ctypes.addressof(lines))) for lines in _LINES
)


def look_up(user: str | int) -> tuple[int, int, str]:
    """Return the uid, gid and home that the sandbox's own /etc/passwd has for a name or number."""
    wanted = str(user)
    for line in _read_passwd().splitlines():
        fields = line.split(b":")
        if len(fields) >= 6 and wanted.encode() in (fields[0], fields[2]):
            try:
                return int(fields[2]), int(fields[3]), os.fsdecode(fields[5])
            except ValueError:
                continue
    if wanted.isdigit():
        return int(wanted), int(wanted), "/"
    raise LookupError(f"no user {wanted!r} in the sandbox's /etc/passwd")


def _read_passwd() -> bytes:
    """Read what an agent may have replaced by a FIFO, where reading would never end, or by very much."""
    try:
        file = os.open("/etc/passwd", os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:  # A number needs no entry.
        return b""
    try:
        return os.read(file, _PASSWD_LIMIT) if stat.S_ISREG(os.fstat(file).st_mode) else b""
    finally:
        os.close(file)


def become(uid: int, gid: int) -> None:
    """Become a user, where the sandbox has all those of the host."""
    os.setgroups([])
    if uid != 0:
        os.setgid(gid)
        os.setuid(uid)


def become_rootless(process: int, uid: int, gid: int) -> None:
    """Become a user in a rootless sandbox, which has one uid only.

    Another user is a nested namespace in which that one uid has the user's number, and owns everything. ``process`` is
    this process's directory in /proc, and nobody inside may see this process: its memory is not hidden meanwhile.
    """
    if uid != 0:
        check(libc.unshare(CLONE_NEWUSER), "unshare")
        _map_ids(process, uid, 0, gid, 0)

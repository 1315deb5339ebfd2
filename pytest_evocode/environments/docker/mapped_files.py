"""Finds the files that processes of a paused container have mapped into memory, and can change without a trace.

The kernel notes the time of a change when a page is first written to, and not again until it has written the page back.
"""

from __future__ import annotations

import os

_PARAMETERS = "/sys/module/overlay/parameters"


def mapped_inodes(container: str, first: int, top: str) -> set[int] | None:
    """Return the numbers of the files in a container's upper layer that processes share in memory.

    Args:
        container: The container's id.
        first: The number of its PID 1 on this machine.
        top: The directory of its upper layer.

    Returns:
        None where nobody can tell.
    """
    processes = _processes(container)
    if first not in processes:
        return None
    inodes: set[int] = set()
    try:
        devices = {_device(os.lstat(top).st_dev): True, _device(os.stat(f"/proc/{first}/root").st_dev): False}
        for process in processes:
            for line in _maps(process):
                inode = _shared(line, devices, top)
                if inode is None:
                    return None
                inodes.add(inode)
    except OSError:
        return None
    return inodes - {0}


def _maps(process: int) -> list[str]:
    """Return the lines of ``maps`` of a process, from a thread that lives: those of one that has ended are none."""
    threads = f"/proc/{process}/task"
    for thread in os.listdir(threads):
        with open(f"{threads}/{thread}/maps", encoding="utf-8", errors="surrogateescape") as file:
            if lines := file.readlines():
                return lines
    return []


def _shared(line: str, devices: dict[str, bool], top: str) -> int | None:
    """Return the number of the file that a line of ``maps`` shares, 0 where it shares none, None if unknown.

    ``devices`` are those that matter; some kernels name that of the overlay, others that of the layer, which is true.
    """
    fields = line.rstrip("\n").split(None, 5)
    if fields[1][3] != "s" or fields[3] not in devices:
        return 0
    if devices[fields[3]]:
        return int(fields[4])
    path = fields[5] if len(fields) > 5 else ""
    if not path.startswith("/") or "\\" in path or path.endswith(" (deleted)"):
        return None
    try:
        return os.lstat(top + path).st_ino
    except (FileNotFoundError, NotADirectoryError):
        return 0  # It is the image's, and whoever changes it gets another file.


def _device(number: int) -> str:
    return f"{os.major(number):02x}:{os.minor(number):02x}"


def _processes(container: str) -> set[int]:
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cgroup", encoding="utf-8", errors="replace") as groups:
                    if container in groups.read():
                        found.add(int(name))
            except OSError:  # It has ended.
                continue
    return found


def is_plain_overlay(first: int) -> bool:
    """Tell whether a process lives in an overlay that keeps whole files where they are, marked as root's."""
    try:
        for name in ("metacopy", "redirect_dir"):
            with open(f"{_PARAMETERS}/{name}", encoding="ascii") as value:
                if value.read().strip() != "N":
                    return False
        with open(f"/proc/{first}/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            for line in mounts:
                fields, _, system = line.partition(" - ")
                if fields.split()[4] == "/":
                    kind, _, options = system.strip().split(" ", 2)
                    given = set(options.split(","))
                    return kind == "overlay" and not given & {"metacopy=on", "redirect_dir=on", "userxattr"}
    except OSError:
        pass
    return False

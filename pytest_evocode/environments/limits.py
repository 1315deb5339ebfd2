"""What one environment may take of its machine where its task does not say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """The same for Docker and for the sandbox; lowered in tests, which need not fill a machine then."""

    processes: int = 4096
    """Processes and threads at once in one environment: far more than builds need, far fewer than a host has."""
    memory_share: float = 0.75
    """Of the machine's memory for an environment whose task has no ``memory_mb``; the rest is the session's."""
    free_disk: int = 2**30
    """Bytes to be left free on the file system that holds the sandboxes' files."""

    def memory(self, memory_mb: int | None, machine: int) -> int:
        """Bytes that an environment may take on a machine with this many.

        >>> ResourceLimits().memory(None, 8 * 2**30) == 6 * 2**30
        True
        >>> ResourceLimits().memory(512, 8 * 2**30) == 512 * 2**20
        True
        """
        return int(machine * self.memory_share) if memory_mb is None else memory_mb * 2**20


def refused_processes(limit: int) -> str:
    """The last line of a command's output where the kernel kept it from starting more."""
    return f"[refused: more than the limit of {limit} processes]"


def killed_for_memory(limit: int) -> str:
    """The last line of a command's output."""
    return f"[killed: over the limit of {limit // 2**20} MiB of memory]"

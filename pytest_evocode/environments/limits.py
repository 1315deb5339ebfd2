"""What an environment may use where its task says nothing, in Docker and in the sandbox."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Limits of one environment where its task sets none, the same for Docker and the sandbox."""

    processes: int = 4096
    """Processes and threads at once: far more than builds need, far fewer than a host has."""
    memory_share: float = 0.75
    """Of the machine's memory for an environment whose task has no ``memory_mb``; the rest is the session's."""
    free_disk: int = 2**30
    """Bytes to be left free on the file system that holds the sandboxes' files."""

    def memory(self, memory_mb: int | None, machine: int) -> int:
        """Return how many bytes of memory an environment may use on a machine with ``machine`` bytes.

        >>> ResourceLimits().memory(None, 8 * 2**30) == 6 * 2**30
        True
        >>> ResourceLimits().memory(512, 8 * 2**30) == 512 * 2**20
        True
        """
        return int(machine * self.memory_share) if memory_mb is None else memory_mb * 2**20

"""What the program answers: its status, and what it writes to standard output and standard error."""

from __future__ import annotations

Answer = tuple[int, str, str]

USAGE: Answer = (1, "", "usage:")


def answer(status: int, output: str, errors: str) -> Answer:
    """An answer, of whose usage only the beginning is part of the contract."""
    return status, output, "usage:" if errors.startswith("usage:") else errors


def prints(*lines: str) -> Answer:
    return 0, "".join(f"{line}\n" for line in lines), ""


def complains(status: int, message: str) -> Answer:
    return status, "", f"error: {message}\n"

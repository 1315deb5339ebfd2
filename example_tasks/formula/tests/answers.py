"""What the program answers: its status, and what it writes to standard output and standard error."""

from __future__ import annotations

Answer = tuple[int, str, str]


def prints(*lines: str) -> Answer:
    return 0, "".join(f"{line}\n" for line in lines), ""


def complains(status: int, message: str) -> Answer:
    return status, "", f"error: {message}\n"


def is_usage(answer: Answer) -> bool:
    status, output, errors = answer
    return status == 1 and output == "" and errors.startswith("usage:")

"""The text files of a task as Docker, bash and agents read them: UTF-8, with a byte order mark or without."""

from __future__ import annotations

import codecs
import io
import tokenize
from pathlib import Path

from pytest_evocode.errors import TaskError

CRLF = "ends its lines in CRLF, and bash takes the CR for a part of each command; save it with LF"


def decoded(content: bytes, path: str | Path) -> str:
    """Return the text of a file without its byte order mark; raises TaskError with the line where it is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        why = f"byte 0x{content[error.start]:02x}"
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            why = f"{why} begins the byte order mark of UTF-16"
        wrong = f"not UTF-8 ({why}); save the file as UTF-8"
        raise TaskError(wrong, Path(path), line) from None


def check_python(content: bytes, path: Path) -> None:
    """Raise TaskError, as :func:`decoded` does, where a Python file is not UTF-8 and names no other encoding.

    Python itself passes over some of these, and says of others that a character is wrong.
    """
    if content.isascii():
        return
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    except SyntaxError:  # Its first two lines are not UTF-8, or name an encoding that there is not.
        encoding = "utf-8"
    if encoding in ("utf-8", "utf-8-sig"):
        decoded(content, path)


def unreadable(path: str | Path, error: OSError) -> TaskError:
    """Return the error about a file or directory that cannot be read."""
    return TaskError(f"cannot be read ({error.strerror}); check its permissions", Path(path))


def read_text(path: Path) -> str:
    """Return the text of a file; raises TaskError where it cannot be read, or is not UTF-8."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    return decoded(content, path)


def read_instruction(path: Path) -> str:
    """Return the text of an instruction, with LF at the ends of its lines; raises TaskError where it cannot be read."""
    return read_text(path).replace("\r\n", "\n")


def crlf_shown(output: str) -> str:
    r"""Return what to say of a script that failed and printed this, where a script that it ran was saved with CRLF.

    >>> crlf_shown("lib.sh: line 3: $'\\r': command not found"), crlf_shown("No such file")
    ('; a script that it ran was saved with CRLF, save it with LF', '')
    """
    return "; a script that it ran was saved with CRLF, save it with LF" if "\\r'" in output else ""


def is_crlf(script: bytes) -> bool:
    r"""Tell whether a script was saved with CRLF, which no bash can run; some such lines may be data that it writes.

    >>> is_crlf(b"#!/bin/bash\r\ntrue\r\n"), is_crlf(b"cat <<E > dos.txt\na\r\nE\n"), is_crlf(b"true\n")
    (True, False, False)
    """
    return b"\r\n" in script and script.count(b"\r\n") == script.count(b"\n")

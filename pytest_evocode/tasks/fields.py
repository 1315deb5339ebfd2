"""The types of the fields in task.toml; they convert nothing, because TOML already tells text from numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, Strict, WithJsonSchema
from pydantic_core import PydanticCustomError

from pytest_evocode.tasks.allowlist import parse_entry

STEP_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
"""What new rounds are called; tasks of Harbor's may have more in their names."""
_NEVER_IN_STEPS = r'<>:"/\\|?*\[\]@\x00-\x1f\x7f'
PORTABLE_NAME = re.compile(rf"[^{_NEVER_IN_STEPS}. ]([^{_NEVER_IN_STEPS}]*[^{_NEVER_IN_STEPS}. ])?")
"""Names that every system takes for directories, and that leave node ids readable."""
_LONGEST_STEP = 255  # bytes
PACKAGE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*/[A-Za-z0-9_-][A-Za-z0-9._-]*")
DRIVE = re.compile(r"[A-Za-z]:[/\\]")
SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([KMG])", re.IGNORECASE)
# What belongs to the harness or to the kernel.
_NEVER_STATE = ("/tests", "/logs", "/solution", "/proc", "/sys", "/dev")
MEGABYTES = {"K": 1 / 1024, "M": 1, "G": 1024}


class Unread:
    """Marks a field that nothing here reads: a task loads with any value there."""


UNREAD = Unread()


def wanted(what: str) -> PydanticCustomError:
    """Return the error for a value that is not ``what``; the message gets the value where it is shown."""
    return PydanticCustomError("wanted", "{what}", {"what": what})


def rule(message: str, key: str = "") -> PydanticCustomError:
    """Return the error for a value that breaks a rule; ``key`` names the field where a whole section is checked."""
    return PydanticCustomError("rule", "{message}", {"message": message, "key": key})


def _user(value: object) -> str | int:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise wanted("a user name or a user id from 0")


def _min_reward(value: object) -> Mapping[str, float]:
    table: dict[str, Any] = value if isinstance(value, dict) else {"reward": value}
    if not all(_is_finite(threshold) for threshold in table.values()):
        raise wanted("a finite number, or a table of finite numbers such as { reward = 0.5 }")
    return {key: float(threshold) for key, threshold in table.items()}


def _is_finite(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _megabytes(value: str) -> str:
    if megabytes(value) < 1:
        raise wanted('a size of at least one megabyte such as "512M" or "2G"')
    return value


def megabytes(size: str) -> int:
    """Return the whole megabytes in a size such as ``"2G"``, or 0 where it is not a size.

    >>> megabytes("2G"), megabytes("1.5g"), megabytes("512M"), megabytes("lots")
    (2048, 1536, 512, 0)
    """
    match = SIZE.fullmatch(size.strip())
    return int(float(match[1]) * MEGABYTES[match[2].upper()]) if match else 0


def _step_name(value: str) -> str:
    if not PORTABLE_NAME.fullmatch(value) or len(value.encode()) > _LONGEST_STEP:
        raise wanted(
            'a name of at most 255 bytes without any of <>:"/\\|?*[]@ and control characters, and without a dot or a '
            "space at either end"
        )
    return value


def is_package_name(value: str) -> bool:
    """Return whether a published task can have this name.

    >>> is_package_name("evocode/ledger"), is_package_name("ledger"), is_package_name("evocode/.ledger")
    (True, False, False)
    """
    return PACKAGE_NAME.fullmatch(value) is not None and ".." not in value


def _package_name(value: str) -> str:
    if not is_package_name(value):
        raise wanted('a name of the form "organisation/task"')
    return value


def _container_path(value: str) -> str:
    path = PurePosixPath(value)
    if not path.is_absolute() or ".." in path.parts or path == PurePosixPath("/") or "\0" in value:
        raise wanted("an absolute path in the container without '..', and not / itself")
    return value


def _state_path(value: str) -> str:
    path = PurePosixPath(_container_path("/" + value.lstrip("/") if value.startswith("/") else value))
    for own in _NEVER_STATE:
        if path.is_relative_to(own):
            raise rule(f"{own} is never part of what an agent leaves behind; remove it")
    return str(path)


def _any_system_path(value: str) -> str:
    return value if on_a_drive(value) else _container_path(value)


def _any_system_directory(value: str) -> str:
    return value if on_a_drive(value) else _directory(value)


def on_a_drive(value: object) -> bool:
    r"""Return whether a value is a path of Windows with a drive, which the loader refuses as such.

    >>> on_a_drive("C:\\app"), on_a_drive("/app")
    (True, False)
    """
    return isinstance(value, str) and DRIVE.match(value) is not None


def _directory(value: str) -> str:
    if not value.startswith("/") or "\0" in value:
        raise wanted("an absolute path in the container")
    return value


def _destination(value: str) -> str:
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in value or "\\" in value:
        raise wanted("a relative path without '..'")
    return value


def _allowed_host(value: str) -> str:
    if (entry := parse_entry(value)) is None:
        raise wanted('a name such as "example.org" or "*.example.org", an address, or a range such as "192.0.2.0/24"')
    return entry


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _pattern(expression: str) -> WithJsonSchema:
    """Return what editors are told of a text: the whole of it matches. The validator beside this says what is wrong."""
    return WithJsonSchema({"type": "string", "pattern": f"^{expression}$"})


Text = Annotated[str, Strict()]
FilledText = Annotated[str, Strict(), Field(min_length=1)]
Flag = Annotated[bool, Strict()]
Number = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
Seconds = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
Pause = Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Strict(), Field(ge=0)]
PositiveCount = Annotated[int, Strict(), Field(gt=0)]
Size = Annotated[str, Strict(), AfterValidator(_megabytes), _pattern(r"\s*[0-9]{1,9}(\.[0-9]{1,9})?\s*[KMGkmg]\s*")]
User = Annotated[str | int, PlainValidator(_user, json_schema_input_type=FilledText | Count)]
MinReward = Annotated[Mapping[str, float], PlainValidator(_min_reward, json_schema_input_type=float | dict[str, float])]
StepName = Annotated[str, Strict(), AfterValidator(_step_name), _pattern(PORTABLE_NAME.pattern)]
PackageName = Annotated[str, Strict(), AfterValidator(_package_name), _pattern(PACKAGE_NAME.pattern)]
ContainerPath = Annotated[str, Strict(), AfterValidator(_container_path), _pattern(r"/.+")]
StatePath = Annotated[str, Strict(), AfterValidator(_state_path), _pattern(r"/.+")]
AnySystemPath = Annotated[str, Strict(), AfterValidator(_any_system_path), _pattern(r"/.+")]
AnySystemDirectory = Annotated[str, Strict(), AfterValidator(_any_system_directory), _pattern(r"/.*")]
Destination = Annotated[str, Strict(), AfterValidator(_destination), _pattern(r"[^/].*")]
AllowedHost = Annotated[str, Strict(), AfterValidator(_allowed_host)]
Env = dict[Annotated[str, Field(pattern=r"^[^=\x00]+$")], Annotated[str, Strict(), Field(pattern=r"^[^\x00]*$")]]


def one_or_many(entry: Any) -> BeforeValidator:
    """Return what lets a single text stand for a tuple of one; ``entry`` is the type of the tuple's entries."""
    return BeforeValidator(_one_or_many, json_schema_input_type=entry | tuple[entry, ...])

"""What is tried, and where: attacks, the environments and kinds of suites that they are played in, and how often."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pytest

_SLOWEST = 15.0
Mode = Literal["separate", "clean"]
SuiteName = Literal["careful", "careless", "careless pinned", "native", "native as nobody", "door"]
#: What the suites run; a sandbox without root can write nothing below /usr, which is the host's.
PYTHON = "/usr/bin/python-of-the-image"
#: The ways to judge that promise something; ``in-place`` trusts the agent's system.
SEPARATE: tuple[Mode, ...] = ("separate",)
CLEAN: tuple[Mode, ...] = ("clean",)


@dataclass(frozen=True)
class Attack:
    """One thing to try, by a script that runs in every round; ``$ROUND`` is the number of the round.

    ``{task}``, ``{results}``, ``{cache}`` and ``{host}`` in the script become paths of the host: the task's directory,
    the results directory, the cache, the directory of the session. A ``timeout`` is meant to be reached.
    """

    name: str
    script: str
    user: str | None = None
    timeout: float | None = None
    suite: SuiteName = "careful"
    toml: str = ""
    only: str = ""
    """The one environment that it is about."""
    nightly: bool = False
    """Whether it is left to the night wherever it is played."""
    options: tuple[str, ...] = ()
    unsolved: Mapping[str, str] = field(default_factory=dict)
    """By place, or environment and mode: what is not as it should be. Strict, so that what is solved is noticed."""
    not_promised: tuple[Mode, ...] = ()
    """Where docs/integrity.md promises nothing against it; it is not played there."""

    @property
    def deadline(self) -> float:
        """How many seconds a turn has: on a busy machine so many more that the script gets as far as on an idle one.

        Four processes for a core are what a run of the tests with workers has; deadlines have room for that.
        """
        busy = os.getloadavg()[0] / (os.cpu_count() or 1) / 4
        return 120 if self.timeout is None else self.timeout * min(max(1.0, busy), _SLOWEST)


@dataclass(frozen=True)
class Place:
    """Where an attack is tried."""

    env: str
    mode: Mode
    rootless: bool = False
    """Whether the session that runs the task has a user of its own instead of root."""

    @property
    def id(self) -> str:
        """As it stands in the ids of tests."""
        return f"{self.env}-{self.mode}{'-rootless' if self.rootless else ''}"

    @property
    def table(self) -> str:
        """The title of the table that it is a column of."""
        return f"{self.env}{', without root' if self.rootless else ''}"

    @property
    def has_one_user(self) -> bool:
        """Whether a suite and the programs that it runs as somebody else are the same user there."""
        return self.rootless and self.env == "sandbox"

    usr_is_the_hosts = has_one_user
    """Whether nobody there can write below ``/usr``."""

    def suite(self, wanted: SuiteName) -> str:
        """Return the suite that is as careful as the one wanted; what runs apart asks for programs by ``workspace``."""
        if self.mode != "separate" or wanted == "door":
            return wanted
        return "workspace as nobody" if wanted == "native as nobody" else "workspace"

    def adapted(self, text: str) -> str:
        """Return a text of the task with the place that the image's Python has here."""
        return text.replace(PYTHON, "/image/python") if self.usr_is_the_hosts else text


def _places(modes: Iterable[Mode]) -> list[Place]:
    found = [Place(env, mode) for mode in modes for env in ("sandbox", "docker")]
    return [*found, *(Place(place.env, place.mode, rootless=True) for place in found)]


def _marks(place: Place) -> list[pytest.MarkDecorator]:
    return [pytest.mark.docker] if place.env == "docker" else []


PLACES = [pytest.param(place, id=place.id, marks=_marks(place)) for place in _places(CLEAN)]


def in_all_places(
    attacks: Iterable[Attack], modes: Iterable[Mode] = CLEAN, *, also: Iterable[Mode] = (), by_day: int = 1
) -> pytest.MarkDecorator:
    """Parametrise a test with ``attack`` and ``place``: each attack in every place that it is about.

    What defeats most attacks is the same code in both environments, with root and without, and wherever the suite runs:
    by day the first ``by_day`` are played, each in its first place; none where other tests of the day have the same. In
    the modes ``also`` only the first attack is played without root.
    """
    modes, also = tuple(modes), tuple(also)
    cases = []
    for number, attack in enumerate(attacks):
        for place in _places((*modes, *also)):
            if attack.only not in ("", place.env) or place.mode in attack.not_promised:
                continue
            if place.mode in also and place.rootless and number > 0:
                continue
            late = attack.nightly or number >= by_day
            marks = [*_marks(place), *([pytest.mark.nightly] if late else [])]
            if why := attack.unsolved.get(place.id, attack.unsolved.get(f"{place.env}-{place.mode}")):
                marks.append(pytest.mark.xfail(reason=why))
            cases.append(pytest.param(attack, place, id=f"{attack.name}-{place.id}", marks=marks))
    return pytest.mark.parametrize(("attack", "place"), cases)

"""Images of later attempts are built side by side, and before they are needed; what fails, fails where it is needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.environments import BuildWish, Installation
from pytest_evocode.environments.builds import Builds, builds_at_once, ending_when
from pytest_evocode.errors import BuildError, Cancelled, EnvironmentFault
from pytest_evocode.tasks import Task
from pytest_evocode.trial import warming
from pytest_evocode.trial.warming import ImagesAhead

SOON = 30.0  # seconds after which a test has failed


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    return tmp_path / "cache"


class Image:
    """An image that is built when the test says so."""

    def __init__(
        self, lock: Path, builds: Builds, name: str | None = "image", *, error: Exception | None = None
    ) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.ended = threading.Event()
        self.built = 0
        self._lock, self._builds, self._name, self._error = lock, builds, name, error

    def build(self) -> str:
        self.built += 1
        self.begun.set()
        assert self.may_end.wait(SOON)
        if self._error is not None:
            raise self._error
        self.ended.set()
        return "the image"

    def want(self, wish: BuildWish | None = None) -> tuple[str, bool]:
        found = lambda: "the image" if self.ended.is_set() else None  # noqa: E731
        return self._builds.once(self._name, self._lock, found, self.build, wish or BuildWish())


class Wanting(threading.Thread):
    """Somebody who wants an image."""

    def __init__(self, image: Image, wish: BuildWish | None = None) -> None:
        super().__init__(daemon=True)
        self._image, self._wish = image, wish
        self.got: object = None
        self.start()

    def run(self) -> None:
        try:
            self.got = self._image.want(self._wish)
        except EnvironmentFault as error:
            self.got = str(error)
        except Cancelled:
            self.got = Cancelled

    def wait(self) -> object:
        self.join(SOON)
        assert not self.is_alive()
        return self.got


def ahead() -> BuildWish:
    return BuildWish(threading.Event(), ahead=True)


def test_as_many_images_are_built_ahead_at_once_as_there_are_cores_and_not_more(tmp_path: Path) -> None:
    images = [Image(tmp_path / f"{number}.lock", Builds()) for number in range(3)]
    wanting = [Wanting(image, ahead()) for image in images]

    def running() -> list[Image]:
        return [image for image in images if image.begun.is_set() and not image.ended.is_set()]

    while len(running()) < builds_at_once():
        assert all(each.is_alive() for each in wanting)
    assert len(running()) == 2
    last = next(image for image in images if not image.begun.is_set())
    assert not last.begun.wait(0.3)
    running()[0].may_end.set()
    assert last.begun.wait(SOON)
    for image in images:
        image.may_end.set()
    assert [each.wait() for each in wanting] == [("the image", True)] * 3


def test_who_needs_an_image_waits_for_no_builds_of_others(tmp_path: Path) -> None:
    images = [Image(tmp_path / f"{number}.lock", Builds()) for number in range(3)]
    wanting = [Wanting(image, ahead()) for image in images[:2]]
    assert all(image.begun.wait(SOON) for image in images[:2])
    images[2].may_end.set()
    assert images[2].want() == ("the image", True)
    for image in images:
        image.may_end.set()
    assert [each.wait() for each in wanting] == [("the image", True)] * 2


def test_who_needs_an_image_that_is_being_built_gets_that_one(tmp_path: Path) -> None:
    image = Image(tmp_path / "lock", Builds())
    early = Wanting(image, ahead())
    assert image.begun.wait(SOON)
    late = Wanting(image)
    image.may_end.set()
    assert (early.wait(), late.wait()) == (("the image", True), ("the image", False))
    assert image.built == 1


def test_a_build_that_failed_ahead_fails_where_it_is_needed_without_another_one(tmp_path: Path) -> None:
    (tmp_path / "failed").mkdir()
    image = Image(tmp_path / "lock", Builds(tmp_path / "failed"), error=BuildError("Dockerfile: the build failed"))
    image.may_end.set()
    assert Wanting(image, ahead()).wait() == "Dockerfile: the build failed"
    for _ in range(2):
        with pytest.raises(BuildError, match=r"^Dockerfile: the build failed$"):
            image.want()
    assert image.built == 1
    other_session = Image(tmp_path / "lock", Builds(), error=BuildError("failed again"))
    other_session.may_end.set()
    with pytest.raises(BuildError, match="failed again"):
        other_session.want()


def test_what_may_do_well_the_next_time_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / "failed").mkdir()
    image = Image(tmp_path / "lock", Builds(tmp_path / "failed"), None, error=BuildError("cannot be pulled"))
    image.may_end.set()
    for _ in range(2):
        with pytest.raises(BuildError, match="cannot be pulled"):
            image.want()
    assert image.built == 2


def test_a_fault_of_the_engine_is_no_failed_build(tmp_path: Path) -> None:
    (tmp_path / "failed").mkdir()
    image = Image(tmp_path / "lock", Builds(tmp_path / "failed"), error=EnvironmentFault("the engine is gone"))
    image.may_end.set()
    for _ in range(2):
        with pytest.raises(EnvironmentFault, match="the engine is gone"):
            image.want()
    assert image.built == 2


def test_a_build_that_was_ended_is_no_failed_build(tmp_path: Path) -> None:
    (tmp_path / "failed").mkdir()
    image = Image(tmp_path / "lock", Builds(tmp_path / "failed"), error=BuildError("killed"))
    wish = ahead()
    wanting = Wanting(image, wish)
    assert image.begun.wait(SOON)
    wish.cancelled.set()
    image.may_end.set()
    assert wanting.wait() is Cancelled
    assert list((tmp_path / "failed").iterdir()) == []


def test_who_waits_for_a_build_can_be_told_to_stop(tmp_path: Path) -> None:
    image = Image(tmp_path / "lock", Builds())
    first = Wanting(image)
    assert image.begun.wait(SOON)
    wish = BuildWish()
    second = Wanting(image, wish)
    wish.cancelled.set()
    assert second.wait() is Cancelled
    image.may_end.set()
    assert first.wait() == ("the image", True)


def test_what_is_under_way_is_ended_once_nobody_wants_it() -> None:
    ended, cancelled = threading.Event(), threading.Event()
    with ending_when(cancelled, ended.set):
        assert not ended.is_set()
        cancelled.set()
        assert ended.wait(SOON)


class Preparing:
    """Remembers which images were asked for."""

    def __init__(self, may_end: threading.Event) -> None:
        self.asked: list[tuple[Any, Any]] = []
        self.both = threading.Barrier(2)
        self._may_end = may_end

    def prepare(self, engine: object, task: Task, installation: Installation | None, wish: BuildWish) -> bool:
        self.asked.append((task, installation))
        self.both.wait(SOON)
        while not self._may_end.wait(0.01):
            if wish.cancelled.is_set():
                raise Cancelled("stopped")
        return True


@pytest.fixture
def preparing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Preparing]:
    may_end = threading.Event()
    made = Preparing(may_end)
    monkeypatch.setattr(warming, "prepare_image", made.prepare)
    yield made
    may_end.set()


def test_images_are_prepared_in_order_some_at_a_time_and_no_more_once_it_is_closed(preparing: Preparing) -> None:
    def wanted(name: Any) -> Any:
        return lambda: (name, None)

    images = ImagesAhead(object())  # type: ignore[arg-type]
    images.begin([wanted(name) for name in ("a", "b", "c", "d")])
    while len(preparing.asked) < 2:
        pass
    images.close()  # Which waits for the threads.
    assert sorted(preparing.asked) == [("a", None), ("b", None)]


def test_an_image_that_cannot_be_prepared_keeps_no_other_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, last = [], threading.Event()

    def prepare(engine: object, task: Any, installation: object, wish: BuildWish) -> bool:
        asked.append(task)
        if task == "d":
            last.set()
        raise BuildError("failed") if task == "a" else RuntimeError(task)

    monkeypatch.setattr(warming, "prepare_image", prepare)
    images = ImagesAhead(object())  # type: ignore[arg-type]
    images.begin([lambda name=name: (name, None) for name in ("a", "b", "c", "d")])  # type: ignore[misc]
    assert last.wait(SOON)
    images.close()
    assert sorted(asked) == ["a", "b", "c", "d"]

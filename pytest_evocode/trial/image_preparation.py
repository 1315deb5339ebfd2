"""Prepares all that attempts at a task find of its image: the image itself, and what is found out about it once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from pytest_evocode.environments import BuildWish, Engine, Installation
from pytest_evocode.environments.builds import builds_at_once
from pytest_evocode.errors import EvocodeError
from pytest_evocode.tasks import Task
from pytest_evocode.verifier import find_suite_home, find_toolbox

logger = logging.getLogger(__name__)

Wanted = tuple[Task, Installation | None]
"""A task and what lies on top of its image."""


def prepare_image(engine: Engine, task: Task, installation: Installation | None, wish: BuildWish) -> bool:
    """Build what attempts at a task begin with, and find out about its image what suites need to know.

    Returns:
        Whether an image was built or pulled, by this call.

    Raises:
        BuildError: The image cannot be built.
        EnvironmentFault: The engine failed.
        TaskError: The image has nothing that its suites can run with.
        Cancelled: It is not wanted any more.
    """
    made = engine.build(task, installation, wish)
    for suite in task.suite_environments:
        made |= engine.build(task.with_environment_of(suite), None, wish)
    native = [round_ for round_ in task.rounds if not round_.has_script]
    if any(round_.verify_in == "separate" for round_ in native):
        find_suite_home(engine, task)
    elif native:
        find_toolbox(engine, task)
    return made


class ImagesAhead:
    """Prepares the images of several tasks in threads of its own, before anybody needs them.

    What goes wrong is not told: it goes wrong once more, without another build, where the image is needed.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._wish = BuildWish(threading.Event(), ahead=True)
        self._pool = ThreadPoolExecutor(builds_at_once(), thread_name_prefix="image")

    def begin(self, wanted: Iterable[Callable[[], Wanted]]) -> None:
        """Begin with some images, in this order; each is named by a function, which is called when its turn comes."""
        for each in wanted:
            self._pool.submit(self._prepare, each)

    def close(self) -> None:
        """End what is under way, and begin nothing more."""
        self._wish.cancelled.set()
        self._pool.shutdown(cancel_futures=True)

    def _prepare(self, wanted: Callable[[], Wanted]) -> None:
        try:
            task, installation = wanted()
            prepare_image(self._engine, task, installation, self._wish)
        except EvocodeError as error:
            logger.info("an image is not prepared ahead: %s", str(error).partition("\n")[0])
        except Exception:
            logger.warning("an image is not prepared ahead", exc_info=True)

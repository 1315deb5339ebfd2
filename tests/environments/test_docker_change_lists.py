"""What snapshots changed is known where the engine's layers cannot be read, as by a user in Docker's group."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments.docker import snapshots
from pytest_evocode.tasks import Task
from tests.environments.conftest import start_engine
from tests.environments.test_contract_carrying_over import reading_no_layers
from tests.environments.test_contract_forks import (  # noqa: F401 - run here, too
    test_a_directory_is_changed_by_what_is_in_it_and_by_nothing_that_came_and_went,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_evocode.environments import Engine
    from tests.environments.conftest import MakeTask

pytestmark = pytest.mark.docker


@pytest.fixture
def engine(cache: Path) -> Iterator[Engine]:
    """An engine of somebody who may not read the files of the daemon."""
    with reading_no_layers():
        started = start_engine("docker")
        yield started
        started.close()


@pytest.fixture
def task(make_task: MakeTask) -> Task:
    """A task to change files of."""
    return make_task()


def test_what_was_changed_is_known_whole_and_after_an_attempt_was_resumed_until_its_snapshots_go(
    engine: Engine, task: Task, tmp_path: Path
) -> None:
    before = set(snapshots._directory().iterdir())
    environment = engine.create(task, env={}, network="no-network")
    environment.start()
    name = "long-" * 40
    made = environment.exec(
        f"mkdir /usr/lib/a; cd /usr/lib/a; for i in $(seq 3000); do : > {name}$i; done; : > /usr/local/bin/zzz"
    )
    assert made.ok, made.output
    kept = environment.snapshot(keep_for=tmp_path)
    changed = kept.changed_paths(["/app"])
    assert len([path for path in changed if path.startswith("/usr/lib/a/")]) == 3000
    assert "/usr/local/bin/zzz" in changed
    assert "/usr/lib/a" not in changed
    environment.stop()
    found = engine.find_snapshot(kept.reference)
    assert found is not None
    assert found.changed_paths(["/logs", "/usr/lib"]) == ["/usr/local/bin/zzz"]
    again = engine.create(task, env={}, network="no-network", snapshot=found)
    again.start()
    again.exec("echo x > /usr/local/bin/second")
    later = again.snapshot()
    try:
        assert later.changed_paths(["/logs", "/usr/lib"]) == ["/usr/local/bin/second", "/usr/local/bin/zzz"]
        lists = set(snapshots._directory().iterdir()) - before
        assert lists
    finally:
        again.stop()
        later.discard()
        kept.discard()
    engine.close()
    assert not lists & set(snapshots._directory().iterdir())

"""What a snapshot changed is known whole where the engine's layers cannot be read, as by a user in Docker's group."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments.docker import carry_over, change_lists, snapshot_chain, snapshots
from pytest_evocode.tasks import Task
from tests.environments import test_contract_carrying_over as contract
from tests.environments.conftest import start_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_evocode.environments import Engine, Environment
    from tests.environments.conftest import MakeEnvironment, MakeTask

pytestmark = pytest.mark.docker


@pytest.fixture
def engine(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """An engine of somebody who may not read the files of the daemon."""
    for module in (snapshots, snapshot_chain, carry_over):
        monkeypatch.setattr(module, "layers_can_be_read", lambda container: False)
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
    before = set(change_lists._directory().iterdir())
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
        lists = set(change_lists._directory().iterdir()) - before
        assert lists
    finally:
        again.stop()
        later.discard()
        kept.discard()
    engine.close()
    assert not lists & set(change_lists._directory().iterdir())


@pytest.mark.nightly
@pytest.mark.parametrize(
    "promise",
    [
        contract.test_exact_files_links_directories_and_deletions_come_along_and_nothing_beside_them,
        contract.test_directories_above_exact_paths_and_the_files_are_as_in_the_snapshot_without_rights,
        contract.test_an_exact_path_takes_the_place_of_another_kind,
        contract.test_links_above_exact_paths_lead_nowhere,
        contract.test_thousands_of_exact_paths_come_along,
    ],
)
def test_what_was_changed_is_carried_over_by_the_engine_as_from_its_layers(
    make_task: MakeTask, make_environment: MakeEnvironment, promise: Callable[[Environment], None]
) -> None:
    promise(make_environment(make_task(contract.WITH_FILES)))

"""Harbor's ``environment_mode = "separate"``: the suite has an environment for itself, with declared artifacts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

ENVIRONMENTS = ["sandbox", pytest.param("docker", marks=pytest.mark.docker)]
SEPARATE = '[verifier]\nenvironment_mode = "separate"\n'
PASS = "echo 1 > /logs/verifier/reward.txt"
FAIL = "echo 0 > /logs/verifier/reward.txt"


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_a_suite_finds_the_artifacts_and_nothing_else_of_the_agent(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    solve = (
        "echo line-1 > log.txt; mkdir -p /srv/out/deep; echo one > /srv/out/deep/one; ln -s deep/one /srv/out/link; "
        "echo pub > /logs/artifacts/pub; echo x > undeclared; echo y > /etc/planted; setsid sleep 4321 >/dev/null 2>&1 &"
    )
    test = (
        'grep -qx line-1 log.txt && [ "$(cat /srv/out/link)" = one ] && [ -w /srv/out ] && grep -qx pub /logs/artifacts/pub'
        f" && [ ! -e undeclared ] && [ ! -e /etc/planted ] && ! grep -qs '[4]321' /proc/[0-9]*/cmdline && {PASS} || {FAIL}"
    )
    toml = f'artifacts = ["/app/log.txt", "/srv/out", "/app/missing"]\n{SEPARATE}'
    write_task("a", 1, toml=toml, solve={1: solve}, test={1: test})
    session = run_tasks("tasks", env=env)
    print(session.text)
    assert session.outcomes == {"passed": 1}
    (round_,) = session.record().rounds
    assert round_.verdict is not None
    assert round_.verdict.rests_on == "artifacts"
    assert round_.verdict.flags == ("artifact not brought to the suite: /app/missing is not there",)

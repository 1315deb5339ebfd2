"""A turn in a workspace that the agent broke in an earlier round: what was broken can be mended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents import RoundContext
from pytest_evocode.agents.shell.tools import run_script
from pytest_evocode.agents.turn_time import Deadline
from pytest_evocode.environments import Engine
from pytest_evocode.environments.command_environment import SHELL
from pytest_evocode.trial.trial import Trial

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

SUITE = "grep -qx right /app/answer && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n"
SUITES = [*[SUITE] * 3, f"{SUITE}grep -qx /app where || echo 0 > /logs/verifier/reward.txt\n"]
ALL_FILES = "rm -rf /etc /home /lib /lib64 /bin /usr/lib/*/lib*.so* /usr/lib64/* /usr/bin /app"


@pytest.mark.parametrize("breaking", ["rm -f /usr/bin/bash", "rm -rf /app", ALL_FILES])
@pytest.mark.matrix
def test_an_agent_mends_in_round_three_what_it_broke_in_round_two(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], breaking: str
) -> None:
    def mend(context: RoundContext) -> None:
        """Do as a model does by its tool."""
        script = f"cp -an {SHELL}/image/. /; mkdir -p /app; cd /app; cat extra > answer"
        said, action = run_script(script, context, Deadline(60), seconds=60, limit=1000)
        assert action.exit_code == 0, said

    agent = scripted("echo right > answer", f"echo wrong > answer; {breaking}", mend, "type bash; pwd > where")
    files = {"steps/round-3/workdir/setup.sh": "echo right > extra\n"}
    task = make_task(*SUITES, toml='[metadata.evocode]\nverify_in = "clean"\n', files=files)
    records = finish(Trial(task, agent, engine))
    assert [record.outcome for record in records] == ["passed", "failed", "passed", "passed"]

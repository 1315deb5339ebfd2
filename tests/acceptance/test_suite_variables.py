"""Which environment variables a suite is given: those that the task declares for it, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.slow

ENVIRONMENTS = ["sandbox", pytest.param("docker", marks=pytest.mark.docker)]
TOML = """
[environment.env]
FROM_TASK = "yes"
[verifier.env]
FROM_VERIFIER = "yes"
[solution.env]
FROM_SOLUTION = "yes"
[metadata.evocode]
verify_in = "{}"
"""
IMAGE = """\
FROM python:3.11-slim-bookworm
ENV FROM_IMAGE=yes PYTEST_ADDOPTS=--no-such-option PYTHONPATH=/app PYTHONSTARTUP=/app/startup.py
WORKDIR /app
"""
#: What an engine and its shells add by themselves.
OWN = "{'PATH', 'HOME', 'LANG', 'LC_CTYPE', 'HOSTNAME', 'PWD', 'OLDPWD', 'SHLVL', '_'}"
#: What tells a suite its round.
ROUND = "{'EVOCODE_ROUND', 'EVOCODE_ROUND_INDEX'}"
OF_IMAGE = "{'FROM_IMAGE', 'PYTEST_ADDOPTS', 'PYTHONPATH', 'PYTHONSTARTUP'}"
# The agent does what it can to have its variables inherited.
SOLVE = r"""
export FROM_AGENT=yes
for file in /etc/profile /etc/bash.bashrc /etc/environment ~/.bashrc ~/.profile; do
  echo 'export FROM_AGENT=yes' >> $file
done 2>/dev/null
echo line-1 >> log.txt
"""
NATIVE = f"""
import os


def test_variables(workspace):
    given = {{name for name in os.environ if not name.startswith("PYTEST_")}}
    declared = {{"FROM_TASK", "FROM_VERIFIER"}} | {ROUND}
    assert declared | {{"PATH"}} <= given <= declared | {OWN}
    assert (os.environ["EVOCODE_ROUND"], os.environ["EVOCODE_ROUND_INDEX"]) == ("round-1", "1")
    of_program = {{line.partition("=")[0] for line in workspace.run("env").stdout.splitlines()}}
    assert {{"FROM_TASK", "PATH"}} | {OF_IMAGE} <= of_program <= {{"FROM_TASK"}} | {OF_IMAGE} | {OWN}
"""
BESIDE = f"""
import os


def test_variables():
    given = {{name for name in os.environ if not name.startswith("PYTEST_")}}
    kept = {OF_IMAGE} - {{"PYTEST_ADDOPTS"}}
    declared = {{"FROM_TASK", "FROM_VERIFIER"}} | {ROUND} | kept
    assert declared <= given <= declared | {OWN}
    assert (os.environ["EVOCODE_ROUND"], os.environ["EVOCODE_ROUND_INDEX"]) == ("round-1", "1")
"""
SCRIPT = f"""
python3 -I - <<'END'
import os
given = set(os.environ)
declared = {{"FROM_TASK", "FROM_VERIFIER"}} | {ROUND} | {OF_IMAGE}
round_ = (os.environ["EVOCODE_ROUND"], os.environ["EVOCODE_ROUND_INDEX"]) == ("round-1", "1")
with open("/logs/verifier/reward.txt", "w") as file:
    file.write(str(int(round_ and declared <= given <= declared | {OWN})))
print(sorted(given))
END
"""


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize(("kind", "suite"), [("separate", NATIVE), ("fork", BESIDE)])
@pytest.mark.matrix
@pytest.mark.nightly
def test_a_native_suite_has_the_variables_that_are_declared_for_it(
    write_task: WriteTask, run_tasks: RunTasks, env: str, kind: str, suite: str
) -> None:
    write_task("a", 1, native={1: suite}, toml=TOML.format(kind), dockerfile=IMAGE, solve={1: SOLVE})
    session = run_tasks("tasks", env=env)
    assert session.outcomes == {"passed": 1}, session.text


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("kind", ["clean", "in-place"])
@pytest.mark.matrix
def test_a_script_has_the_variables_of_image_task_and_verifier_alone(
    write_task: WriteTask, run_tasks: RunTasks, env: str, kind: str
) -> None:
    write_task("a", 1, test={1: SCRIPT}, toml=TOML.format(kind), dockerfile=IMAGE, solve={1: SOLVE})
    session = run_tasks("tasks", env=env)
    assert session.outcomes == {"passed": 1}, session.text


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.matrix
def test_with_a_safe_path_modules_that_the_agent_planted_are_not_those_of_a_careless_script(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    planted = "echo \"open('/logs/verifier/reward.txt', 'w').write('1')\" > pytest.py"
    careless = "echo 0 > /logs/verifier/reward.txt; python3 -m pytest /tests"
    for name, said in {"safe": "true", "unsafe": "false"}.items():
        write_task(name, 1, solve={1: planted}, test={1: careless}, toml=f"[metadata.evocode]\nsafe_path = {said}\n")
    session = run_tasks("tasks", env=env)
    outcomes = {name: [round_.outcome for round_ in session.record(name).rounds] for name in ("safe", "unsafe")}
    assert outcomes == {"safe": ["failed"], "unsafe": ["passed"]}, session.text

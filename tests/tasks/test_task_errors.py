"""Every mistake in task.toml is a TaskError that says where it is and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks import load_task

WriteTask = Callable[..., Path]


def refusal(directory: Path) -> TaskError:
    """What is wrong with a task, where keys that nothing reads are errors, too."""
    with pytest.raises(TaskError) as caught:
        load_task(directory, unknown_keys="error")
    return caught.value


@pytest.mark.parametrize(
    ("toml", "line", "key", "near"),
    [
        ('\nschema_verson = "1.4"', 2, "schema_verson", "schema_version"),
        ("[verifier]\ntimeout_secs = 5", 2, "verifier.timeout_secs", "timeout_sec"),
        ("[environment]\n\nmemory_bm = 5", 3, "environment.memory_bm", "memory_mb"),
        ('[environment.healthcheck]\ncommand = "x"\nretrys = 1', 3, "environment.healthcheck.retrys", "retries"),
        ('[[steps]]\nname = "a"\n[steps.agent]\nusr = "x"', 4, "steps[a].agent.usr", "user"),
        ('[[steps]]\nname = "a"\nminreward = 1', 3, "steps[a].minreward", "min_reward"),
        ('[task]\nname = "o/t"\nauthors = [{ name = "A", mail = "x" }]', 3, "task.authors[#1].mail", "email"),
        ("[metadata.evocode]\nverify-in = 'fork'", 2, "metadata.evocode.verify-in", "verify_in"),
        ('artifacts = [{ source = "/a", destnation = "b" }]', 1, "artifacts[#1].destnation", "destination"),
        ("[environmnt]\ncpus = 1", 1, "environmnt", "environment"),
    ],
)
def test_an_unknown_key_is_shown_with_a_known_one_that_is_close(
    write_task: WriteTask, toml: str, line: int, key: str, near: str
) -> None:
    directory = write_task(toml, steps=())
    error = refusal(directory)
    assert (error.path, error.line) == (directory / "task.toml", line)
    assert str(error) == f'{directory}/task.toml:{line}: {key}: unknown key; did you mean "{near}"?'


def test_an_unknown_key_like_no_other_is_shown_with_the_known_ones(write_task: WriteTask) -> None:
    error = refusal(write_task("[solution]\nxyzzy = 1", steps=()))
    assert "solution.xyzzy: unknown key; known here: env" in str(error)


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ('agent.timeout_sec = "ten"', 'agent.timeout_sec: must be a number of seconds, not "ten"'),
        ("agent.timeout_sec = true", "agent.timeout_sec: must be a number of seconds, not true"),
        ("agent.timeout_sec = 0", "agent.timeout_sec: must be more than 0, not 0"),
        ("verifier.timeout_sec = -1.5", "verifier.timeout_sec: must be more than 0, not -1.5"),
        ("verifier.timeout_sec = inf", "verifier.timeout_sec: must be a finite number, not inf"),
        ("verifier.timeout_sec = nan", "verifier.timeout_sec: must be a finite number, not nan"),
        ("environment.build_timeout_sec = []", "must be a number of seconds, not an array"),
        ("environment.memory_mb = 1.5", "environment.memory_mb: must be a whole number, not 1.5"),
        ("environment.gpus = -1", "environment.gpus: must be at least 0, not -1"),
        ('environment.memory = "lots"', "environment.memory: must be a size of at least one megabyte"),
        ('environment.memory = "1K"', "environment.memory: must be a size of at least one megabyte"),
        ('environment = { memory = "1G", memory_mb = 5 }', "environment.memory: disagrees with memory_mb = 5; keep"),
        ('environment.allow_internet = "no"', 'environment.allow_internet: must be true or false, not "no"'),
        ('environment.workdir = "app"', "environment.workdir: must be an absolute path in the container"),
        ("environment.env = { PORT = 8080 }", "environment.env.PORT: must be text in quotes, not 8080"),
        ('environment.env = { "A=B" = "1" }', 'environment.env."A=B": a variable\'s name cannot be empty'),
        ('environment.env = { A = "\\u0000" }', "environment.env.A: cannot contain NUL"),
        ('environment.network_mode = "offline"', 'must be "public", "no-network" or "allowlist", not "offline"'),
        ('agent = "claude"', 'agent: must be a table, not "claude"'),
        ("agent.user = ''", "agent.user: must be a user name or a user id from 0"),
        ("agent.user = true", "agent.user: must be a user name or a user id from 0, not true"),
        ("verifier.user = -1", "verifier.user: must be a user name or a user id from 0, not -1"),
        ('artifacts = "/app"', "artifacts: must be an array"),
        ('artifacts = ["app"]', "artifacts[#1].source: must be an absolute path in the container"),
        ('artifacts = [{ source = "/a", destination = "../b" }]', "destination: must be a relative path without '..'"),
        ('artifacts = [{ source = "/a", destination = "/b" }]', "destination: must be a relative path without '..'"),
        ('task.name = "ledger"', 'task.name: must be a name of the form "organisation/task", not "ledger"'),
        ("environment.healthcheck.retries = 1", "environment.healthcheck.command: is missing; add it"),
        ('multi_step_reward_strategy = "max"', 'must be "mean" or "final", not "max"'),
        ('schema_version = "2.0"', 'schema_version: must be "1.0", "1.1", "1.2", "1.3" or "1.4", not "2.0"'),
        ("version = 1.0", 'version: must be "1.0", "1.1", "1.2", "1.3" or "1.4", not 1.0'),
        ('version = "1.0"\nschema_version = "1.0"', "version: is the old name of schema_version"),
        ('metadata.evocode.verify_in = "here"', 'verify_in: must be "separate", "clean" or "in-place"'),
        ("metadata.requirement_chain = 1", "metadata.requirement_chain: must be a table, not 1"),
        ('environment = { network_mode = "public", allowed_hosts = ["a"] }', "environment.allowed_hosts: only means"),
        ('agent.allowed_hosts = ["a.org"]', "agent.allowed_hosts: only means something with network_mode"),
        ('agent = { network_mode = "allowlist", allowed_hosts = ["http://a.org"] }', "must be a name such as"),
        ('agent = { network_mode = "allowlist", allowed_hosts = ["a.org:443"] }', "agent.allowed_hosts[#1]: must be a"),
        ('agent = { network_mode = "allowlist", allowed_hosts = ["a.*.org"] }', "must be a name such as"),
        ('agent = { network_mode = "allowlist", allowed_hosts = ["10.0.0.1/8"] }', "must be a name such as"),
    ],
)
def test_a_wrong_value_is_shown_with_what_is_wanted(write_task: WriteTask, toml: str, message: str) -> None:
    directory = write_task(f"\n{toml}\n", steps=())
    error = refusal(directory)
    assert message in str(error)
    assert error.line == 2
    assert "\n" not in str(error)


@pytest.mark.parametrize("value", ["nan", "-inf", "true", '"high"', "[1]", "{ reward = 'x' }", "1" + "0" * 400])
def test_min_reward_is_finite(write_task: WriteTask, value: str) -> None:
    error = refusal(write_task(f'[[steps]]\nname = "round-1"\nmin_reward = {value}\n', steps=["round-1"]))
    assert "steps[round-1].min_reward: must be a finite number, or a table of finite numbers" in str(error)
    assert error.line == 3


@pytest.mark.parametrize(
    "name", ["", ".hidden", " a", "a ", "a.", "a/b", "..", "a::b", "a[1]", "a@b", "a\\nb", "a" * 256]
)
def test_a_step_name_is_that_of_a_directory_anywhere(write_task: WriteTask, name: str) -> None:
    error = refusal(write_task(f'[[steps]]\nname = "{name}"\n', steps=()))
    assert "name: must be a name of at most 255 bytes without any of" in str(error)
    assert error.line == 2


def test_a_step_without_a_name_is_shown_by_its_number(write_task: WriteTask) -> None:
    error = refusal(write_task('[[steps]]\nname = "a"\n[[steps]]\n', steps=()))
    assert "steps[#2].name: is missing; add it" in str(error)
    assert error.line == 3


def test_a_duplicate_step_is_shown_where_it_comes_again(write_task: WriteTask) -> None:
    toml = '[[steps]]\nname = "a"\n[[steps]]\nname = "b"\n[[steps]]\nname = "a"\n'
    error = refusal(write_task(toml, steps=("a", "b")))
    assert "steps[a].name: entry 1 has the same name; every step needs its own" in str(error)
    assert error.line == 6


def test_a_requirement_chain_may_only_name_steps(write_task: WriteTask) -> None:
    toml = '[[steps]]\nname = "a"\n[[metadata.requirement_chain.steps]]\nstep = "b"\n'
    error = refusal(write_task(toml, steps=("a",)))
    assert 'metadata.requirement_chain.steps[#1].step: no step is called "b"; the steps are a' in str(error)
    assert error.line == 4


def test_a_requirement_chain_knows_three_kinds_of_change(write_task: WriteTask) -> None:
    toml = '[metadata.requirement_chain]\nsteps = [\n\n{ step = "round-1", change_types = ["growth"] }]\n'
    error = refusal(write_task(toml, steps=()))
    assert 'change_types[#1]: must be "extension", "correction" or "conflict", not "growth"' in str(error)
    assert error.line == 4


def test_several_problems_are_one_error_with_a_line_each(write_task: WriteTask) -> None:
    toml = "[verifier]\ntimeout_sec = 0\ntimeout = 1\n[agent]\nuser = 1.5\n"
    directory = write_task(toml, steps=())
    error = refusal(directory)
    path = directory / "task.toml"
    assert (error.path, error.line) == (path, 2)
    assert [line.split(": ")[:2] for line in str(error).splitlines()] == [
        [f"{path}:2", "verifier.timeout_sec"],
        [f"{path}:3", "verifier.timeout"],
        [f"{path}:5", "agent.user"],
    ]


def test_a_long_value_is_shortened(write_task: WriteTask) -> None:
    error = refusal(write_task(f'agent.timeout_sec = "{"x" * 5000}"', steps=()))
    assert len(str(error).split(": must be", 1)[1]) < 120


def test_broken_toml_is_shown_with_the_parsers_line(write_task: WriteTask) -> None:
    error = refusal(write_task('[agent]\ntimeout_sec = 1\nuser = "dev\n', steps=()))
    assert error.line == 3
    assert "not valid TOML: Illegal character '\\n' (column 12)" in str(error)


@pytest.mark.parametrize("value", ["[" * 3000 + "]" * 3000, "1" * 5000])
def test_toml_beyond_the_parser_is_a_task_error(write_task: WriteTask, value: str) -> None:
    assert "not valid TOML" in str(refusal(write_task(f"metadata.x = {value}", steps=())))


def test_a_file_that_is_not_utf_8_is_shown_with_the_byte(write_task: WriteTask) -> None:
    directory = write_task("", steps=())
    (directory / "task.toml").write_bytes('# caf\u00e9\n\nsource = "caf'.encode() + b'\xe9"')
    error = refusal(directory)
    assert error.line == 3
    assert "not UTF-8 (byte 0xe9); save the file as UTF-8" in str(error)


def test_a_task_file_that_is_missing_has_to_be_created(tmp_path: Path) -> None:
    error = refusal(tmp_path)
    assert error.path == tmp_path / "task.toml"
    assert "there is no such file; create it" in str(error)


def test_a_directory_that_does_not_exist_is_a_mistyped_name(tmp_path: Path) -> None:
    error = refusal(tmp_path / "nowhere")
    assert str(error) == f"{tmp_path / 'nowhere'}: there is no such directory; name the directory of a task"


def test_a_task_file_that_is_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "task.toml").mkdir()
    assert "must be a file" in str(refusal(tmp_path))


def test_a_task_file_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "task.toml")
    assert "must be a file" in str(refusal(tmp_path))


def test_a_task_file_that_cannot_be_read_is_a_task_error(tmp_path: Path) -> None:
    (tmp_path / "task.toml").symlink_to("task.toml")
    assert "cannot be read" in str(refusal(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_task_file_without_permission_is_a_task_error(write_task: WriteTask) -> None:
    directory = write_task()
    (directory / "task.toml").chmod(0)
    assert "cannot be read (Permission denied)" in str(refusal(directory))

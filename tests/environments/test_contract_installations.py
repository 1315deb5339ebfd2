"""What every engine promises about installations: they are part of the image, and made once for what is in them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from pytest_evocode.environments import Engine, Environment, Installation
from pytest_evocode.environments.builds import certificates
from pytest_evocode.errors import BuildError
from pytest_evocode.tasks import Task
from tests.environments.conftest import MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.matrix]

USER = "FROM python:3.11-slim-bookworm\nWORKDIR /app\nUSER nobody\n"


NAME = f"tool-{uuid.uuid4()}"


def installing(script: str) -> Installation:
    """One that is new in every test."""
    return Installation(NAME, f"# {uuid.uuid4()}\n{script}")


@pytest.fixture(scope="module", autouse=True)
def _no_images_stay_behind(engine: Engine) -> Iterator[None]:
    yield
    if engine.name == "docker":
        client = docker.APIClient()
        for image in client.images(filters={"label": f"evocode.installation={NAME}"}):
            client.remove_image(image["Id"], force=True)
        client.close()


def started(engine: Engine, task: Task, installation: Installation | None) -> Environment:
    environment = engine.create(task, env={}, network="no-network", installation=installation)
    environment.start()
    return environment


def output(environment: Environment, command: str) -> str:
    return environment.exec(command).output.strip()


def test_what_is_installed_is_there_on_top_of_the_image(engine: Engine, plain_task: Task) -> None:
    environment = started(engine, plain_task, installing("mkdir -p /opt/tool && id -u >/opt/tool/who"))
    assert output(environment, "cat /opt/tool/who /app/from-image; pwd; echo $GREETING") == (
        "0\noriginal\n/app\nhello from the image"
    )
    environment.stop()


def test_an_installation_is_made_once_for_all_attempts_and_again_for_another_script(
    engine: Engine, plain_task: Task
) -> None:
    installation = installing("date +%s%N >/opt/when")
    said = []
    for each in (installation, installation, installing("date +%s%N >/opt/when")):
        environment = started(engine, plain_task, each)
        said.append(output(environment, "cat /opt/when"))
        environment.stop()
    assert said[0] == said[1] != said[2]


def test_other_agents_find_the_image_as_it_was(engine: Engine, plain_task: Task) -> None:
    started(engine, plain_task, installing("touch /opt/tool")).stop()
    environment = started(engine, plain_task, None)
    assert output(environment, "ls /opt/tool 2>&1 || true").endswith("No such file or directory")
    environment.stop()


def test_the_images_user_stays_who_commands_run_as(engine: Engine, make_task: MakeTask) -> None:
    environment = started(engine, make_task(USER), installing("id -u >/opt/who"))
    assert output(environment, "id -un; cat /opt/who") == "nobody\n0"
    environment.stop()


def test_what_is_installed_is_no_change_of_the_agents(engine: Engine, plain_task: Task) -> None:
    environment = started(engine, plain_task, installing("echo tool >/opt/tool"))
    environment.exec("echo mine >/opt/mine", user="0")
    snapshot = environment.snapshot()
    changed = [path for path in snapshot.changed_paths(["/app"]) if path.startswith("/opt")]
    fork = environment.fork(snapshot, network="no-network")
    fork.start()
    assert output(fork, "cat /opt/tool /opt/mine") == "tool\nmine"
    assert changed == ["/opt/mine"]
    fork.stop()
    environment.stop()
    snapshot.discard()


def test_an_attempt_goes_on_from_a_snapshot_with_what_was_installed(
    engine: Engine, plain_task: Task, tmp_path: Path
) -> None:
    installation = installing("echo tool >/opt/tool")
    environment = started(engine, plain_task, installation)
    environment.exec("echo mine >/app/mine")
    snapshot = environment.snapshot(keep_for=tmp_path)
    environment.stop()
    found = engine.find_snapshot(snapshot.reference)
    assert found is not None
    later = engine.create(plain_task, env={}, network="no-network", snapshot=found, installation=installation)
    later.start()
    assert output(later, "cat /opt/tool /app/mine") == "tool\nmine"
    second = later.snapshot()
    assert "/opt/tool" not in second.changed_paths(["/app"])
    later.stop()
    second.discard()
    snapshot.discard()


def test_a_script_that_fails_is_a_build_error_with_its_last_lines_and_a_log_of_all(
    engine: Engine, plain_task: Task
) -> None:
    with pytest.raises(BuildError, match=r"(?s)^tool-\S+ could not be installed .*") as error:
        started(engine, plain_task, installing("seq 1000 1100; echo no such tool; exit 3"))
    said = str(error.value)
    assert "Start Docker" in said or engine.name == "docker"
    last = said.partition("its last lines are:\n")[2]
    # What the failing command itself printed, and nothing of what built the image.
    assert last.splitlines() == [*map(str, range(1082, 1101)), "no such tool"]
    found = re.search(r"The whole log is (\S+\.log);", said)
    assert found
    assert "1000" in Path(found[1]).read_text()


def test_the_machines_proxies_and_certificates_reach_the_script_and_stay_out_of_the_image(
    engine: Engine, plain_task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, variable in ((1, "SSL_CERT_FILE"), (2, "ca")):
        certificate = f"-----BEGIN CERTIFICATE-----\nnumber-{number}\n-----END CERTIFICATE-----\n"
        (tmp_path / f"{variable}.pem").write_text(certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "SSL_CERT_FILE.pem"))
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    script = """
        set -e
        for file in "$SSL_CERT_FILE" "$NODE_EXTRA_CA_CERTS" "$PIP_CERT" "$npm_config_cafile"; do
            grep -c -e number-1 -e number-2 "$file"
        done >/opt/seen
        echo "$HTTPS_PROXY" "$https_proxy" >>/opt/seen
    """
    installation = replace(installing(script), ca=tmp_path / "ca.pem")
    environment = started(engine, plain_task, installation)
    assert output(environment, "cat /opt/seen").split() == ["2"] * 4 + ["http://proxy.example:3128"] * 2
    assert (
        output(environment, "env | grep -i -e proxy -e CERT; grep -rls number-1 /run /tmp /opt /var /etc; true") == ""
    )
    environment.stop()


def test_of_a_file_with_a_key_beside_certificates_only_these_are_taken(tmp_path: Path) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n"
    blocks = [f"-----BEGIN CERTIFICATE-----\n{number}\n-----END CERTIFICATE-----\n" for number in (1, 2)]
    (tmp_path / "ca.pem").write_text(f"{blocks[0]}{key}{blocks[1]}")
    installation = replace(installing("true"), ca=tmp_path / "ca.pem")
    assert certificates(installation, {}).decode() == "".join(blocks)
    (tmp_path / "ca.pem").write_text(key)
    with pytest.raises(BuildError, match="which has no certificate in PEM form"):
        certificates(installation, {})


def test_a_file_of_certificates_that_is_none_is_named(engine: Engine, plain_task: Task, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"the option ca names .*none\.pem, which cannot be read: No such file"):
        started(engine, plain_task, replace(installing("true"), ca=tmp_path / "none.pem"))
    (tmp_path / "other.pem").write_text("{}")
    with pytest.raises(BuildError, match=r"other\.pem, which has no certificate in PEM form"):
        started(engine, plain_task, replace(installing("true"), ca=tmp_path / "other.pem"))


def test_a_script_is_told_which_engine_it_runs_in(engine: Engine, plain_task: Task) -> None:
    environment = started(engine, plain_task, installing("echo $EVOCODE_ENGINE >/opt/engine"))
    assert output(environment, "cat /opt/engine") == engine.name
    environment.stop()

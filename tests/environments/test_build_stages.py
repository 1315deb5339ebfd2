"""Builds of several stages: both engines make the same of a Dockerfile, and only what the last stage needs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.environments.sandbox.dockerfile import CopyInstruction, Stage, read_dockerfile
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.environments.sandbox.given_images import GivenImage, machine, read_images
from pytest_evocode.errors import BuildError, NeedsDocker
from tests.environments.image_files import file, layer, layout, link, write_directory

if TYPE_CHECKING:
    from tests.environments.conftest import MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.slow]

BASE = "python:3.11-slim-bookworm"


@pytest.fixture
def build(engine: Engine, make_task: MakeTask) -> Iterator[Callable[..., Environment]]:
    """Starts an environment of a Dockerfile, in every engine in turn."""
    with contextlib.ExitStack() as stack:

        def start(text: str, **files: str) -> Environment:
            environment = engine.create(make_task(text, files=files), env={}, network=None)
            stack.callback(environment.stop)
            environment.start()
            return environment

        yield start


def output(environment: Environment, script: str) -> str:
    result = environment.exec(script)
    assert result.ok, result.output
    return result.output


STAGES = f"""\
ARG BASE={BASE}
ARG WHO=everybody
FROM $BASE AS other
RUN echo other > /other

FROM ${{BASE}} AS Build
ARG WHO
ENV KIND=debug PATH=/opt/tool:$PATH
WORKDIR /out
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN mkdir -p tree/sub empty && echo "$WHO" > tree/sub/leaf && echo 1 > tree/one && ln -s tree/one link \\
    && ln -s /out/tree absolute && chmod 750 tree/sub && chmod 4711 tree/one && mkdir /usr/share/own && touch .hidden \\
    && echo usr > /usr/share/own/file && mkfifo fifo

FROM build AS more
RUN [[ -o pipefail ]] && echo "$KIND" > more && rm tree/one

FROM $BASE
RUN mkdir /there && ln -s /there /to-there
COPY --from=build /out/tree /whole
COPY --from=build /out/tree/one /to-there
COPY --from=build /out/link /out/tree/s* /usr/share/own /into/
COPY --from=build /out/absolute/one /as
COPY --from=1 /out/tree/one /by-number/
COPY --from=more /out /more/
COPY --from=BUILD usr/share/own/file relative
WORKDIR /last
"""


def test_files_come_from_stages_as_docker_has_it(build: Callable[..., Environment]) -> None:
    environment = build(STAGES)
    assert environment.workdir == "/last"
    assert output(environment, "cd /whole && find . -printf '%P %y %m %U\n' | LC_ALL=C sort").splitlines() == [
        " d 755 0",
        "one f 4711 0",
        "sub d 750 0",
        "sub/leaf f 644 0",
    ]
    assert output(environment, "cat /whole/sub/leaf; cd /into; find . -type f -printf '%P\n' | LC_ALL=C sort") == (
        "everybody\nfile\nleaf\nlink\n"
    )
    assert output(environment, "cat /into/link /there/one /as /by-number/one /relative; stat -c %a /by-number/one") == (
        "1\n1\n1\n1\nusr\n4711\n"
    )
    assert output(
        environment, "cd /more; cat more; ls -A; test -p fifo; readlink link absolute; test ! -e tree/one"
    ) == ("debug\n.hidden\nabsolute\nempty\nfifo\nlink\nmore\ntree\ntree/one\n/out/tree\n")
    assert "/opt/tool" not in output(environment, "test ! -e /out && test ! -e /usr/share/own && echo $KIND$PATH")


def test_a_stage_on_another_has_its_files_and_settings(build: Callable[..., Environment]) -> None:
    environment = build(
        f"FROM {BASE} AS first\nENV A=1\nWORKDIR /first\nRUN echo first > file\nENTRYPOINT []\n"
        "FROM first AS second\nENV B=$A$A\nRUN echo second >> file\nFROM second\n"
    )
    assert output(environment, "pwd; cat file; echo $A $B") == "/first\nfirst\nsecond\n1 11\n"


def test_owners_stay_and_can_be_given(build: Callable[..., Environment]) -> None:
    environment = build(
        f"FROM {BASE} AS first\nRUN mkdir /d && touch /d/file && chown -R 12:34 /d\nFROM {BASE}\n"
        "COPY --from=first /d /kept\nCOPY --from=first --chown=56:78 /d /given\n"
    )
    numbers = output(environment, "stat -c %u:%g /kept/file /given /given/file").split()
    is_rootless = environment.exec('test "$(cut -c23-32 /proc/self/uid_map)" -eq 1').ok
    assert numbers == (["0:0"] * 3 if is_rootless else ["12:34", "56:78", "56:78"])


def test_a_stage_that_nobody_needs_is_not_built(sandbox_engine: Engine, make_task: MakeTask) -> None:
    task = make_task(f"FROM {BASE} AS never\nRUN exit 1\nFROM {BASE} AS used\nRUN touch /x\nFROM used\n")
    environment = sandbox_engine.create(task, env={}, network=None)
    environment.start()
    assert output(environment, "ls /x") == "/x\n"
    environment.stop()


def parsed(directory: Path, text: str, images: dict[str, GivenImage] | None = None) -> Stage:
    (directory / "Dockerfile").write_text(text)
    return read_dockerfile(directory / "Dockerfile", images or {})


def test_only_what_the_last_stage_needs_is_built(tmp_path: Path) -> None:
    last = parsed(
        tmp_path,
        "FROM a AS one\nFROM b AS two\nCOPY --from=one /x /x\nFROM c AS unused\nFROM two\n"
        "FROM d\nCOPY --from=3 /x /x\n",
    )
    assert [stage.base for stage in last.needed()] == ["a", "b", "two", "d"]


def test_arguments_before_from_are_for_from_and_where_they_are_declared(tmp_path: Path) -> None:
    last = parsed(
        tmp_path,
        "ARG A=1\nARG B=2\nFROM x AS first\nARG A\nARG C=3\nENV V=$A$B$C\nFROM first\nENV W=$A$B$C\n"
        "ARG TARGETPLATFORM\nENV P=$TARGETPLATFORM\n",
    )
    assert last.config.env == {"V": "13", "W": "13", "P": f"linux/{machine()}"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("FROM\n", r"Dockerfile:1: FROM takes an image, and maybe AS and a name; correct it$"),
        ("FROM a as\n", r"Dockerfile:1: FROM takes an image"),
        (
            "FROM --platform=linux/sparc a\n",
            r"Dockerfile:1: this task needs Docker: FROM --platform=linux/sparc is not",
        ),
        ("FROM a\nCOPY --from=b /x /x\n", r"Dockerfile:2: .*COPY --from=b takes .* not given; --evocode-image=b=PATH"),
        ("FROM a AS b\nCOPY --from=b /x /x\n", r"Dockerfile:2: .*COPY --from=b takes files of an image that is not"),
        ("FROM a AS b\nFROM c\nADD --from=b /x /x\n", r"Dockerfile:3: this task needs Docker: ADD --from is not"),
    ],
)
def test_what_makes_no_sense_is_named(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(BuildError, match=why):
        parsed(tmp_path, text)


def test_what_a_stage_does_not_have(sandbox_engine: Engine, make_task: MakeTask) -> None:
    task = make_task(f"FROM {BASE} AS build\nFROM {BASE}\nCOPY --from=build /no/such* /x\n")
    with pytest.raises(BuildError, match=r"Dockerfile:3: /no/such\* is not in the stage build$"):
        sandbox_engine.create(task, env={}, network=None)


def test_what_of_the_host_is_hidden_cannot_be_copied(make_task: MakeTask) -> None:
    hidden = Path("/usr/share/doc")
    if not hidden.is_dir():
        pytest.skip(f"{hidden} is not there to be hidden")
    with contextlib.closing(SandboxEngine([hidden])) as engine:
        for source in (hidden, next(hidden.iterdir())):
            task = make_task(f"FROM scratch AS all\nFROM scratch\nCOPY --from=all {source} /doc\n")
            with pytest.raises(BuildError, match=f"{source} is not in the stage all"):
                engine.create(task, env={}, network=None)


@pytest.mark.parametrize("rootless", [None, True])
def test_files_come_from_an_image_that_has_no_program(
    rootless: bool | None, make_task: MakeTask, tmp_path: Path
) -> None:
    """As those do that are nothing but a program to be copied."""
    files = layer(file("tool", "#!/bin/sh\necho ran\n", mode=0o755), link("usr/link", "../tool"))
    image = write_directory(layout([((files,), {"Env": ["A=1"]}, None)]), tmp_path / "layout")
    with contextlib.closing(SandboxEngine(images={"example.org/tool": image}, rootless=rootless)) as engine:
        text = "COPY --from=example.org/tool:latest /tool /usr/link /opt/\nCOPY --from=named --chmod=500 /tool /other\n"
        task = make_task(f"FROM example.org/tool AS named\nFROM scratch\n{text}")
        environment = engine.create(task, env={}, network=None)
        environment.start()
        assert (
            output(environment, "/opt/tool; /opt/link; /other; stat -c %a /other; echo $A") == "ran\nran\nran\n500\n\n"
        )
        environment.stop()


def test_an_origin_is_a_stage_before_an_image(tmp_path: Path) -> None:
    image = write_directory(layout([((), {}, None)]), tmp_path / "layout")
    images = read_images({"tool": image})
    step, *_ = parsed(tmp_path, "FROM a AS tool\nFROM b\nCOPY --from=tool /x /x\n", images).steps
    assert isinstance(step, CopyInstruction)
    assert isinstance(step.origin, Stage)
    with pytest.raises(NeedsDocker):
        parsed(tmp_path, "FROM b\nCOPY --from=1 /x /x\n", images)

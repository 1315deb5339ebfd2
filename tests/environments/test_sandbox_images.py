"""How a sandbox replays a Dockerfile on the host's own system, and what it says when it cannot."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.environments.sandbox import base_system
from pytest_evocode.environments.sandbox.base_system import base_packages
from pytest_evocode.environments.sandbox.dockerfile import CopyInstruction, RunInstruction, read_dockerfile
from pytest_evocode.environments.sandbox.environment import PATH
from pytest_evocode.errors import BuildError

if TYPE_CHECKING:
    from tests.environments.conftest import MakeTask

pytestmark = [pytest.mark.turns(2), pytest.mark.slow]

FROM = "FROM python:3.11-slim-bookworm\n"
Build = Callable[..., Environment]


@pytest.fixture
def build(sandbox_engine: Engine, make_task: MakeTask) -> Iterator[Build]:
    """Starts a sandbox of the Dockerfile that begins with :data:`FROM` and goes on as said."""
    made: list[Environment] = []

    def start(text: str, **files: str | bytes) -> Environment:
        context = {name.replace("__", "/"): contents for name, contents in files.items()}
        task = make_task(FROM + text, files=context)
        environment = sandbox_engine.create(task, env={}, network=None)
        environment.start()
        made.append(environment)
        return environment

    yield start
    for environment in made:
        environment.stop()


def output(environment: Environment, script: str) -> str:
    result = environment.exec(script)
    assert result.ok, result.output
    return result.output


# Instructions.


@pytest.mark.matrix
def test_workdir_is_made_relative_to_the_last_one_and_used(build: Build) -> None:
    environment = build("WORKDIR /srv/one\nWORKDIR two\nRUN pwd > here\n")
    assert environment.workdir == "/srv/one/two"
    assert output(environment, "pwd; cat here") == "/srv/one/two\n/srv/one/two\n"


@pytest.mark.matrix
def test_env_in_both_forms_with_variables_put_in(build: Build) -> None:
    environment = build(
        'ENV ONE=1 TWO="two words"\nENV OLD the old form\nENV BOTH=$ONE-${TWO} PATH=/opt/bin:$PATH\n'
        'RUN echo "$BOTH" > /both\nENV ONE=changed\n'
    )
    assert output(environment, "echo $ONE; echo $OLD; echo $BOTH; cat /both") == (
        "changed\nthe old form\n1-two words\n1-two words\n"
    )
    assert output(environment, "echo $PATH").startswith("/opt/bin:/usr/local/sbin:/usr/local/bin:")


@pytest.mark.matrix
def test_arg_is_there_for_the_build_only(build: Build) -> None:
    environment = build('ARG NAME=app\nARG EMPTY\nENV KEPT=${NAME}\nWORKDIR /$NAME\nRUN echo "$NAME|$EMPTY" > built\n')
    assert environment.workdir == "/app"
    assert output(environment, 'cat built; echo "$NAME|$KEPT"') == "app|\n|app\n"


@pytest.mark.matrix
def test_arg_before_from(sandbox_engine: Engine, make_task: MakeTask) -> None:
    task = make_task("ARG TAG=3.11-slim-bookworm\nFROM python:${TAG}\nWORKDIR /ok\n")
    assert sandbox_engine.create(task, env={}, network=None).workdir == "/ok"


@pytest.mark.matrix
def test_run_in_shell_and_exec_form(build: Build) -> None:
    environment = build('RUN echo "$0" > /shell && \\\n    # a comment between\n    echo more >> /shell\n'
                        'RUN ["touch", "/exec $HOME"]\n')  # fmt: skip
    assert output(environment, "cat /shell; ls -d /exec*") == "/bin/sh\nmore\n/exec $HOME\n"


@pytest.mark.matrix
def test_shell_changes_the_shell_form(build: Build) -> None:
    environment = build('SHELL ["/bin/bash", "-o", "pipefail", "-c"]\nRUN [[ -o pipefail ]] && echo $0 > /shell\n')
    assert output(environment, "cat /shell") == "/bin/bash\n"


@pytest.mark.matrix
def test_user_holds_for_later_runs_and_for_commands(build: Build) -> None:
    environment = build("RUN id -u > /before\nUSER nobody:nogroup\nRUN id -un > /tmp/after\n")
    assert output(environment, "cat /before /tmp/after; id -un") == "0\nnobody\nnobody\n"


@pytest.mark.matrix
def test_a_user_made_by_the_dockerfile(build: Build) -> None:
    environment = build("RUN echo 'dev:x:4321:4321::/home/dev:/bin/bash' >> /etc/passwd && mkdir /home/dev\nUSER dev\n")
    assert output(environment, "id -u; echo $HOME") == "4321\n/home/dev\n"


@pytest.mark.matrix
def test_useradd_gives_a_user_a_group_of_its_own(build: Build) -> None:
    environment = build("RUN useradd --create-home worker\nUSER worker\n")
    numbers = "grep ^worker: /etc/passwd | cut -d: -f3-; grep ^worker: /etc/group | cut -d: -f3"
    assert output(environment, f"{numbers}; stat -c %G /home/worker; id -gn").splitlines() == [
        "1000:1000::/home/worker:/bin/sh",
        "1000",
        "worker",
        "worker",
    ]


@pytest.mark.matrix
def test_programs_that_ask_pam_do_what_root_says(build: Build) -> None:
    environment = build(
        "RUN useradd worker && chfn -f 'Some Body' worker && echo worker:secret | chpasswd\n"
        "RUN adduser --quiet --disabled-password --gecos 'Some Body,,,' other && passwd -S other > /state\n"
    )
    assert output(environment, "grep -E '^(worker|other):' /etc/passwd | cut -d: -f5") == 2 * "Some Body,,,\n"
    assert output(environment, "cut -d' ' -f1-2 /state; stat -c %a /etc/shadow /etc/gshadow") == "other L\n640\n640\n"
    assert output(environment, "grep -c ^root: /etc/shadow /etc/gshadow") == "/etc/shadow:1\n/etc/gshadow:1\n"


@pytest.mark.matrix
def test_volume_makes_directories(build: Build) -> None:
    assert output(build('VOLUME /data /more\nVOLUME ["/json"]\n'), "ls -d /data /more /json") == "/data\n/json\n/more\n"


@pytest.mark.matrix
def test_instructions_for_running_change_nothing(build: Build) -> None:
    environment = build(
        'LABEL a="b c"\nEXPOSE 80\nMAINTAINER x\nSTOPSIGNAL SIGINT\n'
        'HEALTHCHECK CMD true\nCMD ["x"]\nENTRYPOINT exit 1\n'
    )
    assert environment.exec(["true"]).ok


@pytest.mark.matrix
def test_lower_case_instructions_and_a_comment_on_top(sandbox_engine: Engine, make_task: MakeTask) -> None:
    task = make_task("# syntax=docker/dockerfile:1\nfrom python:3.11-slim-bookworm\nworkdir /low\n")
    assert sandbox_engine.create(task, env={}, network=None).workdir == "/low"


@pytest.mark.matrix
def test_an_image_named_python_has_python(build: Build) -> None:
    assert output(build(""), "python -c 'print(1)'; python3 -c 'print(2)'") == "1\n2\n"


@pytest.mark.matrix
def test_pip_of_an_image_named_python_installs(build: Build) -> None:
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("own.py", "print('own')")
        archive.writestr("own-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: own\nVersion: 1\n")
        archive.writestr("own-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("own-1.dist-info/RECORD", "")
    install = "python3 -m pip install --no-index --no-deps /own-1-py3-none-any.whl && python3 -m own || exit 1"
    environment = build("COPY own-1-py3-none-any.whl /\n", **{"own-1-py3-none-any.whl": wheel.getvalue()})
    # Where the host's Python has no pip, the image has none.
    assert output(environment, f"if python3 -m pip --version; then {install}; else echo own; fi").endswith("own\n")


# COPY and ADD.

CONTEXT = {"a.txt": "a", "b.txt": "b", "dir__c": "c", "dir__sub__d": "d", ".hidden": "h"}


#: Instructions that copy into one directory, and what it has then.
COPIES = [
    ("COPY a.txt NEW/name", "name"),
    ("COPY a.txt NEW/", "a.txt"),
    ("RUN mkdir NEW\nCOPY a.txt NEW", "a.txt"),
    ("WORKDIR NEW\nCOPY a.txt .", "a.txt"),
    ("WORKDIR NEW\nCOPY a.txt ./name", "name"),
    ("COPY a.txt b.txt NEW/", "a.txt b.txt"),
    ("COPY *.txt NEW/", "a.txt b.txt"),
    ("COPY ?.txt NEW", "a.txt b.txt"),
    ("COPY dir NEW", "c sub sub/d"),
    ("COPY dir/ NEW/", "c sub sub/d"),
    ("COPY ./dir/sub/.. NEW", "c sub sub/d"),
    ("COPY a.txt dir NEW/", "a.txt c sub sub/d"),
    ("COPY . NEW", ".hidden Dockerfile a.txt b.txt dir dir/c dir/sub dir/sub/d"),
    ("WORKDIR NEW\nCOPY / ./", ".hidden Dockerfile a.txt b.txt dir dir/c dir/sub dir/sub/d"),
    ('COPY ["a.txt", "NEW/with space"]', "with space"),
    ("ARG WHAT=a\nCOPY $WHAT.txt NEW/${WHAT}", "a"),
    ("ADD a.txt NEW/", "a.txt"),
]


@pytest.mark.matrix
def test_copy_follows_dockers_rules(build: Build) -> None:
    lines = [copy.replace("NEW", f"/new-{number}") for number, (copy, _) in enumerate(COPIES)]
    environment = build("\n".join(lines) + "\n", **CONTEXT)
    for number, (copy, found) in enumerate(COPIES):
        listed = output(environment, f"cd /new-{number} && find . -mindepth 1 | cut -c3- | LC_ALL=C sort")
        assert " ".join(listed.splitlines()) == found, copy
    assert set(output(environment, "find /new-* -mindepth 1 -exec stat -c %u {} +").split()) == {"0"}


@pytest.mark.matrix
def test_copy_keeps_exec_bits_and_links(build: Build, make_task: MakeTask, sandbox_engine: Engine) -> None:
    task = make_task(f"{FROM}COPY . /new\n", files={"script": "#!/bin/sh\necho ran\n", "dir/file": "text"})
    (task.environment_directory / "script").chmod(0o755)
    (task.environment_directory / "link").symlink_to("dir/file")
    environment = sandbox_engine.create(task, env={}, network=None)
    environment.start()
    assert output(environment, "/new/script; readlink /new/link; cat /new/link") == "ran\ndir/file\ntext"
    environment.stop()


@pytest.mark.matrix
def test_dockerignore_leaves_files_out(build: Build) -> None:
    ignore = "# comment\n*.txt\n!b.txt\ndir/sub\n.dockerignore\nDockerfile\n\n"
    environment = build("COPY . /new\n", **CONTEXT, **{".dockerignore": ignore})
    listed = output(environment, "cd /new && find . -mindepth 1 | cut -c3- | LC_ALL=C sort")
    assert listed.split() == [".hidden", "b.txt", "dir", "dir/c"]


@pytest.mark.matrix
def test_copy_gives_owner_and_mode(build: Build, sandbox_engine: Engine) -> None:
    environment = build(
        "RUN mkdir /there && touch /there/before\n"
        "COPY --chown=nobody --chmod=640 a.txt /there/\nCOPY --chown=12:34 dir /new\nCOPY --chmod=755 dir /mode\n"
        "COPY --chown=7 b.txt /top.txt\n",
        **CONTEXT,
    )
    stat = "stat -c '%n %u:%g' /there /there/before /there/a.txt /new /new/sub/d /top.txt"
    if output(environment, "cat /proc/self/uid_map").split()[:3] == ["0", "0", "4294967295"]:
        assert output(environment, stat).splitlines() == [
            "/there 0:0", "/there/before 0:0", "/there/a.txt 65534:65534",
            "/new 12:34", "/new/sub/d 12:34", "/top.txt 7:7",
        ]  # fmt: skip
    else:  # One owner has everything, under whatever number it runs.
        assert environment.exec("cat /there/a.txt /new/sub/d", user="nobody").output == "ad"
    assert output(environment, "stat -c %a /there/a.txt /mode/c /mode/sub /usr /there").split() == [
        "640", "755", "755", "755", "755"
    ]  # fmt: skip


@pytest.mark.matrix
def test_add_unpacks_a_tar_and_copy_does_not(build: Build) -> None:
    archives: dict[str, bytes] = {}
    modes: dict[str, Any] = {"files.tar": "w:", "files.tar.gz": "w:gz", "files.tar.xz": "w:xz"}
    for name, mode in modes.items():
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode=mode) as archive:
            info = tarfile.TarInfo("inner/file")
            info.size, info.mode = 4, 0o755
            archive.addfile(info, io.BytesIO(b"text"))
        archives[name] = stream.getvalue()
    lines = "".join(f"ADD {name} /unpacked/{name}\nCOPY {name} /whole/\n" for name in archives)
    environment = build(lines, **archives)
    for name in archives:
        assert output(environment, f"cat /unpacked/{name}/inner/file") == "text"
    assert output(environment, "ls /whole").split() == list(archives)


@pytest.mark.parametrize("kind", ["../evil", "/evil", "link"])
@pytest.mark.matrix
def test_add_of_a_tar_that_leads_out_writes_nothing_there(build: Build, tmp_path: Path, kind: str) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        info = tarfile.TarInfo(kind)
        if kind == "link":
            info.type, info.linkname = tarfile.SYMTYPE, str(tmp_path)
            archive.addfile(info)
            info = tarfile.TarInfo("link/evil")
        archive.addfile(info)
    if kind == "/evil":
        assert output(build("ADD evil.tar /unpacked/\n", **{"evil.tar": stream.getvalue()}), "ls /unpacked") == "evil\n"
    else:
        with pytest.raises(BuildError, match=r"Dockerfile:2: evil.tar cannot be unpacked"):
            build("ADD evil.tar /unpacked/\n", **{"evil.tar": stream.getvalue()})
    assert list(tmp_path.iterdir()) == []


# What BuildKit has beside the old instructions.

DOCUMENTS = """
ARG WHO=you
RUN <<EOF
mkdir /made
echo "one $WHO" > /made/run
EOF
RUN <<EOF
#!/usr/bin/env python3
print("of Python", file=open("/made/script", "w"))
EOF
RUN cat <<-one > /made/first && cat <<"two" > \\
    /made/second
\ta tab is left out
\tone
# no comment, and no \\
$WHO
two
COPY <<EOF <<'literal' /made/copied/
WORKDIR is a word here, and so are $WHO and ${WHO}
EOF
$WHO
literal
COPY <<only /made/only
all
only
"""


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("run", "one you\n"),
        ("script", "of Python\n"),
        ("first", "a tab is left out\n"),
        ("second", "# no comment, and no \\\n$WHO\n"),
        ("copied/EOF", "WORKDIR is a word here, and so are you and you\n"),
        ("copied/literal", "$WHO\n"),
        ("only", "all\n"),
    ],
)
def test_here_documents(build: Build, file: str, text: str) -> None:
    assert output(build(DOCUMENTS), f"cat /made/{file}") == text


def test_a_byte_order_mark_defaults_and_what_makes_builds_faster(sandbox_engine: Engine, make_task: MakeTask) -> None:
    dockerfile = "\ufeff" + FROM + "ARG A=1\nENV X=${A:-2} Y=${B:-3} Z=${A:+4}\nCOPY --link a.txt /a\n"
    dockerfile += "RUN --mount=type=cache,target=/cache touch /ran\n"
    environment = sandbox_engine.create(make_task(dockerfile, files={"a.txt": "a"}), env={}, network=None)
    environment.start()
    assert output(environment, "echo $X $Y $Z; cat /a; ls /ran") == "1 3 4\na/ran\n"
    environment.stop()


def parsed(directory: Path, text: str) -> list[str | dict[str, str]]:
    """Return the last words of what is run, and the here-documents that are copied."""
    dockerfile = directory / "Dockerfile"
    dockerfile.write_bytes(f"{FROM}{text}".encode())
    steps = read_dockerfile(dockerfile).steps
    assert all(isinstance(step, CopyInstruction | RunInstruction) for step in steps)
    return [dict(step.documents) if isinstance(step, CopyInstruction) else step.argv[-1] for step in steps]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("run <<EOF\nlow\nEOF\n", ["low\n"]),
        ("RUN true && \\\n  # why <<x\n\n cat <<EOF\na\nEOF\n", ["true &&  cat <<EOF\na\nEOF\n"]),
        ("RUN true && \\ \n cat 3<<EOF\r\na\r\nEOF\n", ["true &&  cat 3<<EOF\na\nEOF\n"]),
        ("RUN last \\\n\n", ["last "]),
        ("RUN last \\", ["last "]),
        ("RUN printf 'a\x0cb\u2028c'\n", ["printf 'a\x0cb\u2028c'"]),
        ("COPY <<robots.txt <<my-file /w/\na\nrobots.txt\nb\nmy-file\n", [{"robots.txt": "a\n", "my-file": "b\n"}]),
        ("ARG A=1\nCOPY <<EOF /x\n\\$A \\\\ $A ${B:-${A}}\nEOF\n", [{"EOF": "$A \\ 1 1\n"}]),
        ("ARG A=1\nCOPY <<\\EOF /x\n\\$A\nEOF\n", [{"EOF": "\\$A\n"}]),
    ],
)
def test_here_documents_and_lines_that_go_on_are_those_of_buildkit(
    tmp_path: Path, text: str, found: list[str | dict[str, str]]
) -> None:
    assert parsed(tmp_path, text) == found


def test_another_escape_character(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"# escape=`\n{FROM}RUN true && `\n cat <<EOF\na\nEOF\n")
    (step,) = read_dockerfile(tmp_path / "Dockerfile").steps
    assert isinstance(step, RunInstruction)
    assert step.argv[-1] == "true &&  cat <<EOF\na\nEOF\n"


@pytest.mark.parametrize(
    "command",
    [
        "echo 'cat <<EOF' \"and <<EOF\" > file",
        "echo 'cout <<x;' > a.cpp && echo $((1<<X)) $((1 << X)) && cat <<<EOF",
        'cat "a"<<EOF',
        "echo it's <<EOF",
    ],
)
def test_two_signs_that_are_no_here_document(tmp_path: Path, command: str) -> None:
    assert parsed(tmp_path, f"RUN {command}\nRUN next\n") == [command, "next"]
    assert parsed(tmp_path, 'RUN ["bash", "-c", "cat <<EOF"]\nCMD cat <<EOF\nRUN next\n') == ["cat <<EOF", "next"]


def test_variables_within_defaults_and_several_arguments(tmp_path: Path) -> None:
    text = "ARG T=top\nFROM x\nARG T\nARG A=1 B='2 3'\nENV V=$T W=${A:-${B}} X=${N:-${A:-4}} Y=${N:-$B}!\n"
    (tmp_path / "Dockerfile").write_text(text)
    assert read_dockerfile(tmp_path / "Dockerfile").config.env == {"V": "top", "W": "1", "X": "1", "Y": "2 3!"}


def test_what_is_not_utf_8_is_no_matter_in_a_comment(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_bytes(b"# \xe9\nFROM x\n")
    assert read_dockerfile(tmp_path / "Dockerfile").base == "x"


def test_the_directories_of_caches_are_there(tmp_path: Path) -> None:
    text = "WORKDIR /w\nRUN --mount=type=cache,target=/c,id=1 --mount=dst=t,type=tmpfs true\n"
    assert parsed(tmp_path, text) == ["/w", "/c", "/w/t", "true"]


# Packages.


def test_a_base_image_has_the_packages_of_a_base_image(build: Build) -> None:
    """Others are not installed whatever this machine has, so that one gets their users and settings, too."""
    environment = build("")
    installed = output(environment, "dpkg-query -W -f '${Package}\\n'").splitlines()
    assert {"apt", "bash", "coreutils", "dpkg", "libc6"} <= {*installed}
    assert not {"chromium", "docker.io", "gcc", "nginx", "openssh-server"} & {*installed}
    assert output(environment, "apt-get check && dpkg --audit; id -un www-data; cat /etc/debian_version") != ""


def test_what_depends_on_one_another_comes_along_and_nothing_else() -> None:
    status = "\n\n".join(
        f"Package: {name}\nStatus: {state}\n{more}"
        for name, state, more in (
            ("apt", "install ok installed", "Depends: lib (>= 2) | other, virtual,\n gone | there:any"),
            ("lib", "install ok installed", "Pre-Depends: deep"),
            ("other", "install ok installed", ""),
            ("deep", "install ok installed", "Depends: apt"),
            ("real", "install ok installed", "Provides: more, virtual (= 1)"),
            ("there", "install ok installed", ""),
            ("gone", "deinstall ok config-files", "Essential: yes"),
            ("shell", "install ok installed", "Essential: yes"),
            ("game", "install ok installed", ""),
        )
    )
    packages = base_packages(status)
    assert [*packages] == ["apt", "deep", "lib", "real", "shell", "there"]
    assert packages["lib"] == "Package: lib\nStatus: install ok installed\nPre-Depends: deep"


def test_held_packages_and_those_of_other_architectures() -> None:
    status = "\n\n".join(
        f"Package: {name}\nStatus: {state}\nArchitecture: {architecture}\n{more}"
        for name, state, architecture, more in (
            ("apt", "install ok installed", "amd64", "Depends: lib:any, data"),
            ("data", "hold ok installed", "all", "Version: 1"),
            ("dpkg", "install ok triggers-awaited", "amd64", "Essential: yes\nTriggers-Awaited: lib\nVersion: 1"),
            ("lib", "install ok triggers-pending", "amd64", "Version: 1\nTriggers-Pending: ldconfig"),
            ("lib", "install ok installed", "i386", "Depends: other"),
            ("other", "install ok installed", "i386", "Essential: yes"),
            ("half", "install ok half-configured", "amd64", "Essential: yes"),
        )
    )
    packages = base_packages(status + "\n\nStatus: install ok installed\n\n\0\0")
    assert [*packages] == ["apt", "data", "dpkg", "lib"]
    assert packages["data"] == "Package: data\nStatus: install ok installed\nArchitecture: all\nVersion: 1"
    for name in ("dpkg", "lib"):
        assert "Triggers" not in packages[name]
        assert "Status: install ok installed\nArchitecture: amd64\n" in packages[name]
    assert base_packages("") == {}


def test_a_machine_with_dpkg_and_without_apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "var/lib/dpkg/info").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").touch()
    monkeypatch.setattr(base_system, "_DPKG", tmp_path / "var/lib/dpkg")
    monkeypatch.setattr(base_system, "_ETC_ALLOWED", ())
    base_system.lay_base(tmp_path / "base", promised_tool=None, rootless=True)
    assert (tmp_path / "base/root/etc/apt/apt.conf.d/99-one-user").is_file()


def test_what_only_some_may_read_and_credentials_stay_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    apt, layer = tmp_path / "apt", tmp_path / "layer"
    files = {
        "auth.conf.d/own": "machine example.org\nlogin me\npassword secret\n",
        "apt.conf.d/proxy": 'Acquire::http::Proxy "http://me:secret@example.org";\n',
        "client.pem": "-----BEGIN EC PRIVATE KEY-----\nsecret\n",
        "private/file": "secret",
        "apt.conf.d/other": "public",
    }
    for name, text in files.items():
        (apt / name).parent.mkdir(parents=True, exist_ok=True)
        (apt / name).write_text(text)
    (apt / "private").chmod(0o700)
    (apt / "apt.conf.d/link").symlink_to(apt / "private/file")
    base_system._copy_public(str(apt), layer)
    assert [path.name for path in layer.rglob("*") if path.is_file()] == ["other"]


def test_a_cache_below_usr_is_not_walked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    layer = tmp_path / "layer"
    (layer / str(tmp_path).lstrip("/")).parent.mkdir(parents=True)
    monkeypatch.setattr("os.walk", lambda _, walk=os.walk: walk(tmp_path))
    base_system.lay_directories(layer)
    assert not (layer / str(layer).lstrip("/")).exists()


def test_names_with_spaces_and_signs_are_taken_as_they_are(tmp_path: Path) -> None:
    """APT hands the packages to a shell, which makes their files one's own; here it says which."""
    names = ["a file", " *", "F\u0151tan\u00fas\u00edtv\u00e1ny.crt", "back\\slash"]
    for name in names:
        (tmp_path / "tree" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "tree" / name).touch()
    (tmp_path / "dpkg-deb").write_text('#!/bin/sh\nexec tar -C "$2" -c .\n')
    (tmp_path / "dpkg-deb").chmod(0o755)
    commands = "test() { case $# in 2) [ $2 != / ];; esac; }; cp() { echo $2; }; mv() { :; }; "
    ran = subprocess.run(
        ["sh", "-c", commands + base_system._OWNING],
        input=f"{tmp_path}/tree\n".encode(),
        capture_output=True,
        env={"PATH": f"{tmp_path}:{PATH}", "LC_ALL": "C"},
    )
    assert ran.stderr == b""
    assert sorted(ran.stdout.decode().splitlines()) == sorted(f"/{name}" for name in names)


DEB = """
RUN mkdir -p /deb/DEBIAN /deb/opt/own /deb/usr/bin /deb/etc && cd /deb && \\
    printf '%s\\n' 'Package: own' 'Version: 1' 'Architecture: all' 'Maintainer: a <a@example.org>' \\
      'Replaces: util-linux' 'Description: x' > DEBIAN/control && \\
    printf '#!/bin/sh\\nset -e\\nuseradd -m keeper\\nchown keeper:www-data /opt/own\\n' > DEBIAN/postinst && \\
    chmod 755 DEBIAN/postinst && echo first > etc/own.conf && echo own > usr/bin/chrt && \\
    dpkg-deb --build . /own.deb && rm -r /deb && cd / && INSTALL && chown keeper /opt
"""


@pytest.mark.parametrize(
    "install",
    ["apt-get install -y /own.deb", "dpkg -i own.deb", "mkdir '/a place' && mv own.deb '/a place' && dpkg -iR /a*"],
)
def test_packages_are_installed_with_their_users_also_in_place_of_the_machines_own_files(
    build: Build, install: str
) -> None:
    environment = build(DEB.replace("INSTALL", install))
    assert output(environment, "dpkg -s own | grep Status; cat /usr/bin/chrt /etc/own.conf; id -un keeper") == (
        "Status: install ok installed\nown\nfirst\nkeeper\n"
    )


def test_other_users_see_an_image_that_was_made_with_a_closed_umask(
    sandbox_engine: Engine, make_task: MakeTask
) -> None:
    before = os.umask(0o077)
    try:
        task = make_task(
            f"{FROM}ENV UMASK=077\nCOPY <<EOF /copied\ntext\nEOF\nRUN mkdir /made && echo made > /made/file\n"
        )
        environment = sandbox_engine.create(task, env={}, network=None)
        environment.start()
    finally:
        os.umask(before)
    modes = (
        "stat -c %a / /etc /etc/passwd /etc/hosts /usr /var /var/lib /var/lib/dpkg /var/lib/dpkg/status /copied /made"
    )
    assert environment.exec(f"{modes}; cat /etc/os-release /made/file /copied >/dev/null", user="nobody").output == (
        "755\n755\n644\n644\n755\n755\n755\n755\n644\n644\n755\n"
    )
    environment.stop()


def test_a_build_makes_fifos_and_does_without_devices(build: Build) -> None:
    """What a build without root may not do seems to succeed, and all else does, as the FIFOs of make's servers."""
    environment = build(
        "RUN mkfifo /tmp/fifo && mknod /tmp/other p && mknod /tmp/null c 1 3; test -p /tmp/fifo\n"
        "RUN chown 12:34 /tmp/fifo\n"
        'RUN python3 -c \'import os; os.mkfifo("/tmp/third"); os.mknod("/tmp/file")\' && mkfifo /tmp/fourth\n'
    )
    assert output(environment, "cd /tmp && test -p fifo && test -p other && test -p third && test -f file && ls") == (
        "fifo\nfile\nfourth\nother\nthird\n"
    )


# Refusals.


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("COPY --from=builder /x /x\n", 2, "COPY --from"),
        ("WORKDIR /x\n\nADD https://example.org/x.tar /x\n", 4, "needs a network"),
        ("ADD git@github.com:o/r.git /x\n", 2, "needs a network"),
        ("RUN --mount=type=secret,id=token true\n", 2, "RUN --mount=type=secret,id=token"),
        ("RUN --mount=type=bind,target=/b --mount=type=cache,target=/c true\n", 2, "RUN --mount=type=bind,target=/b"),
        ("RUN --network=none true\n", 2, "RUN --network=none"),
        ("COPY --parents a /a\n", 2, "COPY --parents"),
        ("COPY --chmod=u+x a.txt /a\n", 2, "write it in octal"),
        ("ONBUILD RUN true\n", 2, "ONBUILD is not replayed"),
    ],
)
def test_what_has_no_replay_needs_docker(build: Build, text: str, line: int, why: str) -> None:
    with pytest.raises(BuildError) as caught:
        build(text, **CONTEXT)
    message = str(caught.value)
    assert f"environment/Dockerfile:{line}: this task needs Docker: " in message
    assert why in message
    assert "--evocode-env=docker" in message
    assert "\n" not in message


def test_a_here_document_that_does_not_end(build: Build) -> None:
    with pytest.raises(BuildError, match=r"Dockerfile:2: the here-document EOF does not end; add a line EOF$"):
        build("RUN cat <<EOF\ntext\n")


def test_a_mistyped_instruction_needs_no_docker(build: Build) -> None:
    with pytest.raises(BuildError, match=r"Dockerfile:2: Dockerfiles have no instruction WORKDR; correct it$"):
        build("WORKDR /x\n")


@pytest.mark.matrix
def test_a_failing_run_shows_its_last_lines(build: Build) -> None:
    with pytest.raises(BuildError) as caught:
        build("WORKDIR /x\nRUN for i in $(seq 100); do echo line $i; done; echo oops >&2; exit 3\n")
    message = str(caught.value)
    assert "environment/Dockerfile:3: replayed on " in message
    assert "ended with exit code 3" in message
    assert "start Docker" in message
    assert message.endswith("\nline 100\noops")
    assert "line 81\n" not in message


@pytest.mark.matrix
def test_a_run_over_the_builds_time_limit(sandbox_engine: Engine, make_task: MakeTask) -> None:
    task = make_task(f"{FROM}RUN echo begun; sleep 300\n", toml="[environment]\nbuild_timeout_sec = 4\n")
    with pytest.raises(BuildError, match=r"Dockerfile:2: .*did not end in 4 s(.|\n)*begun$"):
        sandbox_engine.create(task, env={}, network=None)


def test_a_base_whose_language_is_missing_here(sandbox_engine: Engine, make_task: MakeTask) -> None:
    languages = {"eclipse-temurin": "java", "golang": "go", "ruby": "ruby", "php": "php", "rust": "cargo"}
    for image, tool in languages.items():
        if shutil.which(tool, path=PATH) is None:
            task = make_task(f"# A comment\nFROM registry.example.org/library/{image}:21@sha256:0\n")
            why = f"Dockerfile:2: this task needs Docker: FROM .* promises {tool}, and this system has none"
            with pytest.raises(BuildError, match=why):
                sandbox_engine.create(task, env={}, network=None)
            return
    pytest.skip("this machine has all of " + ", ".join(languages.values()))


@pytest.mark.parametrize(
    ("copy", "why"),
    [
        ("COPY missing.txt /x", "missing.txt is not in the build context"),
        ("COPY *.missing /x/", "is not in the build context"),
        ("COPY ignored /x", "ignored is not in the build context"),
        ("COPY ../task.toml /x", "lies outside the build context"),
        ("COPY a.txt", "needs a source and a target"),
        ("COPY passwd /x", "is a link out of the build context"),
        ("COPY etc /x", "is a link out of the build context"),
    ],
)
@pytest.mark.matrix
def test_copy_of_what_is_not_there(sandbox_engine: Engine, make_task: MakeTask, copy: str, why: str) -> None:
    task = make_task(f"{FROM}{copy}\n", files={**CONTEXT, "ignored/file": "", ".dockerignore": "ignored\n"})
    (task.environment_directory / "passwd").symlink_to("/etc/passwd")
    (task.environment_directory / "etc").symlink_to("/etc")
    with pytest.raises(BuildError) as caught:
        sandbox_engine.create(task, env={}, network=None)
    assert "environment/Dockerfile:2: " in str(caught.value)
    assert why in str(caught.value)


def test_a_dockerfile_without_from(sandbox_engine: Engine, make_task: MakeTask) -> None:
    with pytest.raises(BuildError, match="no FROM line"):
        sandbox_engine.create(make_task("WORKDIR /x\n"), env={}, network=None)


def test_a_finished_image_needs_docker(sandbox_engine: Engine, make_task: MakeTask) -> None:
    task = make_task(None, toml='[environment]\ndocker_image = "python:3.11"\n')
    with pytest.raises(BuildError, match=r"task.toml: this task needs Docker: docker_image names a finished image"):
        sandbox_engine.create(task, env={}, network=None)

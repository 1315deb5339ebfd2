"""What every environment promises about directories that are kept on the host and put into another environment."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Environment
from pytest_evocode.environments.tree_archives import DirectoryAbove

if TYPE_CHECKING:
    from tests.environments.conftest import MakeEnvironment

pytestmark = [pytest.mark.turns(2), pytest.mark.matrix]

ABOVE = (DirectoryAbove("/srv/home", 0, 0, 0o700), DirectoryAbove("/srv/home/.cache", 0, 0, 0o750))
PLACE = "/srv/home/.cache/tool"
FILL = f"""
umask 022; mkdir -p {PLACE}/deep/er; cd {PLACE}
echo one > deep/one; ln deep/one deep/er/two; ln -s ../one deep/er/link; ln -s /no/where dangling
chmod 640 deep/one; chmod 555 deep/er; touch -d 2020-02-02T02:02:02Z deep/one; printf x > $'latin-\\xe9'
mkfifo pipe; chmod 4755 latin*
"""


def move(source: Environment, target: Environment, paths: Sequence[str] = (PLACE,)) -> None:
    """Put directories of one environment into another."""
    with tempfile.TemporaryFile() as archive:
        source.pack_trees(paths, archive)
        archive.seek(0)
        target.put_trees(paths, ABOVE, archive)


def test_modes_times_links_and_odd_names_survive(environment: Environment, make_environment: MakeEnvironment) -> None:
    environment.exec(FILL)
    other = make_environment()
    other.exec(f"mkdir -p {PLACE}/old; touch {PLACE}/old/file {PLACE}/deep; chmod 711 /srv/home")
    move(environment, other)
    look = "find . -printf '%P %y %l %u:%g\\n' | sort; stat -c '%a %Y %h' deep/one; ls -i deep/one deep/er/two"
    found = other.exec(look, cwd=PLACE).output.split("\n")
    assert found[0].startswith(" d")
    names = [line.split(" ")[0] for line in found[1:8]]
    assert names == ["dangling", "deep", "deep/er", "deep/er/link", "deep/er/two", "deep/one", names[-1]]
    assert names[-1].startswith("latin-")
    assert "dangling l /no/where root:root" in found
    assert "640 1580608922 2" in found
    first, second = (line.split()[0] for line in found[-3:-1])
    assert first == second
    assert other.exec(f"stat -c %a /srv/home {PLACE}/deep/er {PLACE}/latin*").output.split() == ["711", "555", "755"]


def test_owners_keep_their_numbers(environment: Environment, make_environment: MakeEnvironment) -> None:
    if not environment.exec(f"mkdir -p {PLACE}; echo 1 > {PLACE}/file && chown 1234:4321 {PLACE}/file {PLACE}").ok:
        pytest.skip("all owners are one without root")
    other = make_environment()
    move(environment, other)
    assert other.exec(f"stat -c '%u:%g' {PLACE} {PLACE}/file /srv/home").output.split() == [
        "1234:4321",
        "1234:4321",
        "0:0",
    ]
    assert other.exec("stat -c %a /srv/home /srv/home/.cache").output.split() == ["700", "750"]


def test_what_is_not_there_is_removed_and_what_is_no_directory_is_passed_over(
    environment: Environment, make_environment: MakeEnvironment
) -> None:
    environment.exec("mkdir -p /srv/other; ln -s /etc /srv/link; echo x > /srv/file")
    other = make_environment()
    other.exec("mkdir -p /srv/nothing/deep /srv/link; echo y > /srv/file")
    move(environment, other, ["/srv/nothing", "/srv/link", "/srv/file", "/srv/other"])
    assert other.exec("ls /srv").output.split() == ["home", "other"]


def test_files_are_kept_where_that_is_asked_for(environment: Environment, make_environment: MakeEnvironment) -> None:
    environment.exec("mkdir -p /srv; echo x > /srv/file; ln -s file /srv/link; mkfifo /srv/pipe; mkdir /srv/tree")
    other = make_environment()
    with tempfile.TemporaryFile() as archive:
        environment.pack_trees(
            [f"/srv/{name}" for name in ("file", "link", "pipe", "tree", "none")], archive, files=True
        )
        archive.seek(0)
        other.put_trees((), (), archive)
    assert other.exec("ls /srv; cat /srv/file").output.split() == ["file", "tree", "x"]


@pytest.mark.parametrize(
    "planted",
    [
        "ln -s /app/elsewhere /srv/home",
        "touch /srv/home",
        pytest.param("mkfifo /srv/home", marks=pytest.mark.nightly),
    ],
)
def test_what_stands_in_the_way_is_replaced(
    environment: Environment, make_environment: MakeEnvironment, planted: str
) -> None:
    environment.exec(FILL)
    other = make_environment()
    other.exec(f"mkdir -p elsewhere/.cache/tool/mine; {planted}")
    move(environment, other)
    assert other.exec(f"cat {PLACE}/deep/one; find elsewhere | sort").output == (
        "one\nelsewhere\nelsewhere/.cache\nelsewhere/.cache/tool\nelsewhere/.cache/tool/mine\n"
    )
    assert other.exec(f"readlink -f {PLACE}").output == f"{PLACE}\n"

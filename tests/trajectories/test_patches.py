"""Differences of trees: programs that apply patches make one tree of the other."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_evocode.environments import Environment
from pytest_evocode.trajectories.patches import host_tree, tree_patches, workspace_tree

OLD = {
    "same.txt": b"same\n",
    "changed.txt": b"one\ntwo\n",
    "gone/deep.txt": b"bye\n",
    "ends.txt": b"no line end",
    "latin.txt": b"caf\xe9\r\n",
    "run.sh": b"true\n",
    "becomes-a-link": b"text\n",
}
NEW = {
    "same.txt": b"same\n",
    "changed.txt": b"one\n2\n",
    "ends.txt": b"a line end\n",
    "latin.txt": b"th\xe9\r\n",
    "run.sh": b"true\n",
    "new/empty": b"",
    "new/with space.txt": b"hello\n\x0cpage\n",
}


def write(directory: Path, files: Mapping[str, bytes]) -> Path:
    for path, content in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(content)
    return directory


def patch_of(old: Path, new: Path) -> str:
    return "".join(tree_patches(host_tree(old), host_tree(new)))


@pytest.mark.parametrize("argv", [["git", "apply"], ["patch", "-p1", "-s"]], ids=["git", "patch"])
def test_a_patch_makes_the_new_tree_of_the_old_one(tmp_path: Path, argv: list[str]) -> None:
    old, new = write(tmp_path / "old", OLD), write(tmp_path / "new", NEW)
    (new / "run.sh").chmod(0o755)
    (new / "becomes-a-link").symlink_to("changed.txt")
    patch = patch_of(old, new).encode("utf-8", "surrogateescape")
    subprocess.run(argv, cwd=old, input=patch, check=True)
    assert host_tree(old) == host_tree(new)
    assert patch_of(old, new) == ""


def test_it_is_in_gits_form(tmp_path: Path) -> None:
    old, new = write(tmp_path / "old", {"a": b"1\n"}), write(tmp_path / "new", {"b": b"2\n"})
    (new / "b").chmod(0o755)
    assert patch_of(old, new).splitlines() == [
        *("diff --git a/a b/a", "deleted file mode 100644", "--- a/a", "+++ /dev/null", "@@ -1 +0,0 @@", "-1"),
        *("diff --git a/b b/b", "new file mode 100755", "--- /dev/null", "+++ b/b", "@@ -0,0 +1 @@", "+2"),
    ]


def test_binary_files_are_named(tmp_path: Path) -> None:
    old = write(tmp_path / "old", {"changed": b"\0a", "gone": b"\0", "same": b"\0", "mode": b"\0"})
    new = write(tmp_path / "new", {"changed": b"\0b", "new": b"\0", "same": b"\0", "mode": b"\0"})
    (new / "mode").chmod(0o755)
    assert patch_of(old, new).splitlines() == [
        *("diff --git a/changed b/changed", "Binary files a/changed and b/changed differ"),
        *("diff --git a/gone b/gone", "deleted file mode 100644", "Binary files a/gone and /dev/null differ"),
        *("diff --git a/mode b/mode", "old mode 100644", "new mode 100755"),
        *("diff --git a/new b/new", "new file mode 100644", "Binary files /dev/null and b/new differ"),
    ]


def test_what_tools_leave_behind_does_not_count(tmp_path: Path) -> None:
    old = write(tmp_path / "old", {"a": b""})
    new = write(tmp_path / "new", {"a": b"", "__pycache__/a.pyc": b"x", "node_modules/b/c.js": b"x", ".a.swp": b"x"})
    assert patch_of(old, new) == ""


@pytest.mark.matrix
def test_a_workspace_is_read_as_a_directory_of_the_host_is(tmp_path: Path, environment: Environment) -> None:
    files = write(tmp_path, {**OLD, "large": b"\n" * (4 * 2**20 + 1)})
    environment.upload([files], environment.workdir)
    (files / "link").symlink_to("same.txt")
    made = environment.exec(
        "rm -r from-image tree; ln -s same.txt link; mkdir .git __pycache__; touch .git/HEAD __pycache__/a.pyc"
    )
    assert made.ok, made.output
    found, expected = dict(workspace_tree(environment)), dict(host_tree(files))
    large, whole = found.pop("large"), expected.pop("large")
    assert found == expected
    assert (large.content, len(large.sha256 or ""), whole.mode) == (None, 64, large.mode)
    other = replace(large, sha256="other")
    assert "".join(tree_patches({"large": large}, {"large": large})) == ""
    assert "Binary files a/large and b/large differ" in "".join(tree_patches({"large": large}, {"large": other}))

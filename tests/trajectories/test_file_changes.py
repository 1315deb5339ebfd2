"""Changes of files that were recorded, done again in every environment, byte for byte."""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_evocode.environments import Environment
from pytest_evocode.trajectories.file_changes import apply_changes
from pytest_evocode.trajectories.workspace_changes import WorkspaceChanges
from tests.trajectories.conftest import Act, sha256

pytestmark = [pytest.mark.turns(2), pytest.mark.slow]

Tree = dict[str, tuple[int, bytes] | str]
"""Mode and content of files, targets of symlinks."""


def trees() -> st.SearchStrategy[Tree]:
    """Trees that fit on one disk: no file stands where another one has a directory."""
    parts = st.sampled_from(["a", "b", "c.py", "d e", "é"])
    paths = st.lists(parts, min_size=1, max_size=3).map("/".join)
    contents = st.text(st.sampled_from("xy\n\r é"), max_size=40).map(str.encode) | st.binary(max_size=8)
    nodes = st.tuples(st.sampled_from([0o644, 0o755, 0o600]), contents) | st.sampled_from(["b", "../x", "/nowhere"])
    return st.dictionaries(paths, nodes, max_size=7).map(
        lambda tree: {
            path: node
            for path, node in tree.items()
            if not any(path.startswith(f"{other}/") for other in tree if other != path)
        }
    )


def put(environment: Environment, tree: Tree) -> None:
    """Have nothing but a tree in the workspace."""
    environment.exec("shopt -s dotglob; rm -rf -- *")
    with tempfile.TemporaryDirectory() as directory:
        for path, node in tree.items():
            place = Path(directory, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(node, str):
                place.symlink_to(node)
            else:
                place.write_bytes(node[1])
                place.chmod(node[0])
        environment.upload([Path(directory)], environment.workdir)


def tree_of(environment: Environment) -> Tree:
    archive = io.BytesIO()
    assert environment.exec("tar -cf - .", stdout=archive).ok
    archive.seek(0)
    tree: Tree = {}
    with tarfile.open(fileobj=archive) as members:
        for member in members:
            path = member.name.removeprefix("./")
            if member.issym():
                tree[path] = member.linkname
            elif file := members.extractfile(member):
                tree[path] = (member.mode, file.read())
    return tree


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=trees(), new=trees())
@pytest.mark.nightly
def test_what_was_recorded_leads_from_one_tree_to_the_other(shared_sandbox: Environment, old: Tree, new: Tree) -> None:
    put(shared_sandbox, old)
    workspace = WorkspaceChanges(shared_sandbox)
    workspace.begin()
    put(shared_sandbox, new)
    changes = workspace.changes()
    assert workspace.remarks() == {}
    put(shared_sandbox, old)
    assert apply_changes(shared_sandbox, changes) == {}
    assert tree_of(shared_sandbox) == new


@pytest.fixture(scope="module")
def shared_sandbox(sandbox_engine: Any, plain_task: Any) -> Any:
    """A sandbox whose files are everybody's to change."""
    environment = sandbox_engine.create(plain_task, env={}, network="no-network")
    environment.start()
    yield environment
    environment.stop()


@pytest.mark.matrix
def test_actions_one_after_the_other_are_applied_at_once(act: Act, environment: Environment) -> None:
    changes = [
        *act("echo 1 > a; printf 'x\\ny' > tree/b; rm from-image"),
        *act("echo 2 >> a; chmod 700 tree/b; mkdir c; mv tree/b c"),
        *act("rm -r c; ln -s a c; printf '\\0' > bin"),
    ]
    after = tree_of(environment)
    environment.exec("rm -rf *; mkdir -p tree/sub; echo original > from-image; echo deep > tree/sub/leaf")
    assert apply_changes(environment, changes) == {}
    assert tree_of(environment) == after


@pytest.mark.matrix
def test_a_directory_of_sources_becomes_a_symlink_to_itself(act: Act, environment: Environment) -> None:
    act("mkdir c.py; echo 1 > c.py/c.py")
    changes = act("rm -r c.py; ln -s c.py c.py")
    environment.exec("rm c.py; mkdir c.py; echo 1 > c.py/c.py")
    assert apply_changes(environment, changes) == {}
    assert environment.exec("readlink c.py").output == "c.py\n"


@pytest.mark.matrix
def test_files_belong_to_whom_it_is_said(environment: Environment) -> None:
    environment.exec("mkdir open; chmod 777 open")
    added = {"path": "open/new/a", "kind": "added", "mode": "0640", "diff": "", "sha256": sha256(b"")}
    assert apply_changes(environment, [added], user=12345) == {}
    listed = environment.exec("stat -c '%u %a' open/new/a; stat -c %u open/new", user="0").output
    assert listed in ("12345 640\n12345\n", "0 640\n0\n")  # A rootless sandbox has one user.


def test_what_cannot_be_applied_is_told_and_left_alone(environment: Environment) -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-other\n+new\n"
    tables: list[dict[str, Any]] = [
        {"path": "from-image", "kind": "modified", "mode": "0644", "diff": diff, "sha256": None},
        {"path": "large", "kind": "added", "mode": "0644", "diff": None, "content": None, "sha256": "0" * 64},
        {"path": "../out", "kind": "added", "mode": "0644", "diff": ""},
        {"path": "/out", "kind": "added", "mode": "0644", "diff": ""},
        {"path": "fine", "kind": "added", "mode": "0644", "diff": ""},
    ]
    refused = apply_changes(environment, tables)
    assert refused == {
        "from-image": "the diff's line 4 is not what the text has there",
        "large": "the recording has neither its diff nor its content",
        "../out": "the path leads out of the directory",
        "/out": "the path leads out of the directory",
    }
    assert environment.exec("cat from-image fine; ls").output == "original\nfine\nfrom-image\ntree\n"


def test_no_symlink_of_a_recording_leads_to_the_host(environment: Environment, tmp_path: Path) -> None:
    link = {"path": "way", "kind": "added", "symlink": str(tmp_path)}
    apply_changes(environment, [link, {"path": "way/in", "kind": "added", "mode": "0644", "diff": ""}])
    apply_changes(environment, [{**link, "path": "way/"}, {"path": "way/in", "kind": "added", "diff": ""}])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.matrix
def test_python_compiles_anew_what_was_applied(act: Act, environment: Environment) -> None:
    act("echo 'print(111)' > a.py")
    changes = act("touch -d @1000000000 a.py; sed -i s/111/222/ a.py; touch -d @1000000000 a.py")
    run = "touch -d @1000000000 a.py; python3 -c 'import a'"
    environment.exec("echo 'print(111)' > a.py")
    assert environment.exec(run).output == "111\n"
    assert apply_changes(environment, changes) == {}
    assert environment.exec(run).output == "222\n"

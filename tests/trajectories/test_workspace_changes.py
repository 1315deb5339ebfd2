"""What an agent's actions change in its workspace, as it is seen from outside, in every environment."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from pytest_evocode.environments import Environment
from pytest_evocode.environments.sandbox.environment import SandboxEnvironment
from pytest_evocode.trajectories.workspace_changes import ChangeLimits, WorkspaceChanges
from tests.trajectories.conftest import Act, sha256

pytestmark = pytest.mark.turns(2)


def names(changes: list[dict[str, Any]]) -> dict[str, str]:
    return {change["path"]: change["kind"] for change in changes}


def test_one_action_after_the_other_is_told_by_what_it_changes(act: Act, workspace: WorkspaceChanges) -> None:
    assert act("true") == []
    assert act("cat from-image; touch from-image; ls tree") == []

    # A file of the image that is changed is a diff.
    assert act("echo more >> from-image") == [
        {
            "path": "from-image",
            "kind": "modified",
            "mode": "0644",
            "diff": "--- a/from-image\n+++ b/from-image\n@@ -1 +1,2 @@\n original\n+more\n",
            "sha256": sha256(b"original\nmore\n"),
            "content": None,
            "symlink": None,
        }
    ]
    assert act("true") == []

    # What is moved is deleted and added.
    deleted, added = act("mv tree/sub/leaf tree/renamed")[::-1]
    assert (added["path"], added["kind"], deleted["path"], deleted["kind"]) == (
        *("tree/renamed", "added"),
        *("tree/sub/leaf", "deleted"),
    )
    assert added["diff"] == "--- /dev/null\n+++ b/tree/renamed\n@@ -0,0 +1 @@\n+deep\n"
    assert (deleted["sha256"], deleted["mode"]) == (None, None)

    # Names may have anything in them, and one that cannot be written down is counted.
    changes = act(r"""echo 1 > 'a b'; echo 2 > $'new\nline'; echo 3 > é; echo 4 > '$(x)"'; echo 5 > -n""")
    assert names(changes) == dict.fromkeys(["a b", "new\nline", "é", '$(x)"', "-n"], "added")
    assert workspace.remarks() == {}
    assert names(act(r"""touch $'caf\351' cafe""")) == {"cafe": "added"}
    assert workspace.remarks() == {"unrecorded": {"files": 1, "contents": 0}}


@pytest.mark.matrix
def test_a_change_of_the_same_length_within_the_same_tick_is_seen(act: Act) -> None:
    for number in range(10, 20):
        (change,) = act(f"printf {number} > from-image")
        assert change["sha256"] == sha256(b"%d" % number)


@pytest.mark.matrix
def test_modes_symlinks_and_files_that_are_no_text(act: Act) -> None:
    (mode,) = act("chmod 755 from-image")
    assert (mode["kind"], mode["mode"], mode["diff"], mode["sha256"]) == ("modified", "0755", "", sha256(b"original\n"))
    (link,) = act("ln -s tree/sub way")
    assert (link["kind"], link["symlink"], link["mode"], link["sha256"]) == ("added", "tree/sub", None, None)
    (link,) = act("ln -sfn tree way")
    assert (link["kind"], link["symlink"]) == ("modified", "tree")
    was_link, is_file = act("rm way; echo x > way")
    assert (was_link["kind"], is_file["kind"], is_file["symlink"]) == ("deleted", "added", None)
    (binary,) = act(r"printf 'a\0b' > bin")
    assert (binary["diff"], base64.b64decode(binary["content"])) == (None, b"a\0b")
    (latin,) = act(r"printf 'caf\351' > latin")
    assert (latin["diff"], base64.b64decode(latin["content"])) == (None, b"caf\xe9")


@pytest.mark.matrix
def test_caches_and_what_is_left_out_are_passed_over(act: Act, workspace: WorkspaceChanges) -> None:
    assert (
        act("mkdir -p node_modules/a src/__pycache__ .venv; touch node_modules/a/b src/__pycache__/c .venv/d e.pyc")
        == []
    )
    assert act("mkdir -p env target; touch env/pyvenv.cfg env/a target/CACHEDIR.TAG target/b; mkfifo pipe") == []
    workspace.leave_out(["AGENTS.md", "./skills/"])
    assert names(act("mkdir skills; touch skills/a AGENTS.md AGENTS.md.bak")) == {"AGENTS.md.bak": "added"}


@pytest.mark.matrix
def test_a_look_leaves_no_trace(act: Act, environment: Environment) -> None:
    script = "sleep 0.05; rm -rf new; mkdir new; for i in $(seq {}); do echo $i > new/$i; done; "
    # When a directory was last listed changes by looking when. A container's engine reads a single file by bash.
    read = "%A@" if isinstance(environment, SandboxEnvironment) else ""
    listing = f"find . /tmp /logs -type d -printf '%p %T@ %C@\\n' -o -printf '%p {read} %T@ %C@\\n' | sort"
    for number in (1, 40):
        before = environment.exec(script.format(number) + listing).output
        act("true")
        assert environment.exec(listing).output == before


@pytest.mark.matrix
def test_background_processes_live_on(act: Act, environment: Environment) -> None:
    act("(while sleep 0.05; do date +%N > beat; done) >/dev/null 2>&1 &")
    for _ in range(5):
        act("sleep 0.06")
    assert environment.exec("pgrep -f 'sleep 0.05' || sleep 0.2; cat beat").ok


@pytest.mark.matrix
def test_limits_keep_an_action_short(environment: Environment) -> None:
    limits = ChangeLimits(file=1000, whole=50, recorded=2000, recorded_files=4, listed=6, read_files=10)
    workspace = WorkspaceChanges(environment, limits=limits)
    workspace.begin()
    environment.exec("seq 400 > large; head -c 100 /dev/zero > binary; for i in 1 2 3 4 5 6; do echo $i > sub$i; done")
    changes = workspace.changes()
    assert len(changes) == 6
    assert workspace.remarks() == {"unrecorded": {"files": 2, "contents": 4}}
    tables = {change["path"]: change for change in changes}
    for name in ("large", "binary"):
        assert tables[name]["diff"] is tables[name]["content"] is None
        assert tables[name]["sha256"] in environment.exec(["sha256sum", name]).output
    environment.exec("echo 401 >> large; touch binary")
    (large,) = workspace.changes()
    assert (large["path"], large["kind"], large["diff"]) == ("large", "modified", None)


@pytest.mark.matrix
def test_a_large_workspace_is_read_as_far_as_the_limit_goes(environment: Environment) -> None:
    environment.exec("mkdir deep; for i in $(seq 100); do echo $i > deep/$i; done; echo top > top")
    workspace = WorkspaceChanges(environment, limits=ChangeLimits(read_files=50))
    workspace.begin()
    environment.exec("echo more >> top; for i in $(seq 100); do echo more >> deep/$i; done")
    changes = {change["path"]: change for change in workspace.changes()}
    assert changes["top"]["diff"].endswith(" top\n+more\n")
    assert len(changes) == 101
    assert all(change["sha256"] for change in changes.values())


@pytest.mark.matrix
def test_what_happens_between_two_rounds_is_nobodys(
    act: Act, workspace: WorkspaceChanges, environment: Environment
) -> None:
    environment.exec("echo setup > given")
    workspace.begin()
    (change,) = act("echo more >> given")
    assert change["diff"].endswith("@@ -1 +1,2 @@\n setup\n+more\n")


@pytest.mark.matrix
def test_a_workspace_that_is_gone_is_told_of_once(act: Act, workspace: WorkspaceChanges) -> None:
    assert act("rm -rf /app") == []
    assert workspace.remarks() == {
        "unrecorded": {"why": "the workspace could not be looked at: the working directory is gone"}
    }
    assert (workspace.changes(), workspace.remarks()) == ([], {})


@pytest.mark.matrix
def test_without_its_tools_another_way_is_found_and_without_any_it_is_told(
    act: Act, workspace: WorkspaceChanges
) -> None:
    gone = act('rm "$(command -v find)" "$(command -v tar)"; mkdir .git-not; echo new > tree/new; ln -s tree/new link')
    assert names(gone) == {"tree/new": "added", "link": "added"}
    (link, _) = gone
    assert link["symlink"] == "tree/new"
    assert names(act("for i in $(seq 40); do echo $i > $i; done; chmod 600 tree/new")) == {
        **{str(number): "added" for number in range(1, 41)},
        "tree/new": "modified",
    }
    assert act('rm "$(command -v stat)"; echo x > x') == []
    assert workspace.remarks() == {
        "unrecorded": {"why": "the workspace could not be looked at: the container has neither GNU find nor stat"}
    }


@pytest.mark.matrix
def test_commits_are_noted_with_what_they_change(
    act: Act, workspace: WorkspaceChanges, environment: Environment
) -> None:
    if not environment.exec("git --version").ok:
        pytest.skip("the environment has no git")
    git = "git -c user.name=a -c user.email=a@b"
    assert act("git init -q .") == []
    assert workspace.remarks() == {}
    act(f"echo 1 > a; echo 2 > 'é b'; git add .; {git} commit -qm 'First: two files' -m 'And why.'")
    (first,) = workspace.remarks()["commits"]
    assert (first["message"], sorted(first["paths"])) == (
        "First: two files\n\nAnd why.",
        ["a", "from-image", "tree/sub/leaf", "é b"],
    )
    assert first["id"] in environment.exec("git rev-parse HEAD").output
    act(f"git rm -q a; {git} commit -qm Second; echo 3 > c; git add c; {git} commit -qm Third; git checkout -q HEAD~1")
    assert [(commit["message"], commit["paths"]) for commit in workspace.remarks()["commits"]] == [
        ("Second", ["a"]),
        ("Third", ["c"]),
    ]
    act(f"git init -q sub/inner; cd sub/inner; echo 1 > d; git add d; {git} commit -qm Inner")
    assert [commit["paths"] for commit in workspace.remarks()["commits"]] == [["sub/inner/d"]]

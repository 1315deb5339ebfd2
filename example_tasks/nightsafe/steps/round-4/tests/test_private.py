"""What lies about is nobody else's."""

import pytest
from bench import FIRST, below, complaint, directory, file, link, stored

SOURCE = below({"x": "1"}, "src")
MODES = "call find store -mindepth 1 -printf '%y %m %P\\n'\n"


def modes(answer):
    return {tuple(line.split(" ")[:2]) for line in answer.out.split("\n")[:-1]}


@pytest.mark.requirement("private", kind="core")
def test_modes_of_new_files(bench):
    """What a take makes is for the owner alone, whatever the umask."""
    for_all, left = bench.run(f"umask 000\ncall take acme src\n{MODES}", SOURCE)
    assert (for_all.status, modes(left)) == (0, {("d", "700"), ("f", "600")})


@pytest.mark.requirement("private", kind="core")
@pytest.mark.parametrize(("command", "keep"), [("take acme src", 7), ("rotate acme", 7), ("rotate acme", 1)])
def test_modes_of_old_files(bench, command, keep):
    """What was there of the customer is closed as well, and nothing of others."""
    there = {"store/acme": directory(), "store/other": directory(), "store/other/catalogue": ""}
    there |= stored(["20200501", "20240102-000000"], settings=f"keep={keep}\n") | {"store/acme/exclude": "tmp\n"}
    done, left = bench.run(f"umask 022\ncall {command}\n{MODES}", {**SOURCE, **there})
    assert done.status == 0
    found = [line.split(" ") for line in left.out.split("\n")[:-1]]
    assert {(kind, mode) for kind, mode, name in found if "acme" in name} == {("d", "700"), ("f", "600")}
    assert sorted(mode for _, mode, name in found if "other" in name) == ["644", "755"]


@pytest.mark.requirement("private", kind="core")
def test_nothing_elsewhere(bench):
    """No command makes a file in /tmp or where TMPDIR says, nor writes through what lies there."""
    names = ["list", "sum", "catalogue", "report", "20240102-000000.tar"]
    script = f"""
        for name in {" ".join(names)}; do ln -sf "$BASE/victim" /tmp/nightsafe.$name; done
        ls -A /tmp > before
        export TMPDIR=$BASE/gone
        umask 000
        call take acme src; call list acme; call verify acme; call report
        call restore acme 20240102-000000 out; call rotate acme
        unset TMPDIR
        ls -A /tmp | diff before - > changes
        rm -f /tmp/nightsafe.*
        call cat victim changes
        call find . -mindepth 1 -maxdepth 1
        {MODES}
    """
    there = {**SOURCE, "victim": "untouched", **stored(["20200501", "20240102-000000"], settings="keep=2\n")}
    *answers, victim, left, found = bench.run(script, there)
    assert [answer.status for answer in answers] == [0] * 6
    assert victim.out == "untouched"
    assert sorted(left.out.split()) == ["./answers", "./before", "./changes", "./out", "./src", "./store", "./victim"]
    assert modes(found) == {("d", "700"), ("f", "600")}


@pytest.mark.requirement("restored", kind="core")
def test_directories_above_the_target(bench):
    """What has to be made above TARGET is for the owner alone."""
    calls = "umask 000\ncall take acme src\ncall restore acme 20260401-023000 new/deep/out\n"
    *_, left = bench.run(f"{calls}call stat -c %a new new/deep new/deep/out/x", SOURCE)
    assert left.out.split() == ["700", "700", "644"]


@pytest.mark.requirement("restored", kind="core")
def test_set_id_bits(bench):
    """Files lose their set-id bits and no other, and directories none."""
    there = {"-u": file("1", 0o4755), "g\n": file("2", 0o2711), "both": file("3", 0o6777), "plain": file("4", 0o751)}
    there |= {"dir": directory(0o2755), "dir/u": file("5", 0o4700)}
    calls = "call take acme src\ncall restore acme 20260401-023000 out\ntree out"
    *_, out = bench.run(calls, below(there, "src"))
    found = {name: entry.mode for name, entry in out.tree.items() if name != "."}
    expected = {"-u": 0o755, "g\n": 0o711, "both": 0o777, "plain": 0o751, "dir": 0o2755, "dir/u": 0o700}
    assert found == expected


@pytest.mark.requirement("links", kind="core")
def test_customers_that_are_links(bench):
    """A customer who is a link is not in the store, and what it leads to stays as it was."""
    there = {name.replace("store/acme", "elsewhere"): data for name, data in stored(["20240102-000000"]).items()}
    calls = ["list acme", "verify acme", "restore acme 20240102-000000 out", "rotate acme", "take acme src"]
    script = "".join(f"call {call}\n" for call in calls) + "call ls elsewhere\ncall cat elsewhere/catalogue"
    files = {**SOURCE, **there, "store/acme": link("../elsewhere")}
    *answers, taken, left, catalogue = bench.run(script, files)
    assert answers == [complaint(1, "no such customer: acme")] * 4
    assert (taken.status, taken.out, "nightsafe: not taken: src\n" in taken.err) == (1, "", True)
    assert left.out.split() == ["20240102-000000.tar.gz", "catalogue"]
    assert catalogue.out.encode() == there["elsewhere/catalogue"].encode()


@pytest.mark.requirement("links", kind="core")
def test_archives_that_are_links(bench):
    """An archive that is a link or a directory is missing: not restored, not counted, not removed."""
    there = stored(["20240102-000000", "20240103-000000", "20240104-000000"], settings="keep=1\n")
    there["elsewhere"] = there["store/acme/20240103-000000.tar.gz"]
    there["store/acme/20240103-000000.tar.gz"] = link("../../elsewhere")
    del there["store/acme/20240104-000000.tar.gz"]
    there["store/acme/20240104-000000.tar.gz/x"] = "a directory"
    calls = "call verify acme\ncall restore acme 20240103-000000 out\ncall rotate acme\ncall ls store/acme elsewhere"
    verified, back, rotated, left = bench.run(calls, there)
    assert [row[1] for row in verified.rows] == ["ok", "missing", "missing"]
    assert back.told == complaint(3, "missing: 20240103-000000")
    assert (rotated.status, rotated.out, left.out.count(".tar.gz")) == (0, "", 3)
    assert left.out.startswith("elsewhere\n")


@pytest.mark.requirement("links", kind="error")
@pytest.mark.parametrize("kind", ["link", "directory"])
def test_files_that_are_not_ours(bench, kind):
    """A catalogue, settings or exclude that is no file of its own stops all commands that would read it."""
    calls = {
        "catalogue": ["list acme", "verify acme", "restore acme 20240102-000000 out", "rotate acme", "take acme src"],
        "settings": ["rotate acme", "rotate -n acme"],
        "exclude": ["take acme src"],
    }
    script = ""
    for name, commands in calls.items():
        replace = f"ln -s ../../{name} ." if kind == "link" else f"mkdir {name}"
        script += f"(cd store/acme; mv {name} ../../{name}; {replace})\nfind store ! -name '.*' > before\n"
        script += "".join(f"call {command}\n" for command in commands)
        script += f"find store ! -name '.*' | diff before - >> changes\nrm -r store/acme/{name}; mv {name} store/acme\n"
    there = stored(["20240101-000000", "20240102-000000"], settings="keep=1\n") | {"store/acme/exclude": ""}
    *answers, changes = bench.run(f"{script}call cat changes", {**SOURCE, **there})
    expected = [(1, "", f"nightsafe: not ours: {name}\n") for name, commands in calls.items() for _ in commands]
    # Beside it a take may say as well that nothing is taken (2.2).
    told = [answer.told.err.replace("nightsafe: not taken: src\n", "") for answer in answers]
    found = [(answer.status, answer.out, err) for answer, err in zip(answers, told, strict=True)]
    assert (found, changes.out) == (expected, "")


@pytest.mark.requirement("links", kind="boundary")
def test_store_that_is_a_link(bench):
    """The store itself may be a link."""
    calls = "NIGHTSAFE_STORE=$BASE/to\ncall take acme src\ncall verify acme\ncall rotate acme\ncall report"
    answers = bench.run(calls, {**SOURCE, "to": link("store")})
    assert [answer.status for answer in answers] == [0, 0, 0, 0]
    assert answers[1].out == "20260401-023000\tok\n"


@pytest.mark.requirement("exclude", kind="core")
def test_exclude(bench):
    """What is called so is not taken, nor what is below; what only looks alike is."""
    kept = ["tmp2", "a.tmp", "deep/tmp", "nxm", "a", "deep/sub/keep", "x", "cache", "#no", "var/cached", "ab"]
    gone = ["tmp/x", "tmp/deep/y", "n*m", "[ab]", "a\\b", " x ", "#yes", "var/cache/z", "-v", "deep/sub/gone", "\\"]
    lines = ["tmp", "", "n*m", "[ab]", "a\\b", " x ", "#yes", "var/cache", "-v", "not/there", "deep/sub/gone", "\\"]
    tree = {name: file(name) for name in [*kept, *gone]}
    files = {**below(tree, "src"), "store/acme/exclude": "\n".join(lines)}
    script = f"""
        call take acme src
        call restore acme 20260401-023000 out
        call bash -c 'cd out; find . -type f | sort'
        rm store/acme/exclude
        NIGHTSAFE_NOW={FIRST + 1}
        call take acme src
        call restore acme 20260401-023001 all
        call bash -c 'cd all; find . -type f | sort'
    """
    _, back, out, _, _, everything = bench.run(script, files)
    assert back.status == 0
    assert sorted(out.out.split("\n")[:-1]) == sorted(f"./{name}" for name in kept)
    assert sorted(everything.out.split("\n")[:-1]) == sorted(f"./{name}" for name in [*kept, *gone])


@pytest.mark.requirement("exclude", kind="boundary")
def test_exclude_of_one_customer(bench):
    """An exclude is that of its customer, and old backups have what they had."""
    files = {
        **below({"tmp": "1", "x": "2"}, "src"),
        "store/acme/exclude": "tmp\n",
        **stored(["20240102-000000"], "other"),
    }
    calls = "call take acme src\ncall take other src\ncall restore other 20260401-023000 out\ncall ls out"
    *_, out = bench.run(calls, files)
    assert out.out == "tmp\nx\n"

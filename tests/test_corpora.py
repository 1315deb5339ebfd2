"""The list of public corpora whose tasks are counted, and the counting itself."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.acceptance.tasks import task_writer
from tests.environments.test_datasets import git

if TYPE_CHECKING:
    from benchmarks.corpora import Corpus, count, read_manifest
else:  # Where the package is installed, what lies beside it is not on the path.
    spec = importlib.util.spec_from_file_location("corpora", Path(__file__).parents[1] / "benchmarks/corpora.py")
    corpora = sys.modules["corpora"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(corpora)
    Corpus, count, read_manifest = corpora.Corpus, corpora.count, corpora.read_manifest


def test_at_least_ten_repositories_are_counted_each_at_a_commit() -> None:
    corpora = read_manifest()
    assert len({each.repository for each in corpora}) >= 10
    for each in corpora:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", each.repository)
        assert re.fullmatch(r"[0-9a-f]{40}", each.commit)
        assert each.tasks - each.collect == sum(each.refused.values())


def test_of_all_tasks_ninety_nine_percent_collect_and_of_each_corpus_nine_in_ten() -> None:
    corpora = read_manifest()
    assert sum(each.collect for each in corpora) >= 0.99 * sum(each.tasks for each in corpora)
    assert [each.repository for each in corpora if each.collect < 0.9 * each.tasks] == []


def test_tasks_that_do_not_collect_are_counted_by_why(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    for name in ("a", "b", "c"):
        task_writer(corpus)(name, 1)
    for name in ("b", "c"):
        (corpus / f"tasks/{name}/steps/round-1/tests/test.sh").unlink()
    (corpus / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    git(corpus, "init", "--quiet")
    git(corpus, "add", ".")
    git(corpus, "commit", "--quiet", "-m", "all")
    mirrors = tmp_path / "mirrors"
    mirrors.mkdir()
    subprocess.run(["git", "clone", "--quiet", "--bare", corpus, mirrors / "acme+corpus"], check=True)
    counted = count(Corpus("acme/corpus", git(corpus, "rev-parse", "HEAD")), mirrors)
    assert (counted.tasks, counted.collect, [*counted.refused.values()]) == (3, 1, [2])
    assert str(tmp_path) not in str(counted.refused)

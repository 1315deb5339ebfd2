"""Paths in instructions that nothing of the task knows."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.checks.conftest import DOCKERFILE, SCRIPT, LintTask

SECOND = "steps/round-2/instruction.md"


def doubted(lint_task: LintTask, instruction: str, files: Mapping[str, str] = {}) -> list[str]:
    """What lint doubts of round 2's instruction, as LINE: PATH; nothing else may be wrong."""
    problems = lint_task({**files, SECOND: instruction})
    assert all(problem.startswith(f"{SECOND}:") for problem in problems)
    return [problem.removeprefix(f"{SECOND}:").partition("`,")[0].replace("mentions `", "") for problem in problems]


def test_a_path_that_nothing_knows_is_named_by_its_first_line(lint_task: LintTask) -> None:
    text = "Please write\nthe manual to `docs/usage.md`, all of it. `docs/usage.md` is for `everybody`.\n"
    assert lint_task({SECOND: text}) == [
        f"{SECOND}:2: mentions `docs/usage.md`, but no file up to round-2 has that name, and nothing in its "
        "solutions, tests and Dockerfile mentions it; correct the path or add the file"
    ]


@pytest.mark.parametrize(
    "path",
    [
        "usage.md",
        "./run.sh",
        "src/ledger.py",
        "/app/usage.md",
        "/app/prices",
        "/app/data/",
        "lib/store.js",
        "a.b/run.py",
    ],
)
def test_what_can_only_be_a_path_is_doubted(lint_task: LintTask, path: str) -> None:
    assert doubted(lint_task, f"See `{path}`.") == [f"1: {path}"]


@pytest.mark.parametrize(
    "span",
    [
        "ledger.total",  # an attribute
        "console.log",
        "Node.js",
        "response.json",
        "1.2",
        "12.50/year",
        "text/plain",
        "and/or",
        "/api/items",
        "/usr/bin/python3",
        "/etc/motd",
        "/tests/data.csv",
        "/",
        "//",
        ".env",
        ".mini",
        "*.csv",
        "data/<name>.csv",
        "{name}.csv",
        "$HOME/run.sh",
        "~/run.sh",
        "../secret.txt",
        "--config=run.toml",
        "-v",
        "python3 run.py",
        "run.py --all",
        "https://example.org/a.html",
        "example.org/guide.html",
        "part-001.csv",
        "2024/june.csv",
        "path/to/file.txt",
        "foo.py",
        "my_program.py",
        "x.csv",
        "stock.csv.bak",
    ],
)
def test_what_may_be_something_else_is_not(lint_task: LintTask, span: str) -> None:
    assert doubted(lint_task, f"See `{span}`.") == []


@pytest.mark.parametrize(
    "text",
    [
        "```\n`usage.md`\n```\n",
        "1. First\n   ~~~ text\n   `usage.md`\n   ~~~\n",
        "``usage.md``",
        "usage.md",
        "Names, for example `usage.md`, are free.",
        "Any file will do (e.g. `usage.md` or\n`guide.md`).",
        "A `not closed, and `usage.md",
    ],
)
def test_only_inline_code_that_is_meant_counts(lint_task: LintTask, text: str) -> None:
    assert doubted(lint_task, text) == []


def test_code_after_a_fenced_block_keeps_its_line(lint_task: LintTask) -> None:
    assert doubted(lint_task, "````\n```\n`a.md`\n````\n\nSee `usage.md` and `more\ntext`, or `guide.md`.\n") == [
        "6: usage.md",
        "7: guide.md",
    ]


@pytest.mark.parametrize(
    "path",
    [
        "environment/docs/usage.md",
        "steps/round-1/workdir/usage.md",
        "steps/round-2/workdir/docs/usage.md",
        "steps/round-1/solution/usage.md",
        "steps/round-2/solution/usage.md",
    ],
)
def test_a_file_of_that_name_makes_a_path_known(lint_task: LintTask, path: str) -> None:
    assert doubted(lint_task, "See `docs/usage.md`.", {path: ""}) == []


@pytest.mark.parametrize(
    "path",
    [
        "environment/Makefile",
        "steps/round-1/solution/solve.sh",
        "steps/round-2/solution/edit.py",
        "steps/round-2/tests/test.sh",
        "steps/round-1/tests/cases.txt",
        "steps/round-2/workdir/setup.sh",
        "tests/cases.py",
    ],
)
@pytest.mark.parametrize("text", ["cat > docs/usage.md", 'open("usage.md")', 'Path("usage").with_suffix(".md")'])
def test_a_text_that_names_it_makes_a_path_known(lint_task: LintTask, path: str, text: str) -> None:
    assert doubted(lint_task, "See `docs/usage.md`.", {path: SCRIPT + text, "tests/a.txt": ""}) == []


@pytest.mark.parametrize("text", ["cat oldusage.md", "usage.mdx", "the usage of it", "*.md"])
def test_a_text_that_names_something_else_does_not(lint_task: LintTask, text: str) -> None:
    assert doubted(lint_task, "See `docs/usage.md`.", {"tests/cases.txt": text}) == ["1: docs/usage.md"]


def test_a_directory_of_the_build_context_is_known(lint_task: LintTask) -> None:
    assert doubted(lint_task, "See `/app/prices`.", {"environment/prices/today.txt": ""}) == []


@pytest.mark.parametrize("path", ["workdir/usage.md", "solution/usage.md", "tests/usage.md"])
def test_what_later_rounds_bring_comes_too_late(lint_task: LintTask, path: str) -> None:
    problems = lint_task({"steps/round-1/instruction.md": "See `usage.md`.", f"steps/round-2/{path}": ""})
    assert [problem.split(",")[0] for problem in problems] == ["steps/round-1/instruction.md:1: mentions `usage.md`"]


def test_a_path_is_doubted_where_it_is_mentioned_first(lint_task: LintTask) -> None:
    problems = lint_task({"steps/round-1/instruction.md": "Write `usage.md`.", SECOND: "Correct `usage.md`."})
    assert [problem.partition(":")[0] for problem in problems] == ["steps/round-1/instruction.md"]


@pytest.mark.parametrize(
    "dockerfile",
    [
        "FROM registry.example/books:1\nWORKDIR /app\n",
        "ARG BASE\nFROM $BASE\n",
        DOCKERFILE + "RUN git clone file.git /app\n",
        DOCKERFILE + "ADD https://example.org/books.tar /app\n",
        DOCKERFILE + "RUN npm init -y\n",
        DOCKERFILE + "COPY --from=tools /out /app\n",
    ],
)
def test_an_image_that_may_bring_anything_makes_all_paths_possible(lint_task: LintTask, dockerfile: str) -> None:
    assert doubted(lint_task, "See `docs/usage.md`.", {"environment/Dockerfile": dockerfile}) == []


def test_an_image_that_only_installs_programs_brings_no_files(lint_task: LintTask) -> None:
    dockerfile = f"# see https://example.org\n{DOCKERFILE}RUN apt-get update && apt-get install -y git curl\n"
    assert doubted(lint_task, "See `usage.md`.", {"environment/Dockerfile": dockerfile}) == ["1: usage.md"]


def test_an_archive_may_hold_any_path(lint_task: LintTask) -> None:
    assert doubted(lint_task, "See `docs/usage.md`.", {"environment/project.tar.gz": ""}) == []


def test_an_image_without_a_dockerfile_may_hold_any_path(lint_task: LintTask) -> None:
    toml = '[environment]\ndocker_image = "books"\n'
    assert lint_task({SECOND: "See `usage.md`."}, toml=toml, without=["environment/Dockerfile"]) == []


def test_an_image_that_was_built_elsewhere_may_hold_any_path(lint_task: LintTask) -> None:
    assert lint_task({SECOND: "See `usage.md`."}, toml='[environment]\ndocker_image = "books"\n') == []


def test_what_lies_beside_the_task_s_own_programs_may_be_the_image_s(lint_task: LintTask) -> None:
    dockerfile = DOCKERFILE + "COPY tool /usr/local/bin/\n"
    assert doubted(lint_task, "See `/usr/local/bin/pip`.", {"environment/Dockerfile": dockerfile}) == []


def test_a_stage_of_the_same_dockerfile_is_no_foreign_image(lint_task: LintTask) -> None:
    dockerfile = "FROM --platform=linux/amd64 python:3.11 AS base\nFROM base\nWORKDIR /app\n"
    assert doubted(lint_task, "See `usage.md`.", {"environment/Dockerfile": dockerfile}) == ["1: usage.md"]


def test_a_round_without_a_solution_may_ask_for_any_path(lint_task: LintTask) -> None:
    solutions = [f"steps/round-{index}/solution/solve.sh" for index in (1, 2)]
    assert lint_task({SECOND: "Write `usage.md`."}, without=solutions) == []


def test_an_absolute_path_is_the_task_s_below_what_the_dockerfile_fills(lint_task: LintTask) -> None:
    dockerfile = "FROM python:3.11\nWORKDIR /app\nCOPY data/ /data/\n"
    text = "`/data/prices.csv`, `/srv/prices.csv`, `/app/prices.csv`."
    assert doubted(lint_task, text, {"environment/Dockerfile": dockerfile}) == [
        "1: /data/prices.csv",
        "1: /app/prices.csv",
    ]

"""Script suites that start Python where it would import modules that the agent left."""

from __future__ import annotations

import pytest

from tests.checks.conftest import LintTask

PATH = "steps/round-1/tests/test.sh"
HEAD = "#!/bin/bash\n"


@pytest.mark.parametrize(
    ("line", "start", "module"),
    [
        ("python -m pytest /tests -q", "python -m pytest", "pytest"),
        ("cd /app && python3 -mpytest.__main__", "python3 -mpytest.__main__", "pytest"),
        (
            "if ! timeout 60 /usr/bin/python3.11 -u -W error -sm pytest; then",
            "python3.11 -u -W error -sm pytest",
            "pytest",
        ),
        ("SCORE=\"$(python3 -c 'import json; print(1)')\"", "python3 -c", "json"),
        ("uv run python - <<'EOF'\nimport json\nEOF", "python -", "json"),
        ("python3 <<EOF\nimport json\nEOF", "python3 <<", "json"),
        ("python3 < /tests/grade.py", "python3 <", "json"),
        ("cat /tests/grade.py | python3 > /tmp/score", "python3", "json"),
        ("su nobody -c 'python3 -m unittest'", "python3 -m unittest", "unittest"),
        ("X=1 \\\n  python3 \\\n  -m pytest", "python3 -m pytest", "pytest"),
        ("cd /tests; cd -; python3 -m pytest", "python3 -m pytest", "pytest"),
        ("echo $(python3 -c 'print(1)')", "python3 -c", "json"),
    ],
)
def test_a_start_from_the_working_directory_is_named(lint_task: LintTask, line: str, start: str, module: str) -> None:
    assert lint_task({PATH: f"{HEAD}true\n{line}\n"}) == [
        f"{PATH}:3: {start} imports from the working directory first, so a {module}.py that the agent left there runs "
        "instead; add -P (Python 3.11 and newer) or -I, run a file below /tests, or set safe_path = true in "
        "[metadata.evocode]"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "python3 /tests/grade.py -m pytest",
        "python3 -u /tests/grade.py -",
        "python3 -I -m pytest",
        "python3 -Pm pytest",
        "python3 -X dev -IB - <<EOF\nimport json\nEOF",
        "PYTHONSAFEPATH=1 python3 -m pytest",
        "python3 -m pytest\nexport PYTHONSAFEPATH=1",
        "(cd /tests && python3 -m pytest)",
        'cd "$(dirname "$0")"\npython3 -c "import json"',
        "pytest /tests; uvx pytest; command -v python3 || apt-get install -y python3 python3-pip",
        "python3 --version | grep 3; test -x /usr/bin/python3 || python3 -V",
        "python3 -m ledger; python3 -m app.tools",
        "python3 -c 'from ledger import total; total()'",
        "# python3 -m pytest",
        "true # python3 -m pytest",
        'echo "run python3 -m pytest"',
        "cat > /tmp/run.sh <<'EOF'\npython3 -m pytest\nEOF",
    ],
)
def test_a_start_from_elsewhere_or_without_that_directory_is_passed_over(lint_task: LintTask, line: str) -> None:
    assert lint_task({PATH: f"{HEAD}{line}\n", "environment/ledger.py": ""}) == []


@pytest.mark.parametrize("toml", ["[metadata.evocode]\nsafe_path = true\n", '[verifier.env]\nPYTHONSAFEPATH = "1"\n'])
def test_nothing_is_said_where_the_task_has_a_safe_path(lint_task: LintTask, toml: str) -> None:
    assert lint_task({PATH: f"{HEAD}python3 -m pytest\n"}, toml=toml) == []


def test_shell_files_beside_the_script_are_looked_at_and_data_is_not(lint_task: LintTask) -> None:
    text = f"{HEAD}python3 -m pytest\n"
    (problem,) = lint_task({"tests/lib.sh": text, "tests/data/run.sh": text, "environment/run.sh": text})
    assert problem.startswith("tests/lib.sh:2: python3 -m pytest imports")

"""Small tasks in the formats of Terminal-Bench 1, Exercism and SWE-bench, written for tests."""

from __future__ import annotations

import json

TERMINAL_BENCH = {
    "task.yaml": """\
# canary GUID 0
instruction: |
  Write done into done.txt.
author_name: Ann
author_email: ann@example.org
difficulty: easy
category: files
tags:
  - text
parser_name: pytest
max_agent_timeout_sec: 360.0
max_test_timeout_sec: 60
""",
    "Dockerfile": "FROM python:3.11-slim-bookworm\nWORKDIR /app\nCOPY data.txt ./\n",
    "docker-compose.yaml": """\
services:
  client:
    build:
      dockerfile: Dockerfile
    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    command: ["sh", "-c", "sleep infinity"]
    environment:
      - TEST_DIR=${T_BENCH_TEST_DIR}
    volumes:
      - ${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}
""",
    "data.txt": "data\n",
    "solution.sh": "#!/bin/bash\necho done > done.txt\n",
    "run-tests.sh": "#!/bin/bash\ngrep -qx done done.txt\n",
    "tests/test_outputs.py": "def test_done():\n    pass\n",
}
EXERCISM = {
    ".meta/config.json": json.dumps(
        {
            "authors": ["ann"],
            "files": {"solution": ["two_fer.py"], "test": ["two_fer_test.py"], "example": [".meta/example.py"]},
            "blurb": "One for you and one for me.",
        }
    ),
    ".meta/example.py": "def two_fer(name='you'):\n    return f'One for {name}, one for me.'\n",
    ".meta/template.j2": "",
    ".docs/instructions.md": "# Instructions\n\nShare.\n",
    ".docs/introduction.md": "# Introduction\n",
    ".docs/instructions.append.md": "# Append\n",
    "two_fer.py": "def two_fer(name):\n    pass\n",
    "two_fer_test.py": "from two_fer import two_fer\n\n\ndef test_none():\n    assert two_fer().endswith('for me.')\n",
}
TEST_PATCH = """\
diff --git a/tests/test_price.py b/tests/test_price.py
--- a/tests/test_price.py
+++ b/tests/test_price.py
@@ -1,1 +1,1 @@
-old
+new
diff --git a/tests/new.py b/tests/new.py
new file mode 100644
--- /dev/null
+++ b/tests/new.py
@@ -0,0 +1 @@
+new
"""
INSTANCE = {
    "repo": "acme/prices",
    "instance_id": "acme__prices-12",
    "base_commit": "0123456789abcdef0123456789abcdef01234567",
    "problem_statement": "Prices are cut off.\n",
    "hints_text": "Look at int().",
    "patch": "diff --git a/price.py b/price.py\n",
    "test_patch": TEST_PATCH,
    "FAIL_TO_PASS": json.dumps(["tests/test_price.py::test_cents"]),
    "PASS_TO_PASS": ["tests/test_price.py::test_signs[-1]"],
    "created_at": "2024-01-01",
}
SWE_BENCH = {"instance.jsonl": json.dumps(INSTANCE) + "\n"}

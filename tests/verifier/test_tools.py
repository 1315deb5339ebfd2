"""Which changes of an agent are to the image's tools, and which of Python's caches a suite does not get to see."""

from __future__ import annotations

import pytest

from pytest_evocode.verifier.changed_tools import changed_tools, is_tool, python_caches


@pytest.mark.parametrize(
    "path",
    [
        "/usr/bin/python3",
        "/usr/local/bin/grep",
        "/bin",
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/opt/conda/bin/python",
        "/etc/ld.so.preload",
        "/etc/ld.so.conf.d/mine.conf",
        "/root/.local/lib/python3.11/site-packages/usercustomize.py",
        "/home/me/venv/lib/python3.11/site-packages/x.pth",
        "/srv/sitecustomize.py",
    ],
)
def test_programs_and_what_they_load_are_tools(path: str) -> None:
    assert is_tool(path)


@pytest.mark.parametrize(
    "path", ["/etc/hosts", "/usrlocal/x", "/tmp/usr/bin/x", "/root/.bashrc", "/var/lib/x", "/library"]
)
def test_other_files_are_not(path: str) -> None:
    assert not is_tool(path)


def test_caches_are_apart_from_tools() -> None:
    changed = [
        "/tmp/__pycache__/x.pyc",
        "/usr/lib/python3.11/__pycache__/os.cpython-311.pyc",
        "/usr/lib/python3.11/__pycache__/re.cpython-311.pyc",
        "/usr/lib/python3.11/json/__pycache__",
        "/usr/lib/python3.11/os.py",
        "/usr/lib/python3.11/sourceless.pyc",
    ]
    assert changed_tools(changed) == ("/usr/lib/python3.11/os.py", "/usr/lib/python3.11/sourceless.pyc")
    assert python_caches(changed) == ("/usr/lib/python3.11/__pycache__", "/usr/lib/python3.11/json/__pycache__")

"""Read the tests that an agent wrote or changed: what they assert, and what of the product they import and call."""

from __future__ import annotations

from pytest_evocode.process.tests_written.code_elements import (
    Symbol,
    TestFunction,
    TestVerification,
    WrittenTests,
)
from pytest_evocode.process.tests_written.written_tests import (
    changed_symbols,
    covers,
    refers_to,
    used_files,
    written_tests,
)

__all__ = [
    "Symbol",
    "TestFunction",
    "TestVerification",
    "WrittenTests",
    "changed_symbols",
    "covers",
    "refers_to",
    "used_files",
    "written_tests",
]

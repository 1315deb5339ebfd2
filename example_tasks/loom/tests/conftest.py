"""What the tests of all rounds share: the fixture `loom`."""

import pytest
from tool import Loom


@pytest.fixture
def loom(workspace):
    """The program, in a directory of the test's own."""
    return Loom(workspace)

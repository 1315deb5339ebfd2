"""What the tests of all rounds share: the fixture `bench`."""

import pytest
from bench import Bench


@pytest.fixture
def bench(workspace):
    """A directory of the test's own with an empty store."""
    return Bench(workspace)

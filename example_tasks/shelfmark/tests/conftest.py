"""What the tests of all rounds share: databases in the server, and the register's programs on them."""

import pytest
from library import Library


@pytest.fixture(scope="session")
def _shared():
    return {}


@pytest.fixture
def library(workspace, workspace_session, _shared):
    """Databases for one case; connections end with it."""
    found = Library(workspace, workspace_session, _shared)
    yield found
    found.close()

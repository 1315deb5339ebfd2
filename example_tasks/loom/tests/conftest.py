"""What the tests of all rounds share: the fixture `loom`."""

import pytest
from tool import Loom, Together


@pytest.fixture(scope="module")
def together(request, workspace_module):
    """What the cases of a module ask for together."""
    return Together(workspace_module, [item for item in request.session.items if item.module is request.module])


@pytest.fixture
def loom(workspace, request, together):
    """The program, in a directory of the test's own."""
    return Loom(workspace, together, request.node)

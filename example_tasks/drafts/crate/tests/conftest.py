"""What the tests of all rounds share: the fixtures `crate` and `reader`."""

import pytest
from bench import Bench


@pytest.fixture(scope="session")
def binary(workspace_session):
    """Build the program of the warehouse once. Where that fails there is none, and each test says so itself."""
    workspace_session.run("rm -f crate; make -B", timeout=120)
    return f"{workspace_session.workdir}/crate"


@pytest.fixture
def crate(workspace, binary):
    """Both programs. The reader of the shops stands alone, in a directory where there is nothing else."""
    script = f"{workspace.path}/shop/crate.py"
    if workspace.exists("crate.py"):
        workspace.write(script, workspace.read("crate.py"))
    return Bench(workspace, binary, script)


@pytest.fixture(params=["c", "python"])
def reader(crate, request):
    """Each of the two programs in turn."""
    return getattr(crate, request.param)

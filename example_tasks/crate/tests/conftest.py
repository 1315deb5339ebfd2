"""What the tests of all rounds share: the fixtures `built`, `crate` and `reader`."""

import pytest
from bench import Bench, Driver


@pytest.fixture(scope="session")
def built(workspace_session):
    """Build the program of the warehouse once. Where that fails there is none, and each test says so itself."""
    return workspace_session.run("rm -f crate; make -B", timeout=120)


@pytest.fixture(scope="session")
def script(workspace_session):
    """The reader of the shops stands alone, in a directory where there is nothing else."""
    script = f"{workspace_session.path}/shop/crate.py"
    if workspace_session.exists("crate.py"):
        workspace_session.write(script, workspace_session.read("crate.py"))
    return script


@pytest.fixture(scope="session")
def driver(workspace_session, script):
    """What runs both."""
    return Driver(workspace_session, script)


@pytest.fixture
def crate(workspace, built, driver, script):
    """Both programs."""
    return Bench(workspace, driver, f"{workspace.workdir}/crate", script)


@pytest.fixture(params=["c", "python"])
def reader(crate, request):
    """Each of the two programs in turn."""
    return getattr(crate, request.param)

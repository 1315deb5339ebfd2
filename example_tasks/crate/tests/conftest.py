"""What the tests of all rounds share: the fixtures `built`, `crate` and `reader`."""

import pytest
from bench import Bench, Driver


@pytest.fixture(scope="session")
def built(workspace_session):
    """Build the program of the warehouse once. Where that fails there is none, and each test says so itself."""
    return workspace_session.run("rm -f crate; make -B", timeout=120)


@pytest.fixture(scope="session")
def driver(workspace_session):
    """What runs both."""
    return Driver(workspace_session)


@pytest.fixture
def crate(workspace_session, built, driver):
    """Both programs."""
    return Bench(driver, f"{workspace_session.workdir}/crate")


@pytest.fixture(params=["c", "python"])
def reader(crate, request):
    """Each of the two programs in turn."""
    return getattr(crate, request.param)

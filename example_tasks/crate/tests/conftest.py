"""What the tests of all rounds share: the fixtures `crate` and `reader`."""

import pytest
from bench import Bench


@pytest.fixture(scope="session")
def binary(workspace_session):
    """The program of the warehouse, built once."""
    built = workspace_session.run("make -B", timeout=120)
    assert built.exit_code == 0, built.stderr
    return f"{workspace_session.workdir}/crate"


@pytest.fixture
def crate(workspace, binary):
    """Both programs. The reader of the shops stands alone, in a directory where there is nothing else."""
    script = f"{workspace.path}/shop/crate.py"
    workspace.write(script, workspace.read("crate.py"))
    return Bench(workspace, binary, script)


@pytest.fixture(params=["c", "python"])
def reader(crate, request):
    """Each of the two programs in turn."""
    return getattr(crate, request.param)

"""What the tests of all rounds share: the fixture `invoices`."""

import pytest

DISCOUNTS = """\
customer,pieces,percent
Harbour Ltd,10,5
Harbour Ltd,100,12
Lighthouse & Sons,50,8
"""


@pytest.fixture
def workspace(workspace):
    """Programs find the project from wherever a test starts them, and have 20 seconds."""
    return workspace.with_defaults(env={"PYTHONPATH": "/app"}, timeout=20)


@pytest.fixture
def invoices(workspace):
    """Call the program beside invoices: `invoices("total", rope)` is (status, lines printed, standard error)."""

    def run(command, *texts):
        papers = {f"{number}.txt": text for number, text in enumerate(texts, start=1)}
        files = {"discounts.csv": DISCOUNTS, **papers}
        done = workspace.run(["python3", "-m", "invoices", command, *papers], files=files)
        return done.exit_code, done.stdout.splitlines(), done.stderr

    return run

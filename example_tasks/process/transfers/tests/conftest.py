"""What the tests of all rounds share: the fixture `wallet`."""

import json

import pytest

OPENING = [{"op": "open", "account": "ada", "cents": 500}, {"op": "open", "account": "bob", "cents": 0}]


@pytest.fixture
def wallet(workspace):
    """Send requests to a new wallet in which ada has 500 and bob nothing: `wallet(request, ...)` are its answers.

    A request is a dict, or the text of a line.
    """

    def run(*requests):
        lines = [each if isinstance(each, str) else json.dumps(each) for each in (*OPENING, *requests)]
        done = workspace.run("python3 -m wallet", input="".join(f"{line}\n" for line in lines), timeout=20)
        assert (done.exit_code, done.stderr) == (0, "")
        return done.stdout.splitlines()[len(OPENING) :]

    return run

"""What the tests of all rounds share: the fixture `stations`."""

import pytest


@pytest.fixture
def stations(workspace):
    """Call the program with a file of these lines: `stations("summary", line, ...)` are the lines printed."""

    def run(command, *lines):
        files = {"readings.txt": "".join(f"{line}\n" for line in lines)}
        # A warning of its own is a fault from round 3 on, and there is none before.
        program = f"python3 -W error::DeprecationWarning -m stations {command} readings.txt"
        done = workspace.run(program, files=files, env={"PYTHONPATH": "/app"}, timeout=20)
        assert (done.exit_code, done.stderr) == (0, "")
        return done.stdout.splitlines()

    return run

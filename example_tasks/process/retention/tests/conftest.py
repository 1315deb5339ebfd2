"""What the tests of all rounds share: the fixture `prune`."""

import pytest


@pytest.fixture
def prune(workspace):
    """Call the program: `prune("--daily 1", names)` is (status, names printed, standard error).

    `retired` is what the list of retired machines, `retired.csv`, says; without it there is no list.
    """

    def run(options, names, retired=None):
        text = "".join(f"{name}\n" for name in names)
        files = {} if retired is None else {"retired.csv": retired}
        command = f"python3 /app/prune.py {options}"
        done = workspace.run(command, input=text, files=files, cwd=workspace.path, timeout=20)
        return done.exit_code, done.stdout.splitlines(), done.stderr

    return run

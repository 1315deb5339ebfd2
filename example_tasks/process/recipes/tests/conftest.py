"""What the tests of all rounds share: the fixture `recipes`."""

import pytest


@pytest.fixture
def workspace(workspace):
    """Programs find the project from wherever a test starts them, and have 20 seconds."""
    return workspace.with_defaults(env={"PYTHONPATH": "/app"}, timeout=20)


@pytest.fixture
def recipes(workspace):
    """Call the program beside recipe files: `recipes("show cake.txt", cake=CAKE)` is (status, stdout, stderr)."""

    def run(command, **recipes):
        files = {f"{name}.txt": text for name, text in recipes.items()}
        done = workspace.run(f"python3 -m recipes {command}", files=files)
        return done.exit_code, done.stdout, done.stderr

    return run

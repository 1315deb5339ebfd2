"""The package `stations.reports`, and the imports that go on working.

That the program itself gives no warning is seen to by the fixture `stations`.
"""

import pytest

MOVED = {"summary": "summarize mean", "alerts": "find_alerts FROST STORM", "export": "csv_lines"}
SAME = """\
import stations.{module} as old, stations.reports.{module} as new
for name in {names!r}.split():
    print(getattr(old, name) is getattr(new, name))
"""


@pytest.fixture
def python(workspace):
    """Run a script that imports the package, as other people's do, and have all warnings shown."""
    return lambda script: workspace.run(["python3", "-W", "always", "-c", script])


@pytest.mark.requirement("reports", kind="core")
@pytest.mark.parametrize("module", MOVED)
def test_old_import_warns_and_is_the_same(python, module):
    """The old module warns whoever imports it, and has what the new one has."""
    done = python(SAME.format(module=module, names=MOVED[module]))
    assert (done.exit_code, set(done.stdout.splitlines())) == (0, {"True"})
    assert "DeprecationWarning" in done.stderr
    assert f"stations.reports.{module}" in done.stderr


@pytest.mark.requirement("reports", kind="boundary")
def test_new_import_does_not_warn(python):
    """Who uses the new place is not bothered, as everybody is who uses the old one."""
    done = python("; ".join(f"import stations.reports.{module}" for module in MOVED))
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    assert "DeprecationWarning" in python("; ".join(f"import stations.{module}" for module in MOVED)).stderr

"""Temperatures in whole tenths of a degree."""

import pytest

TENTHS = """\
from stations.readings import parse

reading = parse(args[0])
[reading.tenths, type(reading.tenths).__name__, hasattr(reading, "temperature")]
"""


def oslo(*temperatures):
    """Readings with these temperatures."""
    return [f"oslo 2024-03-01T06:00 {temperature} 4" for temperature in temperatures]


@pytest.mark.requirement("tenths", kind="core")
def test_tenths(workspace):
    """A reading has whole tenths and no degrees, and two digits behind the point are refused."""
    readings = [workspace.python(TENTHS, line) for line in oslo("-3.5", "4", "-0.1")]
    assert readings == [[-35, "int", False], [40, "int", False], [-1, "int", False]]
    with pytest.raises(workspace.RemoteError) as refused:
        workspace.call("stations.readings:parse", *oslo("0.15"))
    assert refused.value.type == "ValueError"


@pytest.mark.requirement("mean", kind="core")
def test_exact_mean(stations):
    """Halves go away from zero, on both sides of it."""
    assert stations("summary", *oslo("0.1", "0.2")) == ["oslo 0.1 0.2 0.2"]
    assert stations("summary", *oslo("-0.1", "-0.2")) == ["oslo -0.2 -0.2 -0.1"]


@pytest.mark.requirement("mean", kind="boundary")
def test_zero_has_no_sign(stations):
    """What is rounded to zero from below is zero."""
    assert stations("summary", *oslo("0.0", "-0.1", "0.0")) == ["oslo -0.1 0.0 0.0"]


@pytest.mark.requirement("tenths", kind="boundary")
def test_reports_are_as_before(stations):
    """Frost begins right below zero, and the CSV has degrees."""
    lines = oslo("-0.1", "0.0", "4")
    assert stations("alerts", *lines) == ["oslo 2024-03-01T06:00 frost"]
    assert [line.split(",")[2] for line in stations("export", *lines)] == ["temperature", "-0.1", "0.0", "4.0"]

"""What people should be told."""

FROST = 0
STORM = 20


def find_alerts(readings):
    """A line for each alert, in the order of the readings."""
    alerts = []
    for reading in readings:
        if reading[2] < FROST:
            alerts.append(f"{reading[0]} {reading[1]} frost")
        if reading[3] >= STORM:
            alerts.append(f"{reading[0]} {reading[1]} storm")
    return alerts

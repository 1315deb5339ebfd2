"""What people should be told."""

FROST = 0
STORM = 20


def find_alerts(readings):
    """A line for each alert, in the order of the readings."""
    alerts = []
    for reading in readings:
        if reading.temperature < FROST:
            alerts.append(f"{reading.station} {reading.time} frost")
        if reading.wind is not None and reading.wind >= STORM:
            alerts.append(f"{reading.station} {reading.time} storm")
    return alerts

"""Lowest, mean and highest temperatures."""


def summarize(readings):
    """A line for each station, by name."""
    stations = {}
    for reading in readings:
        stations.setdefault(reading.station, []).append(reading.temperature)
    return [f"{name} {min(found):.1f} {mean(found):.1f} {max(found):.1f}" for name, found in sorted(stations.items())]


def mean(temperatures):
    """The mean of some temperatures."""
    return sum(temperatures) / len(temperatures)

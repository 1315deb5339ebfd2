"""Lowest, mean and highest temperatures."""

from stations.readings import show_tenths


def summarize(readings):
    """A line for each station, by name."""
    stations = {}
    for reading in readings:
        stations.setdefault(reading.station, []).append(reading.tenths)
    return [" ".join([name, *map(show_tenths, extent(found))]) for name, found in sorted(stations.items())]


def extent(tenths):
    """Lowest, mean and highest of some temperatures."""
    return min(tenths), mean(tenths), max(tenths)


def mean(tenths):
    """The mean of some temperatures in whole tenths, halves away from zero."""
    total, count = sum(tenths), len(tenths)
    rounded = (2 * abs(total) + count) // (2 * count)
    return -rounded if total < 0 else rounded

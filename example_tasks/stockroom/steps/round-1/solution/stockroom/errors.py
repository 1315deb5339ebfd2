"""What can go wrong, and the exit status it ends with."""


class StockError(Exception):
    exit_status = 1


class DataError(StockError):
    """A file holds something that cannot be read."""

    exit_status = 3

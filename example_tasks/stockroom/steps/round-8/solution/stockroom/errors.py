"""What can go wrong, and the exit status it ends with."""


class StockError(Exception):
    exit_status = 1


class DataError(StockError):
    """A file holds something that cannot be read."""

    exit_status = 3


class ImportRefusedError(StockError):
    """A supplier file that must not be read."""

    exit_status = 4


class WriteError(StockError):
    """A file cannot be written."""

    exit_status = 6


class RetiredError(StockError):
    """The directory is kept in a way that is no longer supported."""

    exit_status = 5

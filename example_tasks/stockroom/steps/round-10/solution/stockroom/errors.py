"""What can go wrong, and the exit status it ends with."""


class StockError(Exception):
    exit_status = 1
    done = ()
    """Lines about what was done all the same."""
    details = ()
    """Lines that come before the message."""


class DataError(StockError):
    """A file holds something that cannot be read."""

    exit_status = 3


class ImportRefusedError(StockError):
    """A supplier file that must not be read."""

    exit_status = 4


class WriteError(StockError):
    """A file cannot be written."""

    exit_status = 6


class RejectedError(StockError):
    """A supplier file was booked but for some of its rows."""

    exit_status = 7

    def __init__(self, message, done, details):
        super().__init__(message)
        self.done = done
        self.details = details


class BusyError(StockError):
    """Somebody else is booking, and has not finished in time."""

    exit_status = 8


class RetiredError(StockError):
    """The directory is kept in a way that is no longer supported."""

    exit_status = 5

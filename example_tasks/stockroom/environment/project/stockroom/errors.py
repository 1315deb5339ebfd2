"""What can go wrong."""


class StockError(Exception):
    pass

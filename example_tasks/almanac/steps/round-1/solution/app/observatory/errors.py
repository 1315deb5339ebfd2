"""What the user is told when something cannot be done."""


class Refused(Exception):
    """What was asked for cannot be done, for this reason."""


class WrongCall(Exception):
    """The program was not called as it has to be."""

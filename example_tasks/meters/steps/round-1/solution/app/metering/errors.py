"""What a command ends with that cannot do its work."""


class Refused(Exception):
    """The message for the user."""

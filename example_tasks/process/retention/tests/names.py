"""Names of backups."""


def backups(machine, *moments):
    """The names of a machine's backups, made at two o'clock where a moment is a day of 2024 such as "03-01"."""
    return [f"{machine}-{f'2024-{moment}T0200' if len(moment) == 5 else moment}.tar.gz" for moment in moments]

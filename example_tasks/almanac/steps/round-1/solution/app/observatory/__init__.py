"""The records of the observatory."""

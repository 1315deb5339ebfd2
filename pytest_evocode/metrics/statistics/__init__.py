"""Statistics: numbers in and numbers out, of the standard library alone; what a round or a task is, nothing here knows.

:mod:`~pytest_evocode.metrics.intervals` and :mod:`~pytest_evocode.metrics.comparison` apply them to rounds.
"""

"""The metrics of the benchmark: pure functions from records to numbers.

:mod:`~pytest_evocode.metrics.grid` says which rounds count, :mod:`~pytest_evocode.metrics.task_values` what each task
is worth, and :mod:`~pytest_evocode.metrics.scores` makes an agent's scores of that. Of results directories
:mod:`~pytest_evocode.metrics.score_table` makes rows, after :mod:`~pytest_evocode.metrics.grouping`, and asks for each
the scores, the intervals and what faults did. The other modules answer one question each.
"""

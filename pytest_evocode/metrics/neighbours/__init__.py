"""Metrics of other benchmarks, from our records: each with its source and its mapping.

What they need of a round is in :mod:`pytest_evocode.metrics.neighbours.round_cases`. Every mean is taken as everywhere
here: over the rounds of an attempt, then over the attempts at a task, then over tasks.
"""

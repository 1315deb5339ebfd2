"""Run the suites of one attempt, each in a fork of the state that its round left, while later turns go on.

:mod:`~pytest_evocode.trial.suites.runner` puts it together: a place for a fork and then a slot by
rank, the fork made ready, the suite, and what is left of the fork.
"""

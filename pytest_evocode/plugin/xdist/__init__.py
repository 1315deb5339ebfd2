"""Sessions with several processes (pytest-xdist): the controller's side, the scheduler, and the workers' side."""

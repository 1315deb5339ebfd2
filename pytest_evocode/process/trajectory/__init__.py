"""Read from recorded trajectories what happened: files read and changed, commands run, plans, failures."""

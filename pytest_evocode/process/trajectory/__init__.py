"""Extract from a recorded trajectory what happened: files read and changed, commands run, plans, failures."""

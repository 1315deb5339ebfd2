"""The records of runs, attempts and rounds, and the results directory that they are kept in."""

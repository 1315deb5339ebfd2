"""Read shell command lines: the programs they run, the files they touch, and what they are for."""

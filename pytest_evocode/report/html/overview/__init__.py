"""What all attempts of a report say together: the index (rows of scores, tasks, attempts, runs) and comparisons."""

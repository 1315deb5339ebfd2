"""Turn sub-metrics into pillars, and pillars into the RigorScore of rounds, attempts, tasks and agents."""

"""The metrics of the benchmark: pure functions from records to numbers."""

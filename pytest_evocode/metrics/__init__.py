"""Metrics: pure functions from records to numbers."""

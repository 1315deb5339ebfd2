"""Compute each pillar's sub-metrics, with their evidence, from the activity of a round."""

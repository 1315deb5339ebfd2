"""The seven pillars, one module each: from the activity of a round to sub-metrics with their evidence."""

"""Run one attempt of one agent through one task, from the first round to the last."""

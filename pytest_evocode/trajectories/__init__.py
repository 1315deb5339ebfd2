"""Trajectories: recording what agents do, step by step, finding what was recorded, and applying it again."""

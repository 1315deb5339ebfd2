"""Trajectories step by step, and what a step or a round changed in files."""

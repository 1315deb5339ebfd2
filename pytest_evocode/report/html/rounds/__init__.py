"""Attempts round by round, and tasks with their cases through all rounds: what the pages of rounds and tasks show."""

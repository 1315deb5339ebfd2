"""Patterns, decks and the machine that runs them."""

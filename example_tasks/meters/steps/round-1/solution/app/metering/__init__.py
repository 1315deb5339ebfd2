"""Readings of meters, in an SQLite database."""

"""Lends keys and rooms."""

"""Scales recipes and writes shopping lists."""

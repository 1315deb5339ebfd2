"""Environments in Docker containers."""

"""Agents that run as programs in the container: coding CLIs, and commands that a project declares."""

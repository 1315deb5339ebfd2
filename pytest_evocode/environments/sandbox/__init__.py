"""Environments without Docker: bubblewrap namespaces over the host's own system."""

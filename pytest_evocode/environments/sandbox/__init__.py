"""The embedded sandbox: bubblewrap over layers of the host's own system."""

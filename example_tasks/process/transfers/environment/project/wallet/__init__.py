"""Books transfers between accounts."""

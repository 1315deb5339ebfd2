"""What weather stations report."""

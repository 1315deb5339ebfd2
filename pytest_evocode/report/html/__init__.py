"""The HTML report: a folder of static files that a browser opens from disk."""

"""Reports for people: pure functions from records to text."""

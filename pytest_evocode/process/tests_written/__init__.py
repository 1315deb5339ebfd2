"""Read the tests that an agent wrote or changed: what they assert, and what of the product they import and call."""

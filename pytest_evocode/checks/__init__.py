"""Author checks: they find what is wrong with a task before a model is evaluated with it."""

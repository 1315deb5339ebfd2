"""Code that runs inside an environment, under the Python of the task's image; see DESIGN.md beside it."""

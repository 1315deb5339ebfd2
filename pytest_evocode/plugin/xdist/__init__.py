"""The plugin beside xdist: the controller, its scheduler, and what is different in a worker."""

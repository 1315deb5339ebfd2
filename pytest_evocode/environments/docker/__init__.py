"""Docker containers through the engine's API."""

"""MCP servers, whose tools an agent has beside its own: how they are declared, and how the shell agent uses them."""

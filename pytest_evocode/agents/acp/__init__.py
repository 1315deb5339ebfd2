"""The agent ``acp:COMMAND``: any program in the container that speaks the Agent Client Protocol over stdio."""

"""Language models: one protocol for clients, a client for each API of the providers, prices and budgets."""

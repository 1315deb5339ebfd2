"""Models by their providers: one protocol, a client for each way to speak to them."""

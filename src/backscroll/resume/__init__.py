"""Going on with a session: in its own tool, at its files, or put back where the tool has lost it."""

"""Resume a session in its tool, and open its files."""

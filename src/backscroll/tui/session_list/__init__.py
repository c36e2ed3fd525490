"""Session list."""

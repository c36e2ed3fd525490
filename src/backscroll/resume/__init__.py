"""Resume a session in its tool, open its files, restore files that the tool deleted."""

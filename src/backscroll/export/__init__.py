"""Export of sessions to files."""

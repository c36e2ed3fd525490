"""The terminal UI: sessions on the left, what was said on the right, everything found while typing."""

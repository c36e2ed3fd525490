"""Work that joins what sources tell."""

"""Sessions as files: which name, which format, nothing overwritten."""

"""Figures of a history: what the archive counts, priced."""

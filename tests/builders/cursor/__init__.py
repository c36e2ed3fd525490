"""Histories of the Cursor IDE for tests and benchmarks: every generation, special sessions, damage."""

"""Histories of the Cursor CLI for tests and benchmarks: every state of a store, damage."""

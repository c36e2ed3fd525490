"""Histories of Claude Code for tests and benchmarks: every version, damage, large histories."""

"""Builders that write each tool's native files: for tests, for the demo and for the benchmarks."""

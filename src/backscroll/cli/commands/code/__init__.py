"""Commands that link sessions and code."""

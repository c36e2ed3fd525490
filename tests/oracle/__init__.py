"""A second, simple implementation of what the archive does in SQL. Tests compare both."""

"""Commands that update, check or erase the archive."""

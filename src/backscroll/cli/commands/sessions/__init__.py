"""Commands that find, show, annotate, continue or share sessions."""

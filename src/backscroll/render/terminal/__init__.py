"""Output for terminals, and plain lines for pipes.

session_table  sessions as columns that fit the terminal, or as tab-separated values
transcript     a session with its messages, and original records of messages
text           ANSI styles; measure, truncate and wrap in cells
"""

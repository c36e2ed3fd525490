"""Sessions as people read them in a terminal, and as plain lines where there is none."""

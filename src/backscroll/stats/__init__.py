"""Statistics of sessions: counts from the archive, with prices."""

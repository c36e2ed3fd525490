"""The session list: which sessions are shown, their entries, the widget, and search."""

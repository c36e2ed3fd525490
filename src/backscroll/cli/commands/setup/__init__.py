"""Commands that set up Backscroll, try it or explain it."""

"""Figures as lines of text, Markdown, JSON and CSV."""

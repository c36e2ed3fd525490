"""Readers of file formats, independent of any tool."""

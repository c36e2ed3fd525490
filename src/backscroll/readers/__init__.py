"""Bytes to records, knowing no tool."""

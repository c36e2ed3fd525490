"""Transcript."""

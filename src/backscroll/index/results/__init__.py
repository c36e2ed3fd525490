"""Presentation of a hit.

highlights  positions of the query words in a text
snippet     the line to show, with its context
"""

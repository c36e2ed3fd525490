"""Code and the sessions that wrote it, as terminal text and as JSON.

blame     the lines of a file
survival  lines that sessions wrote, committed and kept
journal   entries of the journal
"""

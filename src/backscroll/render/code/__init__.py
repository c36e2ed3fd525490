"""Lines of code and the sessions that wrote them, as terminal text and as JSON.

blame     the lines of a file
survival  lines that sessions wrote, committed and kept
"""

"""Subagents of a transcript.

agents.py          calls that start subagents, and totals in their results
sidecar.py         JSON file next to the transcript of a subagent
progress_lines.py  messages of a subagent whose file is missing
"""

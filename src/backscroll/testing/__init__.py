"""Builders that write each tool's native files, for the demo and the tests.

Builders that only tests and benchmarks need are in `tests/builders`.

claude_code  transcripts and side files of Claude Code
cursor       databases of the Cursor IDE
cursor_cli   stores and transcripts of the Cursor CLI
demo         the sample history of `backscroll demo`
database     SQLite files in WAL and rollback mode
protobuf     minimal protobuf encoder
"""

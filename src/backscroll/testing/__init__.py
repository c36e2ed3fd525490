"""Builders that write each tool's native files, for tests, the demo and the benchmarks.

claude_code       transcripts and side files of Claude Code
cursor            databases of the Cursor IDE
cursor_cli        stores and transcripts of the Cursor CLI
demo              the sample history of `backscroll demo`
from_description  tool folders built from JSON descriptions
coding_session    sessions that change and commit the files of a real checkout
git_repository    repositories with commits at given times
hooks             events of hooks
database          SQLite files in WAL and rollback mode
protobuf          minimal protobuf encoder
lorem             random text
"""

"""Builders for the files of the Cursor CLI.

    home = cursor_cli.Home(tmp_path)
    chat = home.chat([cursor.user("rename foo"), cursor.assistant("Done.")], cwd="/home/dev/shop")

The functions of `backscroll.testing.cursor` create the messages.

home         the folder with one store per chat
transcripts  agent transcripts
"""

from backscroll.testing.cursor_cli.home import SCHEMA, START, Chat, Home, folder_hash, write_store
from backscroll.testing.cursor_cli.transcripts import (
    format_prompt_time,
    project_slug,
    transcript_records,
    transcript_text,
    write_transcript,
)

__all__ = [
    "SCHEMA",
    "START",
    "Chat",
    "Home",
    "folder_hash",
    "format_prompt_time",
    "project_slug",
    "transcript_records",
    "transcript_text",
    "write_store",
    "write_transcript",
]

"""Builders for the files of the Cursor CLI.

    home = cursor_cli.Home(tmp_path)
    chat = home.chat([cursor.user("rename foo"), cursor.assistant("Done.")], cwd="/home/dev/shop")

The functions of `backscroll.testing.cursor` create the messages.

home         the folder with one store per chat
stores       one example chat per known state of a store
transcripts  agent transcripts
history      a large history for benchmarks
damage       every known kind of damage to a store
"""

from backscroll.testing.cursor_cli import damage
from backscroll.testing.cursor_cli.history import write_history
from backscroll.testing.cursor_cli.home import SCHEMA, START, Chat, Home, folder_hash, write_store
from backscroll.testing.cursor_cli.stores import STORES, example_messages, write_all_stores
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
    "STORES",
    "Chat",
    "Home",
    "damage",
    "example_messages",
    "folder_hash",
    "format_prompt_time",
    "project_slug",
    "transcript_records",
    "transcript_text",
    "write_all_stores",
    "write_history",
    "write_store",
    "write_transcript",
]

"""The files of Cursor's command line, written for tests: stores, their metadata, transcripts.

    home = cursor_cli.Home(tmp_path)
    chat = home.chat([cursor.user("rename foo"), cursor.assistant("Done.")], cwd="/home/dev/shop")

Messages are made with the functions of `backscroll.testing.cursor`.
"""

from backscroll.testing.cursor_cli import damage
from backscroll.testing.cursor_cli.history import write_history
from backscroll.testing.cursor_cli.home import SCHEMA, START, Chat, Home, folder_hash, write_store
from backscroll.testing.cursor_cli.stores import STORES, talk, write_every_store
from backscroll.testing.cursor_cli.transcripts import lines, slug, spoken_time, text, write_transcript

__all__ = [
    "SCHEMA",
    "START",
    "STORES",
    "Chat",
    "Home",
    "damage",
    "folder_hash",
    "lines",
    "slug",
    "spoken_time",
    "talk",
    "text",
    "write_every_store",
    "write_history",
    "write_store",
    "write_transcript",
]

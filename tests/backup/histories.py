"""Histories of all sources in a temporary home, and their backups."""

import sqlite3
from contextlib import closing
from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import Transcript

STORE = Path("cursor/User/globalStorage/state.vscdb")
SOURCES = ("claude-code", "cursor", "cursor-cli")


def write_sources(folder: Path) -> None:
    """Write a small history of each source, with side files."""
    transcript = Transcript(seed=1).user("find the ferry timetable").assistant("It is in parser.py.")
    path = transcript.write(folder / "claude-code")
    side = path.with_suffix("") / "tool-results"
    side.mkdir(parents=True)
    (side / "output.txt").write_text("a long tool result\n")
    (folder / "claude-code" / "history.jsonl").write_text('{"display": "find", "timestamp": 1}\n')
    (folder / "claude-code" / ".credentials.json").write_text('{"token": "t0p-secret-login"}')
    ide = cursor.Home(folder / "cursor")
    ide.composer(
        [cursor.user("mend the basket"), cursor.assistant("Done.")], workspace=cursor.SHOP, name="Basket"
    )
    ide.write()
    with closing(sqlite3.connect(folder / STORE)) as db:
        db.execute("insert into ItemTable values ('cursorAuth/accessToken', ?)", [cursor.SECRET])
        db.execute("insert into ItemTable values ('mcpOAuth.tracker', ?)", [cursor.SECRET])
        db.commit()
    cli = cursor_cli.Home(folder / "cursor-cli")
    cli.chat([cursor.user("rename the harbor"), cursor.assistant("Renamed.")], cwd="/home/dev")


def make_history(folder: Path, *sources: str) -> History:
    """Return the library on the histories below a folder, synced."""
    history = History(
        roots=[NamedRoot(name, folder / name) for name in sources or SOURCES], home=folder / "home"
    )
    history.sync()
    return history


def file_contents(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder, by relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def database_rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return every row of every table of a database, with its rowid."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        db.text_factory = bytes
        tables = db.execute("select name from sqlite_master where type = 'table' order by name").fetchall()
        return {name.decode(): _rows(db, name.decode()) for (name,) in tables}


def _rows(db: sqlite3.Connection, table: str) -> list[tuple[object, ...]]:
    try:
        return db.execute(f'select rowid, * from "{table}" order by rowid').fetchall()  # noqa: S608
    except sqlite3.OperationalError:  # a table without rowid
        return sorted(db.execute(f'select * from "{table}"').fetchall(), key=repr)  # noqa: S608

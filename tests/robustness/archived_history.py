"""A history of all three sources with copies and subagents, and the content of an archive of it."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from backscroll.config import Machine, NamedRoot
from backscroll.history.history import History
from backscroll.model.session import Filter, SessionSummary
from backscroll.testing.claude_code import Transcript, forks, tool_calls
from tests.builders.claude_code.bulk.history import write_history as write_claude_history
from tests.builders.cursor.history import write_history as write_cursor_history
from tests.builders.cursor_cli.history import write_history as write_cursor_cli_history

_WORDS = ("ticket-000003", "the", "ferry", "error", "def")
_ARCHIVE_SPECIFIC = ("number", "size", "path")  # differ between archives of equal content


def write(folder: Path) -> Path:
    """Write some sixty units of two megabytes: enough for several processes with small batches."""
    claude = folder / "claude-code"
    write_claude_history(claude, sessions=24, seed=3, bytes_target=1_000_000)
    for seed in range(100, 104):
        first = Transcript(seed=seed, cwd="/home/zoe/ferry")
        first.user(f"the ferry of {seed}").run(tool_calls.bash("ls", "a\nb")).assistant("two files")
        first.delegate("look at the quay", "it is wet", calls=[tool_calls.bash("tide", "low")])
        first.write(claude)
        forks.resume(first, seed=seed + 100).user("and on").assistant("it went").write(claude)
        forks.fork(first, seed=seed + 200).user("or else").assistant("it did not").write(claude)
    broken = Transcript(seed=99).user("cut").assistant("off").write(claude)
    broken.write_bytes(broken.read_bytes()[:-20])
    write_cursor_history(folder / "cursor", sessions=4, bubbles=60, megabytes=1)
    write_cursor_cli_history(folder / "cursor-cli", sessions=3, messages=15)
    return folder


def options(folder: Path) -> list[str]:
    """Return the roots of the history as command options."""
    return [part for root in _roots(folder) for part in ("--root", f"{root.source}={root.path}")]


def history_of(folder: Path, home: Path) -> History:
    return History(roots=_roots(folder), home=home, machine=Machine(home))


def _roots(folder: Path) -> list[NamedRoot]:
    return [NamedRoot(name, folder / name) for name in ("claude-code", "cursor", "cursor-cli")]


def archive_content(folder: Path, home: Path, scratch: Path) -> dict[str, Any]:
    """Return the content of an archive without internal ids, its path and read times."""
    with history_of(folder, home) as history:
        archive = history._stores.archive
        status = history.archive_admin.status()
        numbers = {name: getattr(status, name) for name in status.__struct_fields__}
        found = {
            "status": {
                name: value
                for name, value in numbers.items()
                if name not in (*_ARCHIVE_SPECIFIC, "kept_size")
            },
            "originals": {
                one.path: _digest(archive, one, scratch) for one in archive.originals.units_with_file()
            },
            "found": {word: _hits(history, word) for word in _WORDS},
            "sessions": {f"{one.parent_ref} {one.ref}": _session(archive, one) for one in _all(archive)},
            "verified": history.archive_admin.verify(),
            "unindexed": archive.index_queue.next_jobs(1),
        }
    return found | _rows(home / "archive.db")


def _all(archive: Any) -> list[SessionSummary]:
    everything = Filter(with_unlisted=True, with_subagents=True)
    found: list[SessionSummary] = archive.sessions.page(everything, limit=1000, offset=0)
    return found


def _session(archive: Any, summary: SessionSummary) -> Any:
    """Return a session without its index: sessions with equal times may swap places."""
    return replace(summary, index=None), list(archive.messages.of_session(summary))


def _digest(archive: Any, original: Any, scratch: Path) -> str:
    target = scratch / "original"
    target.unlink(missing_ok=True)
    archive.originals.write_file(original, target)
    return hashlib.sha256(target.read_bytes()).hexdigest()


def _hits(history: History, word: str) -> list[Any]:
    found = history.search_sessions(word, by="message", limit=1000)
    return sorted((one.session_id, one.message_index, one.match) for one in found.data)


def _rows(path: Path) -> dict[str, Any]:
    """Return every session, subagent, window, problem and unit, read with plain SQL."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        found: dict[str, Any] = {}
        for table in ("conversations", "cursor_sessions", "subagent"):
            rows = [dict(row) for row in db.execute(f"select * from {table}")]  # noqa: S608 - names are ours
            internal = "id" if table == "subagent" else "number"
            found[table] = sorted(str({k: v for k, v in row.items() if k != internal}) for row in rows)
        for name, query in _QUERIES.items():
            found[name] = sorted(map(tuple, db.execute(query)), key=repr)
        return found


_QUERIES = {
    "problems": "select code, path, place, reason from problem",
    "events": "select u.path, u.key, e.code from source_event e join unit u on u.id = e.unit_id",
    "units": "select path, key, kind, fingerprint, size, is_gone, checkpoint_offset, record_counts from unit",
}

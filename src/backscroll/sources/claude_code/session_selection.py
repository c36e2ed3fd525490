"""Select the files, lines and rows of some sessions for a backup."""

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from sqlite3 import Connection

import msgspec

from backscroll.model.safekeeping.backup import SelectedFiles, SourceFile
from backscroll.readers import lenient_json
from backscroll.readers.sqlite.copy import copy_rows, copy_schema, table_names
from backscroll.sources.claude_code.backup import PROMPT_LOG, SESSION_INDEX, backup_files
from backscroll.sources.claude_code.legacy_db import MESSAGES, SUMMARIES, TEXT_TABLES

__all__ = ["copy_sessions", "select_files", "select_records"]

_SLUG = re.compile(rb'"slug":"([^"\\]+)"')
_PASTED = re.compile(rb'"contentHash":"([^"\\]+)"')


def select_files(root: Path, session_ids: Collection[str], paths: Collection[str]) -> SelectedFiles:
    """Return the files of some sessions. ``paths`` are the files that the sessions were read from.

    Plans and pasted text have names that transcripts and the prompt log refer to.
    """
    ids = frozenset(session_ids)
    selected: list[SourceFile] = []
    others: list[SourceFile] = []
    for file in backup_files(root):
        if file.is_shared or file.session_id in ids or file.path in paths:
            selected.append(file)
        else:
            others.append(file)
    named = _Names(root, [file.path for file in selected if file.path.endswith(".jsonl")], ids)
    return SelectedFiles((*selected, *(file for file in others if named.contain(file.path))), ids)


class _Names:
    """Names of plans and pasted texts that some sessions refer to. Read only if there are such files."""

    def __init__(self, root: Path, transcripts: list[str], ids: frozenset[str]) -> None:
        self._folders = {"plans": str(root / "plans"), "paste-cache": str(root / "paste-cache")}
        self._transcripts = [path for path in transcripts if Path(path).name != PROMPT_LOG]
        self._prompt_log = root / PROMPT_LOG
        self._ids = ids
        self._found: dict[str, set[str]] = {}

    def contain(self, path: str) -> bool:
        folder = Path(path).parent
        name = next((name for name, one in self._folders.items() if one == str(folder)), None)
        if name is None:
            return False
        if name not in self._found:
            self._found[name] = set(self._slugs() if name == "plans" else self._pasted())
        return Path(path).stem in self._found[name]

    def _slugs(self) -> Iterator[str]:
        for path in self._transcripts:
            with open(path, "rb") as file:  # noqa: PTH123 - a text
                for line in file:
                    yield from (found.decode("utf-8", "replace") for found in _SLUG.findall(line))

    def _pasted(self) -> Iterator[str]:
        with self._prompt_log.open("rb") as file:
            kept = select_records(PROMPT_LOG, file, self._ids)
        yield from (found.decode("utf-8", "replace") for found in _PASTED.findall(kept))


def select_records(path: str, content: Iterable[bytes], session_ids: Collection[str]) -> bytes:
    """Return the lines of the prompt log, or entries of a session index, that name one of the sessions."""
    if path.endswith(SESSION_INDEX):
        return _select_entries(b"".join(content), session_ids)
    return b"".join(line for line in _lines(content) if _session_of(line) in session_ids)


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines with their newlines. One is added to an incomplete last line."""
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest + b"\n"


def _session_of(line: bytes) -> str | None:
    if b'"sessionId"' not in line:
        return None
    try:
        record = lenient_json.load(line)
    except lenient_json.FAILURES:
        return None
    found = record.get("sessionId") if isinstance(record, dict) else None
    return found if isinstance(found, str) else None


def _select_entries(content: bytes, session_ids: Collection[str]) -> bytes:
    try:
        index = lenient_json.load(content)
    except lenient_json.FAILURES:
        return b""
    entries = index.get("entries") if isinstance(index, dict) else None
    if not isinstance(entries, list):
        return b""
    kept = [one for one in entries if isinstance(one, dict) and one.get("sessionId") in session_ids]
    return msgspec.json.format(msgspec.json.encode({**index, "entries": kept})) if kept else b""


def copy_sessions(path: str, source: Connection, target: Connection, session_ids: Collection[str]) -> bool:
    """Copy the messages of some sessions to an empty database of version 0.2."""
    copy_schema(source, target)
    tables = set(table_names(source))
    if MESSAGES not in tables:
        return False
    ids = msgspec.json.encode(list(session_ids)).decode()
    of_sessions = "session_id in (select value from json_each(?))"
    count = copy_rows(source, target, MESSAGES, of_sessions, [ids])
    uuids = f"in (select uuid from {MESSAGES} where {of_sessions})"  # noqa: S608 - constants
    for table in TEXT_TABLES:
        if table in tables:
            copy_rows(source, target, table, f"uuid {uuids}", [ids])
    if SUMMARIES in tables:
        copy_rows(source, target, SUMMARIES, f"leaf_uuid {uuids}", [ids])
    return count > 0

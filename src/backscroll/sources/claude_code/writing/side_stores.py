"""The prompt log and the session index, which name the project of a session."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from backscroll.model.safekeeping.changes import FileChange, LineChange
from backscroll.readers import lenient_json
from backscroll.sources.claude_code.writing.path_map import PathMap
from backscroll.sources.claude_code.writing.raw_fields import edit_object, encode_text, fields_of
from backscroll.sources.claude_code.writing.session_files import file_hash, read_lines

__all__ = ["add_index_entries", "index_changes", "prompt_log_changes"]

_INDEX = "sessions-index.json"


def prompt_log_changes(root: Path, session_id: str, paths: PathMap) -> Iterator[LineChange]:
    """Yield the lines of the prompt log that name the session and a folder that changes."""
    path = root / "history.jsonl"
    if not path.is_file():
        return
    wanted = session_id.encode()
    for line in dict.fromkeys(read_lines(path)):
        if wanted not in line or not line.endswith(b"\n"):
            continue
        try:
            text = line[:-1].decode()
            fields = fields_of(text)
        except ValueError:
            continue
        project = fields.get("project")
        if project is None or "sessionId" not in fields or fields["sessionId"].value != session_id:
            continue
        new = paths.path(project.value) if isinstance(project.value, str) else None
        if new is not None:
            after = edit_object(text, fields, {"project": encode_text(new)}).encode()
            yield LineChange(path=path, before=line[:-1], after=after, label="prompt")


def index_changes(
    transcript: Path, new_transcript: Path, project: str, *, is_move: bool
) -> Iterator[FileChange]:
    """Yield the changed session indexes. Versions 2.1.0 to 2.1.29 keep one; it is never created."""
    source, target = transcript.parent / _INDEX, new_transcript.parent / _INDEX
    entry = next((one for one in _entries(source) if one.get("sessionId") == transcript.stem), None)
    if entry is not None and is_move:
        rest = [
            one for one in _entries(source) if one is not entry and one.get("sessionId") != transcript.stem
        ]
        yield _index_change(source, rest)
    if entry is not None and target.is_file():
        named = {"sessionId": new_transcript.stem, "fullPath": str(new_transcript), "projectPath": project}
        yield _index_change(target, [*_entries(target), {**entry, **named}])


def add_index_entries(index: Path, target: Path) -> tuple[FileChange | None, int]:
    """Plan to add the entries of one index to another that does not have them. Return their number too."""
    current = _entries(target)
    known = {one.get("sessionId") for one in current}
    added = [one for one in _entries(index) if one.get("sessionId") not in known]
    return (_index_change(target, [*current, *added]) if added else None), len(added)


def _index_change(path: Path, entries: list[dict[str, Any]]) -> FileChange:
    content = msgspec.json.format(msgspec.json.encode({**_load(path), "entries": entries}))
    return FileChange(
        path=path,
        content=lambda: [content],
        before=file_hash(path),
        size=len(content),
        label="session index",
    )


def _entries(path: Path) -> list[dict[str, Any]]:
    entries = _load(path).get("entries")
    return [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []


def _load(path: Path) -> dict[str, Any]:
    try:
        document = lenient_json.load(path.read_bytes())
    except (OSError, *lenient_json.FAILURES):
        return {}
    return document if isinstance(document, dict) else {}

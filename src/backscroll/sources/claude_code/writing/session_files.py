"""The files of a session: transcript, side folder and flat subagent files."""

import os
from collections.abc import Iterable, Iterator
from hashlib import file_digest
from pathlib import Path

from backscroll.errors import ChangeConflictError, SessionNotFoundError
from backscroll.model.safekeeping.transfer import StoredSession
from backscroll.readers import lenient_json
from backscroll.sources.claude_code.folders import SUBAGENTS
from backscroll.sources.claude_code.workspace import project_folder

__all__ = [
    "complete_lines",
    "file_hash",
    "find_transcripts",
    "label_of",
    "read_lines",
    "side_files",
    "transcript_of",
]

_LABELS = {SUBAGENTS: "subagent", "tool-results": "tool result", "workflows": "workflow"}


def find_transcripts(root: Path, session_id: str) -> list[Path]:
    """Return the transcripts with this id in all projects. The tool ignores empty ones."""
    found = sorted((root / "projects").glob(f"*/{session_id}.jsonl"))
    return [path for path in found if path.stat().st_size]


def transcript_of(session: StoredSession) -> Path:
    """Return the only transcript of a session.

    Raises `SessionNotFoundError` if it is not in the store, and `ChangeConflictError` if several project
    folders have one.
    """
    found = find_transcripts(session.root, session.id)
    if not found:
        raise SessionNotFoundError(
            f"{session.ref} has no transcript below {session.root}. Only transcripts can be moved or copied.",
            session.id,
        )
    if len(found) > 1:
        paths = "\n".join(f"  {path}" for path in found)
        raise ChangeConflictError(
            f"{session.ref} has several transcripts. Keep one of them:\n{paths}", found[0]
        )
    return found[0]


def side_files(session: StoredSession, transcript: Path) -> Iterator[Path]:
    """Yield the files of the side folder, and the flat subagent files next to the transcript.

    Raises `ChangeConflictError` for links: they would be moved without what they point to.
    """
    folder = transcript.with_suffix("")
    if folder.is_symlink():
        raise _link_error(folder)
    for current, folders, names in os.walk(folder):
        for name in sorted([*folders, *names]):
            path = Path(current, name)
            if path.is_symlink():
                raise _link_error(path)
        folders.sort()
        yield from (Path(current, name) for name in sorted(names))
    for one in sorted(session.paths):
        path = Path(one)
        if path.parent == transcript.parent and path.name.startswith("agent-") and path.is_file():
            yield path


def label_of(path: Path, transcript: Path) -> str:
    """Return what a file is, for the printed plan."""
    if path == transcript:
        return "transcript"
    project = project_folder(path)
    parts = path.relative_to(project).parts if project is not None else path.parts
    if len(parts) == 1:
        return "subagent"
    return _LABELS.get(parts[1], "side file")


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, with their newlines."""
    with path.open("rb") as file:
        yield from file


def complete_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield content that ends with a newline. An incomplete last record is dropped.

    Versions before 2.1.106 append to the last line without checking that it has ended.
    """
    rest = b""
    for block in blocks:
        end = block.rfind(b"\n") + 1
        if end:
            yield rest + block[:end]
            rest = block[end:]
        else:
            rest += block
    if rest.rstrip().endswith(b"}") and _is_record(rest):
        yield rest + b"\n"


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(lenient_json.load(line), dict)
    except lenient_json.FAILURES:
        return False


def _link_error(path: Path) -> ChangeConflictError:
    return ChangeConflictError(f"{path} is a symbolic link. Replace it by what it points to.", path)

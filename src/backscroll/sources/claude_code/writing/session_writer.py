"""Plan to restore, move or copy a session."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

from msgspec.structs import replace

from backscroll.errors import ChangeConflictError, DataNotFoundError
from backscroll.model.safekeeping.changes import ChangePlan, Content, FileChange
from backscroll.model.safekeeping.transfer import (
    ArchivedFile,
    ArchivedRows,
    ArchivedSession,
    SessionPlan,
    StoredSession,
)
from backscroll.sources.claude_code.resume import blocking_processes
from backscroll.sources.claude_code.retention import retention_days
from backscroll.sources.claude_code.writing.fork import Fork
from backscroll.sources.claude_code.writing.path_map import PathMap
from backscroll.sources.claude_code.writing.restored_files import distinct_transcripts, has_content
from backscroll.sources.claude_code.writing.session_files import (
    complete_lines,
    file_hash,
    find_transcripts,
    label_of,
    read_lines,
    side_files,
    transcript_of,
)
from backscroll.sources.claude_code.writing.side_stores import index_changes, prompt_log_changes
from backscroll.sources.claude_code.writing.target_folder import path_on_disk, target_folder

__all__ = ["blocking_processes", "plan_copy", "plan_move", "plan_restore"]

_SECONDS_PER_DAY = 24 * 60 * 60
_Lines = Callable[[Iterable[bytes]], Iterable[bytes]]


# Restore


def plan_restore(session: ArchivedSession) -> SessionPlan:
    """Plan to create the files of a session that do not exist. Existing files stay as they are."""
    transcripts = [file for file in session.files if Path(file.path).stem == session.id]
    if not transcripts:
        raise DataNotFoundError(f"The archive has no transcript of {session.ref}.", session.root)
    others = [path for path in find_transcripts(session.root, session.id) if str(path) not in _paths(session)]
    if others:
        raise ChangeConflictError(f"{session.ref} is in the store already: {others[0]}", others[0])
    kept = distinct_transcripts(transcripts, session.folder)
    transcript = Path(kept[0].path)
    dropped = {Path(file.path).parent for file in transcripts} - {Path(file.path).parent for file in kept}
    archived = [
        file
        for file in (*session.files, *_archived_sides(session))
        if dropped.isdisjoint(Path(file.path).parents)
    ]
    missing = {file.path: file for file in archived if not has_content(Path(file.path))}
    files = [_restored(file, transcript) for file in missing.values()]
    plan = ChangePlan(what=f"Restore {session.ref}", sessions=(session.ref,), files=tuple(files))
    return SessionPlan(plan, session.id)


def _archived_sides(session: ArchivedSession) -> Iterator[ArchivedFile]:
    """Yield the side files: subagent metadata, tool results, tasks and saved versions of edited files."""
    root = session.root.resolve()
    for unit in session.rows:
        for row in unit.rows():
            path = session.root / row.path
            is_file = not row.table and row.path and row.value is not None
            if is_file and path.resolve().is_relative_to(root):
                yield ArchivedFile(str(path), len(row.value or b""), partial(_side_content, unit, row.path))


def _side_content(unit: ArchivedRows, path: str) -> Iterator[bytes]:
    for row in unit.rows():
        if row.path == path and not row.table and row.value is not None:
            yield row.value


def _paths(session: ArchivedSession) -> set[str]:
    return {file.path for file in session.files}


def _restored(file: ArchivedFile, transcript: Path) -> FileChange:
    path = Path(file.path)
    content: Content = file.content
    if path.suffix == ".jsonl":
        content = partial(_restored_lines, file.content)
    return FileChange(
        path=path,
        content=content,
        before=file_hash(path) if path.exists() else None,  # the tool ignores an empty file
        size=file.size,
        label=label_of(path, transcript),
    )


def _restored_lines(content: Content) -> Iterable[bytes]:
    return complete_lines(content())


# Move


def plan_move(session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
    """Plan to move the transcript, its side folder and flat subagent files to the target's project folder.

    The files keep their times, but none is older than half of the time after which the tool deletes it.
    """
    transcript = transcript_of(session)
    folder = _free_folder(session, target, transcript, session.id)
    paths = _path_map(session, target)
    is_rewritten = paths is not None and not keep_cwd
    edit = _moved_lines(paths) if paths is not None and is_rewritten else _unchanged
    project = path_on_disk(target)
    # The tool lists sessions by the age of their files, and deletes old ones.
    oldest = time.time() - retention_days(session.root) * _SECONDS_PER_DAY / 2
    created: list[FileChange] = []
    deleted: list[FileChange] = []
    for path in (transcript, *side_files(session, transcript)):
        label = label_of(path, transcript)
        new_path = folder / path.relative_to(transcript.parent)
        added = [] if path != transcript or is_rewritten else [_relocated(project, session.id)]
        modified_at = max(path.stat().st_mtime, oldest)
        content = partial(_with_lines, edit, added)
        created.append(replace(_rewritten(path, new_path, content, label), modified_at=modified_at))
        deleted.append(
            FileChange(path=path, content=None, before=file_hash(path), label=label, modified_at=modified_at)
        )
    indexes = index_changes(transcript, folder / transcript.name, project, is_move=True)
    lines = prompt_log_changes(session.root, session.id, paths) if paths is not None else ()
    plan = ChangePlan(
        what=f"Move {session.ref} to {project}",
        sessions=(session.ref,),
        files=(*created, *indexes, *deleted),
        lines=tuple(lines),
        warnings=_warnings(session, paths),
    )
    return SessionPlan(plan, session.id)


def _moved_lines(paths: PathMap) -> _Lines:
    return lambda lines: map(paths.line, lines)


# Copy


def plan_copy(session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
    """Plan to copy a session with new ids. The original stays as it is."""
    transcript = transcript_of(session)
    new_id = str(uuid4())
    folder = _free_folder(session, target, transcript, new_id)
    paths = _path_map(session, target)
    is_rewritten = paths is not None and not keep_cwd
    fork = Fork(session.id, new_id, paths if is_rewritten else None)
    project = path_on_disk(target)
    added = [] if is_rewritten else [_relocated(project, new_id)]
    if session.title is not None:
        added.append(
            _state_line(type="custom-title", customTitle=f"{session.title} (fork)", sessionId=new_id)
        )
    warnings = list(_warnings(session, paths))
    created: list[FileChange] = []
    for path in (transcript, *side_files(session, transcript)):
        parts = path.relative_to(transcript.parent).parts
        is_flat = len(parts) == 1
        new_path = folder.joinpath(new_id, *parts[1:]) if not is_flat else folder / path.name
        edit: _Lines = fork.lines
        if path == transcript:
            new_path = folder / f"{new_id}.jsonl"
            edit = partial(_with_lines, fork.lines, added)
        elif is_flat and new_path.exists():
            warnings.append(f"{new_path} exists, so this subagent is not copied.")
            continue
        created.append(_rewritten(path, new_path, edit, label_of(path, transcript)))
    created += _file_history(session, new_id)
    indexes = index_changes(transcript, folder / f"{new_id}.jsonl", project, is_move=False)
    prefix = session.ref.removesuffix(session.id)
    plan = ChangePlan(
        what=f"Copy {session.ref} to {project}",
        sessions=(session.ref, f"{prefix}{new_id}"),
        files=(*created, *indexes),
        warnings=tuple(warnings),
    )
    return SessionPlan(plan, new_id)


def _file_history(session: StoredSession, new_id: str) -> Iterator[FileChange]:
    """Yield copies of the saved versions of edited files, so that the copy can be rewound."""
    folder = session.root / "file-history" / session.id
    for path in sorted(folder.glob("*")) if folder.is_dir() else ():
        if path.is_file() and not path.is_symlink():
            yield _rewritten(path, folder.with_name(new_id) / path.name, None, "file version")


# Files


def _free_folder(session: StoredSession, target: Path, transcript: Path, new_id: str) -> Path:
    """Return the project folder of the target. Raises `ChangeConflictError` if it has the session."""
    folder = target_folder(session.root, target, transcript)
    if folder == transcript.parent:
        raise ChangeConflictError(f"{session.ref} is in {target} already.", folder)
    for path in (folder / f"{new_id}.jsonl", folder / new_id):
        if path.exists():
            raise ChangeConflictError(f"{path} exists already.", path)
    return folder


def _path_map(session: StoredSession, target: Path) -> PathMap | None:
    return PathMap(session.folder, path_on_disk(target)) if session.folder else None


def _warnings(session: StoredSession, paths: PathMap | None) -> tuple[str, ...]:
    if paths is not None:
        return ()
    return (f"The folder of {session.ref} is unknown. The folders in its messages are left as they are.",)


def _relocated(project: str, session_id: str) -> bytes:
    """Return the line with which the tool records a new folder. Earlier lines keep the former folder."""
    return _state_line(type="relocated", relocatedCwd=project, sessionId=session_id)


def _state_line(**record: str) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _with_lines(edit: _Lines, added: Iterable[bytes], lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield edited lines, then new ones."""
    yield from edit(lines)
    yield from added


def _unchanged(lines: Iterable[bytes]) -> Iterable[bytes]:
    return lines


def _rewritten(path: Path, new_path: Path, edit: _Lines | None, label: str) -> FileChange:
    """Return the change that creates a file from another one. Only lines of transcripts are edited."""
    is_transcript = path.suffix == ".jsonl" and edit is not None
    return FileChange(
        path=new_path,
        content=partial(_edited, path, edit if is_transcript else None),
        before=None,
        size=path.stat().st_size,
        label=label,
    )


def _edited(path: Path, edit: _Lines | None) -> Iterable[bytes]:
    return read_lines(path) if edit is None else edit(complete_lines(read_lines(path)))

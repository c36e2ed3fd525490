"""Plan to restore, move or copy a session. Nothing here writes.

A session has a transcript, a side folder and flat subagent files. The prompt log and the session index name
its project.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4, uuid5

import msgspec
from msgspec.structs import replace

from backscroll.errors import ChangeConflictError, DataNotFoundError, SessionNotFoundError
from backscroll.model.change import ChangePlan, Content, FileChange, LineChange
from backscroll.model.transfer import ArchivedFile, ArchivedSession, SessionPlan, StoredSession
from backscroll.model.workspace import PathMaps
from backscroll.readers import lenient_json
from backscroll.readers.files import file_sha256
from backscroll.sources.claude_code.locations import PROMPT_LOG, SESSION_INDEX, SUBAGENTS
from backscroll.sources.claude_code.moved_lines import Fork, with_new_folders
from backscroll.sources.claude_code.resume import blocking_processes as blocking_processes
from backscroll.sources.claude_code.retention import retention_days
from backscroll.sources.claude_code.transcript.subagents import agent_id_of
from backscroll.sources.claude_code.workspace import (
    load_object,
    matches,
    path_on_disk,
    project_folder,
    target_folder,
)
from backscroll.sources.json_edits import edit_object, encode_text, fields_of
from backscroll.sources.session_file_changes import (
    FileRestorePlanner,
    archived_side_files,
    check_free,
    differs,
    has_content,
    is_missing,
    link_error,
    read_lines,
    restored_file,
)

_Lines = Callable[[Iterable[bytes]], Iterable[bytes]]
_SECONDS_PER_DAY = 24 * 60 * 60
_LABELS = {SUBAGENTS: "subagent", "tool-results": "tool result", "workflows": "workflow"}
_UUID = re.compile(rb'"uuid"\s*:\s*"([^"]+)"')
_AGENT_PREFIX = "agent-"
_AGENT_ID_CHARS = 8  # of a subagent in a file next to the transcript
_OVERLAP_BYTES = 64  # longer than a match, which may begin in one block and end in the next


# Restore


def plan_restore(session: ArchivedSession, *, is_replacing: bool = False) -> SessionPlan:
    """Plan to create the files of a session that do not exist. Existing files stay as they are.

    ``is_replacing`` replaces those that differ. The files get the current time: the tool deletes those whose
    modification time is older than 30 days.
    """
    transcripts = [file for file in session.files if Path(file.path).stem == session.id]
    prompts = [line for log in session.prompt_logs for line in _missing_prompts(log, session.id)]
    lines = tuple(line for line in prompts if line.path.is_file())
    created = _new_prompt_logs(line for line in prompts if not line.path.is_file())
    if not transcripts and session.prompt_logs:
        what = f"Restore {session.ref}"
        return SessionPlan(
            ChangePlan(what=what, sessions=(session.ref,), files=tuple(created), lines=lines), session.id
        )
    if not transcripts:
        raise DataNotFoundError(f"The archive has no transcript of {session.ref}.", session.root)
    others = [
        path for path in _find_transcripts(session.root, session.id) if str(path) not in _paths(session)
    ]
    if others:
        raise ChangeConflictError(f"{session.ref} is in the store already: {others[0]}", others[0])
    kept = _distinct_transcripts(transcripts, session.folder)
    transcript = Path(kept[0].path)
    dropped = {Path(file.path).parent for file in transcripts} - {Path(file.path).parent for file in kept}
    archived = [
        file
        for file in (*session.files, *archived_side_files(session))
        if dropped.isdisjoint(Path(file.path).parents)
    ]
    missing = {file.path: file for file in archived if is_missing(file) or (is_replacing and differs(file))}
    files = [
        restored_file(file, _complete(file), _label_of(Path(file.path), transcript))
        for file in missing.values()
    ]
    plan = ChangePlan(
        what=f"Restore {session.ref}", sessions=(session.ref,), files=(*files, *created), lines=lines
    )
    return SessionPlan(plan, session.id)


def restore_planner(root: Path, check: Callable[[SessionPlan], None]) -> FileRestorePlanner:
    """Return a planner that restores several sessions. They may need the same new prompt log."""
    return FileRestorePlanner(plan_restore, check, joined=PROMPT_LOG)


def _distinct_transcripts(transcripts: Sequence[ArchivedFile], folder: str | None) -> list[ArchivedFile]:
    """Return the transcripts without those that repeat another one, the one in the store first.

    The archive has a transcript of a session for each project folder that contained one. After a move, both
    have the same lines. A session that was continued in another folder has different lines in each. If none
    is in the store, the one in the project of the session's folder is first.
    """
    ranked = sorted(
        transcripts,
        key=lambda file: (
            not has_content(Path(file.path)),
            folder is None or not matches(folder, Path(file.path).parent.name),
        ),
    )
    kept: list[ArchivedFile] = []
    known: set[bytes] = set()
    for file in ranked:
        uuids = set(_uuids(file.content()))
        if has_content(Path(file.path)) or not uuids or uuids - known:
            kept.append(file)
            known |= uuids
    return kept


def _uuids(blocks: Iterable[bytes]) -> Iterable[bytes]:
    """Yield the ids of the lines in a transcript."""
    rest = b""
    for block in blocks:
        text = rest + block
        yield from _UUID.findall(text)
        rest = text[-_OVERLAP_BYTES:]


def _missing_prompts(log: ArchivedFile, session_id: str) -> Iterator[LineChange]:
    """Yield the prompts of a session that the prompt log of the tool does not have."""
    path = Path(log.path)
    known = {line.rstrip(b"\n") for line in read_lines(path)} if path.is_file() else set()
    mark, rest = session_id.encode(), b""
    for block in log.content():
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            if mark in line and line not in known and _session_of(line) == session_id:
                yield LineChange(path=path, before=None, after=line, label="prompt")


def _new_prompt_logs(lines: Iterable[LineChange]) -> list[FileChange]:
    """Return prompt logs with these lines, where the tool has none."""
    contents: dict[Path, bytes] = {}
    for line in lines:
        contents[line.path] = contents.get(line.path, b"") + (line.after or b"") + b"\n"
    return [
        FileChange(path=path, content=partial(iter, [data]), before=None, size=len(data), label="prompt log")
        for path, data in contents.items()
    ]


def _session_of(line: bytes) -> object:
    try:
        record = lenient_json.load(line)
    except lenient_json.FAILURES:
        return None
    return record.get("sessionId") if isinstance(record, dict) else None


def _paths(session: ArchivedSession) -> set[str]:
    return {file.path for file in session.files}


def _complete(file: ArchivedFile) -> Content:
    """Return the content of a file, without an incomplete last line if it is a transcript."""
    return partial(_restored_lines, file.content) if file.path.endswith(".jsonl") else file.content


def _restored_lines(content: Content) -> Iterable[bytes]:
    return _complete_lines(content())


# Move


def plan_move(session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
    """Plan to move the transcript, its side folder and flat subagent files to the target's project folder.

    The files keep their times, but none is older than half of the time after which the tool deletes it.
    """
    transcript = _transcript_of(session)
    folder = _free_folder(session, target, transcript, session.id)
    paths = _folder_map(session, target)
    is_rewritten = paths is not None and not keep_cwd
    edit = partial(_moved, paths) if paths is not None and is_rewritten else _unchanged
    project = path_on_disk(target)
    # The tool lists sessions by the age of their files, and deletes old ones.
    oldest = time.time() - retention_days(session.root) * _SECONDS_PER_DAY / 2
    created: list[FileChange] = []
    deleted: list[FileChange] = []
    for path in (transcript, *_side_files(session, transcript)):
        label = _label_of(path, transcript)
        new_path = folder / path.relative_to(transcript.parent)
        added = [] if path != transcript or is_rewritten else [_relocated(project, session.id)]
        modified_at = max(path.stat().st_mtime, oldest)
        content = partial(_with_lines, edit, added)
        created.append(replace(_rewritten(path, new_path, content, label), modified_at=modified_at))
        deleted.append(
            FileChange(
                path=path, content=None, before=file_sha256(path), label=label, modified_at=modified_at
            )
        )
    indexes = _index_changes(transcript, folder / transcript.name, project, is_move=True)
    lines = _prompt_log_changes(session.root, session.id, paths) if paths is not None else ()
    plan = ChangePlan(
        what=f"Move {session.ref} to {project}",
        sessions=(session.ref,),
        files=(*created, *indexes, *deleted),
        lines=tuple(lines),
        warnings=_warnings(session, paths),
    )
    return SessionPlan(plan, session.id)


def _moved(paths: PathMaps, lines: Iterable[bytes]) -> Iterator[bytes]:
    return (with_new_folders(line, paths) for line in lines)


# Copy


def plan_copy(session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
    """Plan to copy a session with new ids. The original stays as it is."""
    transcript = _transcript_of(session)
    new_id = str(uuid4())
    folder = _free_folder(session, target, transcript, new_id)
    paths = _folder_map(session, target)
    is_rewritten = paths is not None and not keep_cwd
    paths_of_session = [transcript, *_side_files(session, transcript)]
    agent_ids = _new_agent_ids(paths_of_session, transcript, new_id)
    fork = Fork(session.id, new_id, paths if is_rewritten else None, agent_ids)
    project = path_on_disk(target)
    added = [] if is_rewritten else [_relocated(project, new_id)]
    if session.title is not None:
        added.append(
            _state_line(type="custom-title", customTitle=f"{session.title} (fork)", sessionId=new_id)
        )
    created: list[FileChange] = []
    for path in paths_of_session:
        parts = path.relative_to(transcript.parent).parts
        new_path = folder.joinpath(new_id, *parts[1:])
        edit: _Lines = fork.lines
        if path == transcript:
            new_path = folder / f"{new_id}.jsonl"
            edit = partial(_with_lines, fork.lines, added)
        elif len(parts) == 1:
            new_path = folder / f"{_AGENT_PREFIX}{agent_ids[agent_id_of(path)]}{path.suffix}"
            check_free(new_path)
        created.append(_rewritten(path, new_path, edit, _label_of(path, transcript)))
    created += _file_history(session, new_id)
    indexes = _index_changes(transcript, folder / f"{new_id}.jsonl", project, is_move=False)
    prefix = session.ref.removesuffix(session.id)
    plan = ChangePlan(
        what=f"Copy {session.ref} to {project}",
        sessions=(session.ref, f"{prefix}{new_id}"),
        files=(*created, *indexes),
        warnings=_warnings(session, paths),
    )
    return SessionPlan(plan, new_id, tuple(agent_ids.values()))


def _new_agent_ids(paths: Iterable[Path], transcript: Path, new_id: str) -> dict[str, str]:
    """Return new ids of the subagents whose files are next to the transcript, where ids must be unique.

    Those below the side folder keep their ids: the tool finds them by the ids in the conversation.
    """
    old_ids = [agent_id_of(path) for path in paths if path != transcript and path.parent == transcript.parent]
    return {old: uuid5(UUID(new_id), old).hex[:_AGENT_ID_CHARS] for old in old_ids}


def _file_history(session: StoredSession, new_id: str) -> Iterator[FileChange]:
    """Yield copies of the saved versions of edited files, so that the copy can be rewound."""
    folder = session.root / "file-history" / session.id
    for path in sorted(folder.glob("*")) if folder.is_dir() else ():
        if path.is_file() and not path.is_symlink():
            yield _rewritten(path, folder.with_name(new_id) / path.name, None, "file version")


# Files of a session


def _find_transcripts(root: Path, session_id: str) -> list[Path]:
    """Return the transcripts with this id in all projects, each once. The tool ignores empty ones."""
    found = [path for path in (root / "projects").glob(f"*/{session_id}.jsonl") if path.stat().st_size]
    found.sort(key=lambda path: (path.parent.is_symlink(), path), reverse=True)
    return sorted(
        {path.resolve(): path for path in found}.values()
    )  # of several paths, the first without a link


def _transcript_of(session: StoredSession) -> Path:
    """Return the only transcript of a session.

    Raises `SessionNotFoundError` if it is not in the store, and `ChangeConflictError` if several project
    folders have one.
    """
    found = _find_transcripts(session.root, session.id)
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


def _side_files(session: StoredSession, transcript: Path) -> Iterator[Path]:
    """Yield the files of the side folder, and the flat subagent files next to the transcript.

    Raises `ChangeConflictError` for links: they would be moved without what they point to.
    """
    folder = transcript.with_suffix("")
    if folder.is_symlink():
        raise link_error(folder)
    for current, folders, names in os.walk(folder):
        for name in sorted([*folders, *names]):
            path = Path(current, name)
            if path.is_symlink():
                raise link_error(path)
        folders.sort()
        yield from (Path(current, name) for name in sorted(names))
    for one in sorted(session.paths):
        path = Path(one)
        if path.parent == transcript.parent and path.name.startswith(_AGENT_PREFIX) and path.is_file():
            yield path


def _label_of(path: Path, transcript: Path) -> str:
    """Return what a file is, for the printed plan."""
    if path == transcript:
        return "transcript"
    project = project_folder(path)
    parts = path.relative_to(project).parts if project is not None else path.parts
    if len(parts) == 1:
        return "subagent"
    return _LABELS.get(parts[1], "side file")


def _free_folder(session: StoredSession, target: Path, transcript: Path, new_id: str) -> Path:
    """Return the project folder of the target. Raises `ChangeConflictError` if it has the session."""
    folder = target_folder(session.root, target, transcript)
    if folder == transcript.parent:
        raise ChangeConflictError(f"{session.ref} is in {target} already.", folder)
    for path in (folder / f"{new_id}.jsonl", folder / new_id):
        check_free(path)
    return folder


def _folder_map(session: StoredSession, target: Path) -> PathMaps | None:
    return PathMaps([(session.folder, path_on_disk(target))]) if session.folder else None


def _warnings(session: StoredSession, paths: PathMaps | None) -> tuple[str, ...]:
    if paths is not None:
        return ()
    return (f"The folder of {session.ref} is unknown. The folders in its messages are left as they are.",)


# Contents


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
    return read_lines(path) if edit is None else edit(_complete_lines(read_lines(path)))


def _complete_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
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


# The prompt log and the session index


def _prompt_log_changes(root: Path, session_id: str, paths: PathMaps) -> Iterator[LineChange]:
    """Yield the lines of the prompt log that name the session and a folder that changes."""
    path = root / PROMPT_LOG
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


def _index_changes(
    transcript: Path, new_transcript: Path, project: str, *, is_move: bool
) -> Iterator[FileChange]:
    """Yield the changed session indexes. Versions 2.1.0 to 2.1.29 keep one; it is never created."""
    source, target = transcript.parent / SESSION_INDEX, new_transcript.parent / SESSION_INDEX
    entry = next((one for one in _index_entries(source) if one.get("sessionId") == transcript.stem), None)
    if entry is not None and is_move:
        rest = [
            one
            for one in _index_entries(source)
            if one is not entry and one.get("sessionId") != transcript.stem
        ]
        yield _index_change(source, rest)
    if entry is not None and target.is_file():
        named = {"sessionId": new_transcript.stem, "fullPath": str(new_transcript), "projectPath": project}
        yield _index_change(target, [*_index_entries(target), {**entry, **named}])


def _index_change(path: Path, entries: list[dict[str, Any]]) -> FileChange:
    content = msgspec.json.format(msgspec.json.encode({**load_object(path), "entries": entries}))
    return FileChange(
        path=path,
        content=lambda: [content],
        before=file_sha256(path),
        size=len(content),
        label="session index",
    )


def _index_entries(path: Path) -> list[dict[str, Any]]:
    entries = load_object(path).get("entries")
    return [one for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []

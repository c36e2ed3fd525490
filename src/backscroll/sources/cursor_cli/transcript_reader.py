"""Read transcripts: lossy text copies of sessions, which the CLI and the IDE's agent write per project."""

from collections.abc import Collection, Iterator
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from backscroll.model import Agent, Closing, Item, Message, Opening, Origin, Problem, RecordCounts
from backscroll.readers import timestamps
from backscroll.readers.read_faults import read_fault
from backscroll.sources.cursor_cli import transcript_jsonl, transcript_text, workspace
from backscroll.sources.cursor_cli.locations import SOURCE, find_transcripts
from backscroll.sources.cursor_cli.metadata import read_sidecar
from backscroll.sources.cursor_cli.transcript_paths import TranscriptPath, parse_transcript_path

__all__ = ["RootCatalog", "read_transcript"]

_LOSSY_REASON = "a transcript keeps no tool results, no thinking and no times but those of prompts"
_AMBIGUOUS_REASON = "another project has a different transcript with the same id"
_PATH_PARAMS = (
    "path",
    "file_path",
    "target_file",
    "targetFile",
    "target_directory",
    "working_directory",
    "cwd",
)
_MAX_MENTIONED_PATHS = 200
_CHUNK_BYTES = 1024 * 1024


class RootCatalog:
    """Cache of the sessions and transcripts below a root."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @cached_property
    def _cwds(self) -> dict[str, str]:
        """Working directories by session id."""
        sidecars = (*self._root.glob("chats/*/*/meta.json"), *self._root.glob("acp-sessions/*/meta.json"))
        cwds = {path.parent.name: read_sidecar(path).text("cwd") for path in sorted(sidecars)}
        known = {id: cwd for id, cwd in cwds.items() if cwd}
        # Older versions write no metadata. The name of the folder is the MD5 of the working directory.
        by_hash = {workspace.folder_hash(cwd): cwd for cwd in known.values()}
        for folder in sorted(self._root.glob("chats/*/*")):
            if folder.parent.name in by_hash:
                known.setdefault(folder.name, by_hash[folder.parent.name])
        return known

    @cached_property
    def _known_slugs(self) -> frozenset[str]:
        return frozenset(slug for folder in self.folders() for slug in workspace.project_slugs(folder))

    @cached_property
    def _transcripts(self) -> dict[tuple[str | None, str], list[Path]]:
        return {key: list(map(Path, paths)) for key, paths in find_transcripts(self._root).items()}

    def folders(self) -> list[str]:
        """Return the working directories of all sessions."""
        return list(dict.fromkeys(self._cwds.values()))

    def same_session(self, path: Path, parsed: TranscriptPath) -> list[Path]:
        """Return all transcripts of the same session, the active one first.

        The active one is in the project of the session's folder. If that is unknown, it is in the project of
        a folder that other sessions name, and the newest of these.
        """
        cwd = self._cwds.get(parsed.parent or parsed.id)
        slugs: Collection[str] = workspace.project_slugs(cwd) if cwd is not None else self._known_slugs
        found = self._transcripts.get((parsed.parent, parsed.id), [path])
        return sorted(
            found if path in found else [*found, path],
            key=lambda each: (_project(each) not in slugs, -_modified_ns(each), str(each)),
        )


def read_transcript(path: Path, catalog: RootCatalog) -> Iterator[Item]:
    """Read a session from its transcript. If it only repeats another one, its lines are counted."""
    counts = RecordCounts()
    parsed = parse_transcript_path(path) or TranscriptPath("", path.stem)
    transcripts = catalog.same_session(path, parsed)
    if transcripts[0] != path and _is_prefix_of(path, transcripts[0]):
        yield from _count_lines(path, counts)
    else:
        yield from _read_session(path, parsed, catalog=catalog, transcripts=transcripts, counts=counts)
    yield counts


def _read_session(
    path: Path,
    parsed: TranscriptPath,
    *,
    catalog: RootCatalog,
    transcripts: list[Path],
    counts: RecordCounts,
) -> Iterator[Item]:
    agent_id = parsed.id if parsed.parent is not None else None
    yield Opening(source=SOURCE, id=parsed.id, store="transcript", agent_id=agent_id, parent_id=parsed.parent)
    # The same id in two projects can be two conversations. Both are kept, and one is active.
    is_active = transcripts[0] == path
    id_prefix = parsed.id if is_active else f"{parsed.id}:{parsed.project.replace('.', '_')}"
    read = transcript_text.read if path.suffix == ".txt" else transcript_jsonl.read
    first_timestamp: datetime | None = None
    prompt: str | None = None
    mentioned_paths: dict[str, None] = {}
    has_messages = False
    try:
        for item in read(path, counts=counts):
            if isinstance(item, Message):
                has_messages = True
                first_timestamp = first_timestamp or item.timestamp
                if prompt is None and item.role == "user" and item.kind is None:
                    prompt = item.content
                if item.tool is not None and len(mentioned_paths) < _MAX_MENTIONED_PATHS:
                    mentioned_paths |= dict.fromkeys(_path_params(item.tool.params))
                yield replace(item, id=f"{id_prefix}:{item.id}", agent_id=agent_id, is_active=is_active)
            else:
                yield item
    except OSError as error:
        yield Problem(Origin(str(path), "file"), *read_fault(error))
    modified_at = timestamps.from_value(_modified_ns(path) / 1e9)
    agent = Agent(
        agent_id=parsed.id,
        parent_session_id=parsed.parent,
        parent_agent_id=parsed.parent_agent,
        prompt=prompt,
        started_at=first_timestamp,
    )
    metadata: dict[str, Any] = {"project": parsed.project, "window": f"cli:{parsed.project}"}
    reasons = [_LOSSY_REASON]
    if len(transcripts) > 1:
        metadata["ambiguous_transcripts"] = [str(each) for each in transcripts]
        if not all(_is_prefix_of(each, path) for each in transcripts[1:]):
            reasons.append(_AMBIGUOUS_REASON)
    found_workspace = workspace.project_workspace(parsed.project, catalog.folders(), mentioned_paths)
    yield Closing(
        workspace=found_workspace if is_active else None,
        created_at=first_timestamp or modified_at,
        created_at_source="stored" if first_timestamp else "file" if modified_at else None,
        updated_at=modified_at if is_active else None,
        completeness="lossy",
        reasons=tuple(reasons),
        visibility="listed" if has_messages else "draft",
        agents=(agent,) if agent_id is not None else (),
        metadata=metadata,
    )


def _is_prefix_of(path: Path, other_path: Path) -> bool:
    try:
        with path.open("rb") as file, other_path.open("rb") as other_file:
            while chunk := file.read(_CHUNK_BYTES):
                if other_file.read(len(chunk)) != chunk:
                    return False
    except OSError:
        return False
    return True


def _count_lines(path: Path, counts: RecordCounts) -> Iterator[Problem]:
    try:
        with path.open("rb") as file:
            line_count = sum(1 for _ in file)
    except OSError as error:
        yield Problem(Origin(str(path), "file"), *read_fault(error))
        return
    if line_count:
        counts.count("line of a copy", "ignored", line_count)


def _project(path: Path) -> str:
    parsed = parse_transcript_path(path)
    return parsed.project if parsed is not None else ""


def _path_params(params: dict[str, Any]) -> list[str]:
    return [value for key in _PATH_PARAMS if isinstance(value := params.get(key), str)]


def _modified_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0

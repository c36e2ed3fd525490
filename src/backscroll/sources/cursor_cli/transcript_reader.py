"""Transcripts: a lossy copy of a session as text, kept per project by the IDE's agent and the CLI."""

from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from backscroll.model import Agent, Closing, Item, Message, Opening, Origin, Problem, RecordCounts
from backscroll.readers import timestamps
from backscroll.sources.cursor_cli import transcript_jsonl, transcript_text, workspace
from backscroll.sources.cursor_cli.locations import SOURCE, find_transcripts
from backscroll.sources.cursor_cli.metadata import read_sidecar
from backscroll.sources.cursor_cli.transcript_paths import TranscriptPath, parse_transcript_path

__all__ = ["RootCatalog", "read_transcript"]

_LOSSY_REASON = "a transcript keeps no tool results, no thinking and no times but those of prompts"
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
    """What the other files below a root tell of a transcript, learned once."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @cached_property
    def _cwds(self) -> dict[str, str]:
        """The folders that sessions were held in, by their ids."""
        beside = (*self._root.glob("chats/*/*/meta.json"), *self._root.glob("acp-sessions/*/meta.json"))
        named = {path.parent.name: read_sidecar(path).text("cwd") for path in sorted(beside)}
        return {id: cwd for id, cwd in named.items() if cwd}

    @cached_property
    def _transcripts(self) -> dict[tuple[str | None, str], list[Path]]:
        return {key: list(map(Path, same)) for key, same in find_transcripts(self._root).items()}

    def folders(self) -> list[str]:
        """The folders that other sessions were held in."""
        return list(dict.fromkeys(self._cwds.values()))

    def rivals(self, path: Path, layout: TranscriptPath) -> list[Path]:
        """All transcripts of the same session, the one that counts first.

        That is the one whose project is named after the folder the session was
        held in; where this is not known, the one written last.
        """
        cwd = self._cwds.get(layout.parent or layout.id)
        names = workspace.project_slugs(cwd) if cwd is not None else set()
        same = self._transcripts.get((layout.parent, layout.id), [path])
        return sorted(
            same if path in same else [*same, path],
            key=lambda rival: (_project(rival) not in names, -_written_ns(rival), str(rival)),
        )


def read_transcript(path: Path, known: RootCatalog) -> Iterator[Item]:
    """A session as its transcript tells it."""
    tally = RecordCounts()
    layout = parse_transcript_path(path) or TranscriptPath("", path.stem)
    rivals = known.rivals(path, layout)
    if rivals[0] != path and _is_prefix_of(path, rivals[0]):
        # A copy, or what was copied before the session went on.
        yield from _count_lines(path, tally)
    else:
        yield from _read_session(path, layout, known, rivals, tally)
    yield tally


def _read_session(
    path: Path, layout: TranscriptPath, known: RootCatalog, rivals: list[Path], tally: RecordCounts
) -> Iterator[Item]:
    agent_id = layout.id if layout.parent is not None else None
    yield Opening(source=SOURCE, id=layout.id, store="transcript", agent_id=agent_id, parent_id=layout.parent)
    # The same id in two projects can be two conversations. One is shown, and none is lost.
    counts = rivals[0] == path
    names = layout.id if counts else f"{layout.id}:{layout.project.replace('.', '_')}"
    read = transcript_text.read if path.suffix == ".txt" else transcript_jsonl.read
    first: datetime | None = None
    prompt: str | None = None
    mentioned: dict[str, None] = {}
    is_begun = False
    try:
        for item in read(path, tally=tally):
            if isinstance(item, Message):
                is_begun = True
                first = first or item.timestamp
                if prompt is None and item.role == "user" and item.kind is None:
                    prompt = item.content
                if item.tool is not None and len(mentioned) < _MAX_MENTIONED_PATHS:
                    mentioned |= dict.fromkeys(_paths(item.tool.params))
                yield replace(item, id=f"{names}:{item.id}", agent_id=agent_id, is_active=counts)
            else:
                yield item
    except OSError as error:
        yield Problem(Origin(str(path), "file"), "unreadable-file", f"cannot be read: {error.strerror}")
    written = _written_at(path)
    agent = Agent(
        agent_id=layout.id,
        parent_session_id=layout.parent,
        parent_agent_id=layout.outer,
        prompt=prompt,
        started_at=first,
    )
    metadata: dict[str, Any] = {"project": layout.project, "window": f"cli:{layout.project}"}
    if len(rivals) > 1:
        metadata["ambiguous_transcripts"] = [str(rival) for rival in rivals]
    yield Closing(
        workspace=workspace.project_workspace(layout.project, known.folders(), mentioned),
        created_at=first or written,
        created_at_source="stored" if first else "file" if written else None,
        updated_at=written if counts else None,
        completeness="lossy",
        reasons=(_LOSSY_REASON,),
        visibility="listed" if is_begun else "draft",
        agents=(agent,) if agent_id is not None else (),
        metadata=metadata,
    )


def _is_prefix_of(path: Path, other: Path) -> bool:
    try:
        with path.open("rb") as one, other.open("rb") as two:
            while chunk := one.read(_CHUNK_BYTES):
                if two.read(len(chunk)) != chunk:
                    return False
    except OSError:
        return False
    return True


def _count_lines(path: Path, tally: RecordCounts) -> Iterator[Problem]:
    try:
        with path.open("rb") as file:
            number = sum(1 for _ in file)
    except OSError as error:
        yield Problem(Origin(str(path), "file"), "unreadable-file", f"cannot be read: {error.strerror}")
        return
    if number:
        tally.count("line of a copy", "ignored", number)


def _project(path: Path) -> str:
    layout = parse_transcript_path(path)
    return layout.project if layout is not None else ""


def _paths(params: dict[str, Any]) -> list[str]:
    return [value for key in _PATH_PARAMS if isinstance(value := params.get(key), str)]


def _written_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _written_at(path: Path) -> datetime | None:
    return timestamps.from_value(_written_ns(path) / 1e9)

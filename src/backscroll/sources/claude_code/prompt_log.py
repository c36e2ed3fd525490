"""Read ``history.jsonl``, the prompts that the user typed in all projects.

Claude Code deletes transcripts after 30 days, but keeps these lines. They form lossy sessions, which are used
only if there is no transcript.
"""

import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from backscroll.model.message import Attachment, Message, Origin
from backscroll.model.problem import Problem
from backscroll.model.store import Unit
from backscroll.model.stream import Checkpoint, Closing, ClosingUpdate, Item, Opening, RecordCounts
from backscroll.model.workspace import Workspace, normalize_path
from backscroll.readers import jsonl, timestamps
from backscroll.sources.claude_code.transcript.line_structs import as_text

_MAX_PAUSE = timedelta(hours=1)  # a longer pause between prompts without a session id starts a new session
MAX_CACHED_SESSIONS = 512


class Prompt(msgspec.Struct, rename="camel"):
    """Line of the log. Every field accepts any JSON value."""

    display: Any = None
    pasted_contents: Any = None
    timestamp: Any = None
    project: Any = None
    session_id: Any = None


class _Position(msgspec.Struct, gc=False):
    """Id and position of a prompt. Its text is read again when the session is emitted."""

    id: str
    line: int
    offset: int
    size: int
    index: int  # of the object on the line


class _Group(msgspec.Struct):
    """Prompts of one session."""

    id: str
    project: str | None
    positions: list[_Position]


class _Series(msgspec.Struct, array_like=True):
    """Consecutive prompts of one project without a session id."""

    id: str
    last_at: float  # seconds


class _ReaderState(msgspec.Struct, array_like=True):
    """State for the next reader, stored in the checkpoint.

    Projects and sessions are stored only as hashes: the state must not contain text of a forgotten session.
    """

    series_by_project: dict[bytes, _Series] = msgspec.field(default_factory=dict)
    # By session: the latest time in milliseconds, and the number of prompts at this time.
    latest: dict[bytes, tuple[int, int]] = msgspec.field(default_factory=dict)
    # By session and text: the number of prompts without a timestamp.
    untimed_counts: dict[bytes, int] = msgspec.field(default_factory=dict)

    def series_id(self, project: str | None, at: datetime | None) -> str:
        """Return the id of the session that a prompt without session id belongs to."""
        key = _digest(normalize_path(project) if project else "")
        seconds = at.timestamp() if at is not None else 0.0
        series = self.series_by_project.get(key)
        if series is None or seconds - series.last_at > _MAX_PAUSE.total_seconds():
            suffix = f"{int(seconds * 1000)}" if at is not None else f"0-{len(self.series_by_project)}"
            series = self.series_by_project[key] = _Series(f"prompts-{suffix}", seconds)
        series.last_at = max(series.last_at, seconds)
        return series.id

    def prompt_id(self, session: str, text: str, at: datetime | None) -> str:
        """Return the id of the next prompt in a session.

        It is derived from time and text. Line numbers are not stable, because the tool deletes old lines.
        """
        key, text_hash = _digest(session), _digest(text, size=6).hex()
        if at is None:
            untimed_key = _digest(f"{session} {text_hash}")
            count = self.untimed_counts[untimed_key] = self.untimed_counts.get(untimed_key, 0) + 1
            return _with_count(f"prompt-{text_hash}", count)
        milliseconds = int(at.timestamp() * 1000)
        latest, count = self.latest.pop(key, (-1, 0))
        if milliseconds < latest:  # the clock was set back
            self.latest[key] = (latest, count)
            return f"prompt-{milliseconds}-{text_hash}"
        count = count + 1 if milliseconds == latest else 1
        self.latest[key] = (milliseconds, count)
        if len(self.latest) > MAX_CACHED_SESSIONS:
            del self.latest[next(iter(self.latest))]
        return _with_count(f"prompt-{milliseconds}", count)


def _digest(text: str, *, size: int = 8) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest()


def _with_count(name: str, count: int) -> str:
    return name if count == 1 else f"{name}-{count}"


_decoder = msgspec.json.Decoder(Prompt)


def read(unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
    """Yield a session per session id, and one per series of prompts without session id."""
    path = Path(unit.path)
    counts = RecordCounts()
    state = msgspec.msgpack.decode(since.state, type=_ReaderState) if since is not None else _ReaderState()
    offset, line_number = (since.offset, since.line) if since is not None else (0, 0)
    groups: dict[str, _Group] = {}
    end = unit.size or sys.maxsize
    for line in jsonl.lines(path, _decoder, offset=offset, line=line_number, end=end):
        if line.is_final:
            offset, line_number = line.offset + line.size, line.number
        if line.is_blank:
            continue
        prompts = [
            (index, prompt) for index, prompt in enumerate(line.values) if as_text(prompt.display) is not None
        ]
        for index, prompt in prompts if line.is_final else ():
            group, id_ = _assign_group(prompt, groups, state)
            group.positions.append(_Position(id_, line.number, line.offset, line.size, index))
        if line.fault is not None:
            yield Problem(Origin(unit.path, f"line {line.number}"), *line.fault)
            counts.count("prompt", "problems")
        else:
            counts.count("prompt", "parsed" if prompts else "ignored")
    with path.open("rb") as file:
        for group in groups.values():
            yield Opening(source=unit.source, id=group.id, store="prompts")
            times: list[datetime] = []
            for position in group.positions:
                file.seek(position.offset)
                values = jsonl.salvage(file.read(position.size), _decoder).values
                if position.index >= len(values):
                    continue  # the file changed during reading
                message = _message(unit, values[position.index], position)
                if message.timestamp is not None:
                    times.append(message.timestamp)
                yield message
            yield _build_closing(group, times, is_whole=since is None)
    counts.checkpoint = Checkpoint(offset, line_number, msgspec.msgpack.encode(state))
    yield counts


def _assign_group(prompt: Prompt, groups: dict[str, _Group], state: _ReaderState) -> tuple[_Group, str]:
    """Return the session of a prompt and the id of the prompt in it."""
    project, at = as_text(prompt.project), timestamps.from_value(prompt.timestamp)
    id_ = as_text(prompt.session_id)
    if id_ is None:
        id_ = state.series_id(project, at)
    group = groups.setdefault(id_, _Group(id_, project, []))
    return group, state.prompt_id(id_, as_text(prompt.display) or "", at)


def _message(unit: Unit, prompt: Prompt, position: _Position) -> Message:
    at = timestamps.from_value(prompt.timestamp)
    return Message(
        id=position.id,
        role="user",
        content=_with_pasted(as_text(prompt.display) or "", prompt.pasted_contents),
        origin=Origin(unit.path, f"line {position.line}"),
        timestamp=at,
        timestamp_source="stored" if at is not None else None,
        attachments=tuple(_attachments(prompt.pasted_contents)),
        cwd=as_text(prompt.project),
    )


def _with_pasted(text: str, pasted: Any) -> str:
    """Return the prompt with placeholders replaced by the pasted text, if it was stored."""
    for item in pasted.values() if isinstance(pasted, dict) else ():
        content = item.get("content") if isinstance(item, dict) else None
        if not isinstance(content, str) or item.get("type") != "text":
            continue
        lines = content.count("\n") + 1
        for placeholder in (
            f"[Pasted text #{item.get('id')} +{lines} lines]",
            f"[Pasted text #{item.get('id')} +{lines - 1} lines]",
            f"[Pasted text #{item.get('id')}]",
        ):
            text = text.replace(placeholder, content)
    return text


def _attachments(pasted: Any) -> Iterator[Attachment]:
    for item in pasted.values() if isinstance(pasted, dict) else ():
        if isinstance(item, dict) and item.get("type") != "text":
            yield Attachment(
                as_text(item.get("type")) or "file",
                name=as_text(item.get("filename")),
                media_type=as_text(item.get("mediaType")),
            )


def _build_closing(group: _Group, times: list[datetime], *, is_whole: bool) -> Closing:
    workspace = Workspace(group.project, evidence="history.jsonl") if group.project else None
    kind = Closing if is_whole else ClosingUpdate
    return kind(
        workspace=workspace,
        created_at=min(times, default=None),
        created_at_source="stored" if times else None,
        updated_at=max(times, default=None),
        completeness="lossy",
        reasons=("only the typed prompts are available",),
    )

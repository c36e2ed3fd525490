"""``history.jsonl``: the prompts that the user typed, in all projects.

When a transcript is deleted after thirty days, these lines are all that is left of the session. They become
a lossy session, which is used only if there is no transcript.
"""

import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from backscroll.model import (
    Attachment,
    Checkpoint,
    Closing,
    ClosingUpdate,
    Item,
    Message,
    Opening,
    Origin,
    Problem,
    RecordCounts,
    Unit,
    Workspace,
    normalize_path,
)
from backscroll.readers import jsonl, timestamps
from backscroll.sources.claude_code.transcript.line_types import text

__all__ = ["read"]

MAX_PAUSE = timedelta(hours=1)  # a longer pause between prompts without a session id starts a new session
MAX_SESSIONS = 512  # sessions


class Prompt(msgspec.Struct, rename="camel"):
    display: Any = None
    pasted_contents: Any = None
    timestamp: Any = None
    project: Any = None
    session_id: Any = None


class _Position(msgspec.Struct, gc=False):
    """Position and id of a prompt. Its text stays in the file."""

    id: str
    line: int
    offset: int
    size: int
    number: int  # index of the object on the line


class _Group(msgspec.Struct):
    """The prompts of one session."""

    id: str
    project: str | None
    positions: list[_Position]


class _Series(msgspec.Struct, array_like=True):
    """Consecutive prompts of one project without a session id."""

    id: str
    last_at: float  # seconds


class _ReaderState(msgspec.Struct, array_like=True):
    """State for the next reader.

    Projects and sessions are stored as hashes only, so that nothing of a forgotten session is left here.
    """

    series_by_project: dict[bytes, _Series] = msgspec.field(default_factory=dict)
    latest: dict[bytes, tuple[int, int]] = msgspec.field(default_factory=dict)  # milliseconds, count
    timeless: dict[bytes, int] = msgspec.field(default_factory=dict)  # count of prompts without a timestamp

    def series_id(self, project: str | None, at: datetime | None) -> str:
        """Return the id of the session that a prompt without session id belongs to."""
        key = _digest(normalize_path(project) if project else "")
        seconds = at.timestamp() if at is not None else 0.0
        series = self.series_by_project.get(key)
        if series is None or seconds - series.last_at > MAX_PAUSE.total_seconds():
            own = f"{int(seconds * 1000)}" if at is not None else f"0-{len(self.series_by_project)}"
            series = self.series_by_project[key] = _Series(f"prompts-{own}", seconds)
        series.last_at = max(series.last_at, seconds)
        return series.id

    def name(self, session: str, words: str, at: datetime | None) -> str:
        """Return the id of a prompt within its session.

        Old lines of the log are deleted, so neither line numbers nor positions are stable.
        """
        key, own = _digest(session), _digest(words, size=6).hex()
        if at is None:
            both = _digest(f"{session} {own}")
            count = self.timeless[both] = self.timeless.get(both, 0) + 1
            return _counted(f"prompt-{own}", count)
        milliseconds = int(at.timestamp() * 1000)
        latest, count = self.latest.pop(key, (-1, 0))
        if milliseconds < latest:  # the clock was set back
            self.latest[key] = (latest, count)
            return f"prompt-{milliseconds}-{own}"
        count = count + 1 if milliseconds == latest else 1
        self.latest[key] = (milliseconds, count)
        if len(self.latest) > MAX_SESSIONS:
            del self.latest[next(iter(self.latest))]
        return _counted(f"prompt-{milliseconds}", count)


def _digest(words: str, *, size: int = 8) -> bytes:
    return blake2b(words.encode("utf-8", "surrogatepass"), digest_size=size).digest()


def _counted(name: str, count: int) -> str:
    return name if count == 1 else f"{name}-{count}"


_decoder = msgspec.json.Decoder(Prompt)


def read(unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
    """Yield a session per session id, and one per series of prompts without session id."""
    path = Path(unit.path)
    tally = RecordCounts()
    state = msgspec.msgpack.decode(since.state, type=_ReaderState) if since is not None else _ReaderState()
    offset, number = (since.offset, since.line) if since is not None else (0, 0)
    groups: dict[str, _Group] = {}
    end = unit.size or sys.maxsize
    for line in jsonl.lines(path, _decoder, offset=offset, line=number, end=end):
        if line.is_final:
            offset, number = line.offset + line.size, line.number
        if line.is_blank:
            continue
        prompts = [
            (index, prompt) for index, prompt in enumerate(line.values) if text(prompt.display) is not None
        ]
        for index, prompt in prompts if line.is_final else ():
            group, id_ = _group_of(prompt, groups, state)
            group.positions.append(_Position(id_, line.number, line.offset, line.size, index))
        if line.fault is not None:
            yield Problem(Origin(unit.path, f"line {line.number}"), *line.fault)
            tally.count("prompt", "problems")
        else:
            tally.count("prompt", "parsed" if prompts else "ignored")
    with path.open("rb") as file:
        for group in groups.values():
            yield Opening(source=unit.source, id=group.id, store="prompts")
            timestamps_: list[datetime] = []
            for place in group.positions:
                file.seek(place.offset)
                found = jsonl.salvage(file.read(place.size), _decoder).values
                if place.number >= len(found):
                    continue  # the file changed during reading
                message = _message(unit, found[place.number], place)
                if message.timestamp is not None:
                    timestamps_.append(message.timestamp)
                yield message
            yield _closing(group, timestamps_, is_whole=since is None)
    tally.checkpoint = Checkpoint(offset, number, msgspec.msgpack.encode(state))
    yield tally


def _group_of(prompt: Prompt, groups: dict[str, _Group], state: _ReaderState) -> tuple[_Group, str]:
    """Return the session of a prompt and the id of the prompt in it."""
    project, at = text(prompt.project), timestamps.from_value(prompt.timestamp)
    id_ = text(prompt.session_id)
    if id_ is None:
        id_ = state.series_id(project, at)
    group = groups.setdefault(id_, _Group(id_, project, []))
    return group, state.name(id_, text(prompt.display) or "", at)


def _message(unit: Unit, prompt: Prompt, place: _Position) -> Message:
    at = timestamps.from_value(prompt.timestamp)
    return Message(
        id=place.id,
        role="user",
        content=_with_pasted(text(prompt.display) or "", prompt.pasted_contents),
        origin=Origin(unit.path, f"line {place.line}"),
        timestamp=at,
        timestamp_source="stored" if at is not None else None,
        attachments=tuple(_attachments(prompt.pasted_contents)),
        cwd=text(prompt.project),
    )


def _with_pasted(words: str, pasted: Any) -> str:
    """Return the prompt with placeholders replaced by the pasted text, if it was stored."""
    for item in pasted.values() if isinstance(pasted, dict) else ():
        content = item.get("content") if isinstance(item, dict) else None
        if not isinstance(content, str) or item.get("type") != "text":
            continue
        lines = content.count("\n") + 1
        for stand_in in (
            f"[Pasted text #{item.get('id')} +{lines} lines]",
            f"[Pasted text #{item.get('id')} +{lines - 1} lines]",
            f"[Pasted text #{item.get('id')}]",
        ):
            words = words.replace(stand_in, content)
    return words


def _attachments(pasted: Any) -> Iterator[Attachment]:
    for item in pasted.values() if isinstance(pasted, dict) else ():
        if isinstance(item, dict) and item.get("type") != "text":
            yield Attachment(
                text(item.get("type")) or "file",
                name=text(item.get("filename")),
                media_type=text(item.get("mediaType")),
            )


def _closing(group: _Group, timestamps_: list[datetime], *, is_whole: bool) -> Closing:
    workspace = Workspace(group.project, evidence="history.jsonl") if group.project else None
    kind = Closing if is_whole else ClosingUpdate
    return kind(
        workspace=workspace,
        created_at=min(timestamps_, default=None),
        created_at_source="stored" if timestamps_ else None,
        updated_at=max(timestamps_, default=None),
        completeness="lossy",
        reasons=("only the typed prompts were state",),
    )

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

_PAUSE = timedelta(hours=1)  # a longer pause between prompts without a session id starts a new session
_MOST = 512  # sessions


class Prompt(msgspec.Struct, rename="camel"):
    display: Any = None
    pasted_contents: Any = None
    timestamp: Any = None
    project: Any = None
    session_id: Any = None


class _Place(msgspec.Struct, gc=False):
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
    places: list[_Place]


class _Sitting(msgspec.Struct, array_like=True):
    """Consecutive prompts of one project without a session id."""

    id: str
    last_at: float  # seconds


class _Remembered(msgspec.Struct, array_like=True):
    """State for the next reader.

    Projects and sessions are stored as hashes only, so that nothing of a forgotten session is left here.
    """

    sittings: dict[bytes, _Sitting] = msgspec.field(default_factory=dict)
    latest: dict[bytes, tuple[int, int]] = msgspec.field(default_factory=dict)  # milliseconds, count
    timeless: dict[bytes, int] = msgspec.field(default_factory=dict)  # count of prompts without a timestamp

    def sitting(self, project: str | None, at: datetime | None) -> str:
        """Return the id of the session that a prompt without session id belongs to."""
        key = _digest(normalize_path(project) if project else "")
        seconds = at.timestamp() if at is not None else 0.0
        sitting = self.sittings.get(key)
        if sitting is None or seconds - sitting.last_at > _PAUSE.total_seconds():
            own = f"{int(seconds * 1000)}" if at is not None else f"0-{len(self.sittings)}"
            sitting = self.sittings[key] = _Sitting(f"prompts-{own}", seconds)
        sitting.last_at = max(sitting.last_at, seconds)
        return sitting.id

    def name(self, session: str, words: str, at: datetime | None) -> str:
        """Return the id of a prompt within its session.

        Old lines of the log are deleted, so neither line numbers nor positions are stable.
        """
        key, own = _digest(session), _digest(words, size=6).hex()
        if at is None:
            both = _digest(f"{session} {own}")
            count = self.timeless[both] = self.timeless.get(both, 0) + 1
            return _counted(f"prompt-{own}", count)
        moment = int(at.timestamp() * 1000)
        latest, count = self.latest.pop(key, (-1, 0))
        if moment < latest:  # the clock was set back
            self.latest[key] = (latest, count)
            return f"prompt-{moment}-{own}"
        count = count + 1 if moment == latest else 1
        self.latest[key] = (moment, count)
        if len(self.latest) > _MOST:
            del self.latest[next(iter(self.latest))]
        return _counted(f"prompt-{moment}", count)


def _digest(words: str, *, size: int = 8) -> bytes:
    return blake2b(words.encode("utf-8", "surrogatepass"), digest_size=size).digest()


def _counted(name: str, count: int) -> str:
    return name if count == 1 else f"{name}-{count}"


_decoder = msgspec.json.Decoder(Prompt)


def read(unit: Unit, since: Checkpoint | None = None) -> Iterator[Item]:
    """Yield a session per session id, and one per series of prompts without session id."""
    path = Path(unit.path)
    tally = RecordCounts()
    kept = msgspec.msgpack.decode(since.state, type=_Remembered) if since is not None else _Remembered()
    offset, number = (since.offset, since.line) if since is not None else (0, 0)
    groups: dict[str, _Group] = {}
    end = unit.size or sys.maxsize
    for line in jsonl.lines(path, _decoder, offset=offset, line=number, end=end):
        if line.is_final:
            offset, number = line.offset + line.size, line.number
        if line.is_blank:
            continue
        prompts = [(at, one) for at, one in enumerate(line.values) if text(one.display) is not None]
        for at, prompt in prompts if line.is_final else ():
            group, id_ = _group_of(prompt, groups, kept)
            group.places.append(_Place(id_, line.number, line.offset, line.size, at))
        if line.fault is not None:
            yield Problem(Origin(unit.path, f"line {line.number}"), *line.fault)
            tally.count("prompt", "problems")
        else:
            tally.count("prompt", "parsed" if prompts else "ignored")
    with path.open("rb") as file:
        for group in groups.values():
            yield Opening(source=unit.source, id=group.id, store="prompts")
            moments: list[datetime] = []
            for place in group.places:
                file.seek(place.offset)
                found = jsonl.salvage(file.read(place.size), _decoder).values
                if place.number >= len(found):
                    continue  # the file changed during reading
                message = _message(unit, found[place.number], place)
                if message.timestamp is not None:
                    moments.append(message.timestamp)
                yield message
            yield _closing(group, moments, is_whole=since is None)
    tally.checkpoint = Checkpoint(offset, number, msgspec.msgpack.encode(kept))
    yield tally


def _group_of(prompt: Prompt, groups: dict[str, _Group], kept: _Remembered) -> tuple[_Group, str]:
    """Return the session of a prompt and the id of the prompt in it."""
    project, at = text(prompt.project), timestamps.from_value(prompt.timestamp)
    id_ = text(prompt.session_id)
    if id_ is None:
        id_ = kept.sitting(project, at)
    group = groups.setdefault(id_, _Group(id_, project, []))
    return group, kept.name(id_, text(prompt.display) or "", at)


def _message(unit: Unit, prompt: Prompt, place: _Place) -> Message:
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


def _closing(group: _Group, moments: list[datetime], *, is_whole: bool) -> Closing:
    workspace = Workspace(group.project, evidence="history.jsonl") if group.project else None
    kind = Closing if is_whole else ClosingUpdate
    return kind(
        workspace=workspace,
        created_at=min(moments, default=None),
        created_at_source="stored" if moments else None,
        updated_at=max(moments, default=None),
        completeness="lossy",
        reasons=("only the typed prompts were kept",),
    )

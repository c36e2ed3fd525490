"""``history.jsonl``: the prompts a person typed, in every project.

When a transcript is deleted after thirty days, these lines are all that is left
of it: the user's own words. They are told as a session that is known to be
lossy; whoever also has the transcript prefers that.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from backscroll.model import (
    Attachment,
    Closing,
    Item,
    Message,
    Opening,
    Origin,
    Problem,
    Tally,
    Unit,
    Workspace,
    normalised,
)
from backscroll.readers import jsonl, times
from backscroll.sources.claude_code.lines import text

__all__ = ["read"]

_PAUSE = timedelta(hours=1)  # prompts of an unnamed session further apart belong to two


class Prompt(msgspec.Struct, rename="camel"):
    display: Any = None
    pasted_contents: Any = None
    timestamp: Any = None
    project: Any = None
    session_id: Any = None


class _Group(msgspec.Struct):
    """Where the prompts of one session lie; their words stay in the file."""

    id: str
    project: str | None
    lines: list[tuple[int, int, int, int]]  # number, offset, size, which of the line's objects
    last_at: float = 0.0


_decoder = msgspec.json.Decoder(Prompt)


def read(unit: Unit) -> Iterator[Item]:
    """A session for every id that prompts were typed in, and one per sitting where no id was kept."""
    path = Path(unit.path)
    tally = Tally()
    groups: dict[str, _Group] = {}
    sittings: dict[str, _Group] = {}
    for line in jsonl.lines(path, _decoder):
        if line.is_blank:
            continue
        prompts = [(at, prompt) for at, prompt in enumerate(line.values) if text(prompt.display) is not None]
        for at, prompt in prompts:
            group = _group_of(prompt, groups, sittings)
            group.lines.append((line.number, line.offset, line.size, at))
        if line.fault is not None:
            yield Problem(Origin(unit.path, f"line {line.number}"), line.fault)
            tally.count("prompt", "problems")
        else:
            tally.count("prompt", "understood" if prompts else "silent")
    with path.open("rb") as file:
        for group in groups.values():
            yield Opening(source=unit.source, id=group.id, store="prompts")
            messages: list[datetime] = []
            same: Counter[str] = Counter()
            for number, offset, size, at in group.lines:
                file.seek(offset)
                found = jsonl.salvage(file.read(size), _decoder).values
                if at >= len(found):
                    continue  # the file changed while it was read
                message = _message(unit, found[at], number)
                same[message.id] += 1
                if same[message.id] > 1:
                    message = replace(message, id=f"{message.id}-{same[message.id]}")
                if message.timestamp is not None:
                    messages.append(message.timestamp)
                yield message
            yield _closing(group, messages)
    yield tally


def _group_of(prompt: Prompt, groups: dict[str, _Group], sittings: dict[str, _Group]) -> _Group:
    project = text(prompt.project)
    session_id = text(prompt.session_id)
    if session_id is not None:
        return groups.setdefault(session_id, _Group(session_id, project, []))
    at = times.from_value(prompt.timestamp)
    seconds = at.timestamp() if at is not None else 0.0
    key = normalised(project) if project else ""
    sitting = sittings.get(key)
    if sitting is None or seconds - sitting.last_at > _PAUSE.total_seconds():
        id_ = (
            f"prompts-{int(seconds * 1000)}-{len(groups)}" if at is None else f"prompts-{int(seconds * 1000)}"
        )
        sitting = groups.setdefault(f"{id_} {key}", _Group(id_, project, []))
        sittings[key] = sitting
    sitting.last_at = max(sitting.last_at, seconds)
    return sitting


def _message(unit: Unit, prompt: Prompt, number: int) -> Message:
    at = times.from_value(prompt.timestamp)
    words = text(prompt.display) or ""
    # The log is pruned from its beginning: neither a line's number nor its place in a session stays the same.
    own = int(at.timestamp() * 1000) if at is not None else blake2b(words.encode(), digest_size=6).hexdigest()
    return Message(
        id=f"prompt-{own}",
        role="user",
        content=_with_pasted(words, prompt.pasted_contents),
        origin=Origin(unit.path, f"line {number}"),
        timestamp=at,
        timestamp_source="stored" if at is not None else None,
        attachments=tuple(_attachments(prompt.pasted_contents)),
        cwd=text(prompt.project),
    )


def _with_pasted(words: str, pasted: Any) -> str:
    """The prompt with pasted text in the place of its stand-in, where the text was kept."""
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


def _closing(group: _Group, moments: list[datetime]) -> Closing:
    workspace = Workspace(group.project, evidence="history.jsonl") if group.project else None
    return Closing(
        workspace=workspace,
        created_at=min(moments, default=None),
        created_at_source="stored" if moments else None,
        updated_at=max(moments, default=None),
        completeness="lossy",
        reasons=("only the typed prompts were kept",),
    )

"""Prompt logs of a workspace. They are used if nothing else of a session remains."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Any, NamedTuple

from msgspec import Raw

from backscroll.model.message import Message, Origin
from backscroll.model.stream import Closing, Item, Opening
from backscroll.sources.cursor import locations
from backscroll.sources.cursor.database.decode import (
    UndecodableError,
    UnitReport,
    as_list,
    as_map,
    as_text,
    decode,
    latest_plausible,
    parse_time,
)
from backscroll.sources.cursor.database.session_lists import PROMPT_LOG_KEYS, read_item
from backscroll.sources.cursor.session.workspace import from_storage
from backscroll.sources.cursor.user_data import UserData

_PROMPTS, _GENERATIONS = PROMPT_LOG_KEYS


class _Prompt(NamedTuple):
    text: str
    at: datetime | None
    key: str  # of the log
    id: str


def log_session_id(storage_id: str) -> str:
    """Return the id of the session that consists of a workspace's prompt log."""
    return f"prompts-{storage_id}"


def read(user_data: UserData, path: Path, storage_id: str) -> Iterator[Item]:
    """Read the prompt log of a workspace without conversations as a session."""
    report = UnitReport(str(path))
    latest = latest_plausible()
    log = list(_read_log(user_data, path, latest))
    yield Opening(source=locations.SOURCE, id=log_session_id(storage_id), store="prompts")
    times = []
    for message in _messages(log, str(path)):
        if message.timestamp is not None:
            times.append(message.timestamp)
        yield message
    yield Closing(
        workspace=from_storage(user_data, storage_id, "workspace storage"),
        created_at=min(times, default=None),
        created_at_source="timing" if times else None,
        updated_at=max(times, default=None),
        completeness="lossy",
        reasons=("only the prompt log remains",),
        visibility="listed" if log else "draft",
        metadata={"workspace_id": storage_id},
    )
    yield report.counts


def prompts_between(
    user_data: UserData, path: Path, started_at: datetime | None, ended_at: datetime | None, latest: datetime
) -> list[Message]:
    """Return the prompts typed in a workspace between the start and the end of a session."""
    if started_at is None or ended_at is None:
        return []
    log = [
        each for each in _read_log(user_data, path, latest) if each.at and started_at <= each.at <= ended_at
    ]
    return list(_messages(log, str(path)))


def _messages(log: list[_Prompt], path: str) -> Iterator[Message]:
    for prompt in log:
        yield Message(
            id=prompt.id,
            role="user",
            content=prompt.text,
            origin=Origin(path, prompt.key),
            kind="prompt log",
            timestamp=prompt.at,
            timestamp_source="timing" if prompt.at else None,
        )


def _read_log(user_data: UserData, path: Path, latest: datetime) -> Iterator[_Prompt]:
    """Return the prompts in log order, with the time of the generation that has the same text."""
    prompts, generations = user_data.database(path).read(_read_values)
    generations_by_text: dict[str, list[_Prompt]] = {}
    for index, record in enumerate(map(as_map, generations)):
        text = as_text(record.get("textDescription")).strip()
        if not text:
            continue
        at = parse_time(record.get("unixMs"), latest)
        id = as_text(record.get("generationUUID")) or f"generation-{index}"
        generations_by_text.setdefault(text, []).append(_Prompt(text, at, _GENERATIONS, id))
    for index, record in enumerate(map(as_map, prompts)):
        text = as_text(record.get("text")).strip()
        if not text:
            continue
        matching = generations_by_text.get(text)
        if matching:
            yield matching.pop(0)._replace(key=_PROMPTS)
        else:
            yield _Prompt(text, None, _PROMPTS, f"prompt-{index}")
    for unmatched in generations_by_text.values():
        yield from unmatched


def _read_values(connection: Connection) -> tuple[list[Any], list[Any]]:
    return _decode_list(read_item(connection, _PROMPTS)), _decode_list(read_item(connection, _GENERATIONS))


def _decode_list(value: bytes | None) -> list[Any]:
    try:
        return as_list(decode(Raw(value), object)) if value else []
    except UndecodableError:
        return []

"""The prompt logs of a workspace: what a user typed, when nothing else of a session is left."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import Any, NamedTuple

from msgspec import Raw

from backscroll.model import Closing, Item, Message, Opening, Origin
from backscroll.sources.cursor.database.decode import UndecodableError, as_list, as_map, as_text, decode
from backscroll.sources.cursor.database.session_lists import item
from backscroll.sources.cursor.session import timestamps
from backscroll.sources.cursor.session.unit_report import UnitReport
from backscroll.sources.cursor.user_data import UserData
from backscroll.sources.cursor.workspace import from_storage

__all__ = ["Prompt", "log_session_id", "prompts_between", "read"]

_PROMPTS, _GENERATIONS = "aiService.prompts", "aiService.generations"


class Prompt(NamedTuple):
    text: str
    at: datetime | None
    place: str
    name: str


def log_session_id(storage: str) -> str:
    """The id of the session that a workspace's log stands for."""
    return f"prompts-{storage}"


def read(user_data: UserData, path: Path, storage: str) -> Iterator[Item]:
    """The whole log of a workspace of which no conversation is left."""
    report = UnitReport(str(path))
    latest = timestamps.latest_plausible()
    log = list(_log(user_data, path, latest))
    yield Opening(source="cursor", id=log_session_id(storage), store="prompts")
    times = []
    for message in _messages(log, str(path)):
        if message.timestamp is not None:
            times.append(message.timestamp)
        yield message
    yield Closing(
        workspace=from_storage(user_data, storage, "workspace storage"),
        created_at=min(times, default=None),
        created_at_source="timing" if times else None,
        updated_at=max(times, default=None),
        completeness="lossy",
        reasons=("only the log of prompts is left",),
        visibility="listed" if log else "draft",
        metadata={"workspace_id": storage},
    )
    yield report.counts


def prompts_between(
    user_data: UserData, path: Path, started_at: datetime | None, ended_at: datetime | None, latest: datetime
) -> list[Message]:
    """What was typed in a workspace while a session lasted."""
    if started_at is None or ended_at is None:
        return []
    log = [each for each in _log(user_data, path, latest) if each.at and started_at <= each.at <= ended_at]
    return list(_messages(log, str(path)))


def _messages(log: list[Prompt], path: str) -> Iterator[Message]:
    for prompt in log:
        yield Message(
            id=prompt.name,
            role="user",
            content=prompt.text,
            origin=Origin(path, prompt.place),
            kind="prompt log",
            timestamp=prompt.at,
            timestamp_source="timing" if prompt.at else None,
        )


def _log(user_data: UserData, path: Path, latest: datetime) -> Iterator[Prompt]:
    """Prompts in the order of the log, with the time of the generation that repeats their words."""
    prompts, generations = user_data.database(path).read(_values)
    times: dict[str, list[Prompt]] = {}
    for number, record in enumerate(map(as_map, generations)):
        text = as_text(record.get("textDescription")).strip()
        if not text:
            continue
        at = timestamps.parse_time(record.get("unixMs"), latest)
        name = as_text(record.get("generationUUID")) or f"generation-{number}"
        times.setdefault(text, []).append(Prompt(text, at, _GENERATIONS, name))
    for number, record in enumerate(map(as_map, prompts)):
        text = as_text(record.get("text")).strip()
        if not text:
            continue
        same = times.get(text)
        if same:
            yield same.pop(0)._replace(place=_PROMPTS)
        else:
            yield Prompt(text, None, _PROMPTS, f"prompt-{number}")
    for left in times.values():
        yield from left


def _values(connection: Connection) -> tuple[list[Any], list[Any]]:
    return _list(item(connection, _PROMPTS)), _list(item(connection, _GENERATIONS))


def _list(value: bytes | None) -> list[Any]:
    try:
        return as_list(decode(Raw(value), object)) if value else []
    except UndecodableError:
        return []

"""A source in one file: a tool that writes one JSONL file per session below ``~/.toy``.

A line is a message: ``{"role": "user", "text": "Hello", "at": "2026-10-03T07:00:00Z", "folder": "/a"}``.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.json import Decoder

from backscroll.config import Machine
from backscroll.model.message import Message, Origin
from backscroll.model.problem import Problem
from backscroll.model.store import StoreKind, Unit
from backscroll.model.stream import Checkpoint, Closing, Item, Opening, RecordCounts
from backscroll.model.workspace import Workspace
from backscroll.readers import jsonl, timestamps
from backscroll.sources.session_files import FilePattern, JsonFields, SessionFiles


class Line(Struct):
    role: Literal["user", "assistant"]
    text: str
    at: str | None = None
    folder: str | None = None


class Toy(SessionFiles):
    """The history of the tool Toy."""

    name = "toy"
    platform = "toy"
    stores = (StoreKind("notebook"),)
    color = ("#7a4800", "#e6b673")
    files = (FilePattern("{id}.jsonl", sides=("{id}-pictures",)),)
    json_fields = JsonFields(folders={"": ("folder",)}, ids={})

    def roots(self, machine: Machine) -> list[Path]:
        return [machine.home / ".toy"]

    def parse(self, unit: Unit, since: Checkpoint | None) -> Iterator[Item]:
        path, counts = Path(unit.path), RecordCounts()
        messages: list[Message] = []
        yield Opening(source=self.name, id=path.stem, store="notebook")
        for line in jsonl.lines(path, Decoder(Line), end=unit.size):
            origin = Origin(unit.path, f"line {line.number}")
            for record in line.values:
                at = timestamps.from_value(record.at)
                source: Literal["stored"] | None = "stored" if at else None
                message = Message(
                    f"line-{line.number}",
                    record.role,
                    record.text,
                    origin,
                    timestamp=at,
                    timestamp_source=source,
                    cwd=record.folder,
                )
                messages.append(message)
                yield message
            if line.fault is not None:
                yield Problem(origin, *line.fault)
            counts.count("message", "problems" if line.fault is not None else "parsed")
        times = [message.timestamp for message in messages if message.timestamp is not None]
        folders = [message.cwd for message in messages if message.cwd is not None]
        yield Closing(
            title=messages[0].content if messages else None,
            workspace=Workspace(folders[0]) if folders else None,
            created_at=min(times, default=None),
            updated_at=max(times, default=None),
        )
        yield counts

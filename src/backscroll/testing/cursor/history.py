"""A global database as large and as mixed as the ones people have, written fast."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from backscroll.testing import database, protobuf
from backscroll.testing.cursor import session_lists
from backscroll.testing.cursor.bubbles import bubble, bubble_header, dumps
from backscroll.testing.cursor.graph import Graph
from backscroll.testing.cursor.messages import Message, Tool, assistant, thinking, user
from backscroll.testing.cursor.rows import composer_data
from backscroll.testing.cursor.tool_calls import NAMES, example
from backscroll.testing.cursor.user_data import STARTS, new_id
from backscroll.testing.cursor.workspaces import Place, local
from backscroll.testing.database import Cell
from backscroll.testing.lorem import LoremText

__all__ = ["write_history"]

# For each thousand bubbles, as databases of 37,000 bubbles have them.
_CHECKPOINTS = 324
_CONTEXTS = 81
_DIFFS = 108
_BLOBS = 540

# Which part of the database's bytes goes where.
_SHARES = {"bubble": 0.36, "blob": 0.27, "checkpoint": 0.2, "data": 0.12, "context": 0.03, "diff": 0.02}
# SQLite's pages and the index of keys take the rest.
_TEXT_PER_MEGABYTE = 890_000
_FOLDERS = ("shop", "docs site", "billing", "infra", "compiler", "game")

Row = tuple[str, Cell]


@dataclass
class _Session:
    id: str
    place: Place
    title: str
    at: int
    left: int  # bubbles still to come
    headers: list[dict[str, Any]] = field(default_factory=list)
    blobs: list[bytes] = field(default_factory=list)


def write_history(
    root: Path, *, sessions: int = 75, bubbles: int = 37_000, megabytes: int = 500, seed: int = 0
) -> Path:
    """Write a whole user-data folder of this size, the rows of its sessions interleaved. Returns the root.

    ``megabytes`` is what the texts are stretched to; the records themselves
    need about one megabyte for every five hundred bubbles.
    """
    if bubbles < sessions:
        raise ValueError("every session needs a message")
    rng = Random(f"history/{seed}")
    lorem = LoremText(rng)
    places = [local(f"/home/dev/{name}", inode=2000 + n) for n, name in enumerate(_FOLDERS)]
    made = list(_sessions(rng, lorem, places, sessions, bubbles))
    path = root / "User/globalStorage/state.vscdb"
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = session_lists.header_columns(5, is_upgraded=False)
    entries = [session_lists.Entry(s.id, 5, s.place, s.title, s.at, s.at + s.left * 14_000) for s in made]
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("pragma journal_mode = off")
        db.execute("pragma synchronous = off")
        db.execute("pragma cache_size = -200000")
        db.executescript(session_lists.KEY_VALUE_SCHEMA + session_lists.header_schema(columns))
        db.execute("begin")
        rows = _rows(rng, lorem, made, bubbles, megabytes * _TEXT_PER_MEGABYTE)
        db.executemany("insert into cursorDiskKV (key, value) values (?, ?)", rows)
        table = [session_lists.header_row(entry, 5) for entry in entries]
        db.executemany(
            *database.insert_statement(
                "composerHeaders", columns, [[row[c] for c in columns] for row in table]
            )
        )
        db.executemany("insert into ItemTable (key, value) values (?, ?)", session_lists.gates(STARTS[5]))
        db.execute("commit")
        db.execute("pragma journal_mode = wal")
    database.set_mtime(path, max(entry.until for entry in entries))
    for place in places:
        _write_workspace(root, place, [entry for entry in entries if entry.place == place])
    return root


def _sessions(
    rng: Random, lorem: LoremText, places: Sequence[Place], count: int, bubbles: int
) -> Iterator[_Session]:
    """Few long sessions and many short ones: the longest has a good part of all messages."""
    weights = [min(rng.paretovariate(1.1) - 0.95, 5) for _ in range(count)]
    whole = sum(weights)
    left = bubbles
    for place, weight in enumerate(weights):
        behind = count - 1 - place
        share = left - behind
        if behind:
            share = max(1, min(share, round(bubbles * weight / whole)))
        left -= share
        start = STARTS[5] - (count - place) * 86_400_000 + rng.randrange(40_000_000)
        yield _Session(new_id(rng), rng.choice(places), lorem.title(), start, share)


def _rows(
    rng: Random, lorem: LoremText, sessions: Sequence[_Session], bubbles: int, size: int
) -> Iterator[Row]:
    """Bubbles of all sessions in the order they would have been written, with what lies between them."""
    size_of = {
        "bubble": size * _SHARES["bubble"] / bubbles - 1500,
        "blob": size * _SHARES["blob"] / (bubbles * _BLOBS / 1000),
        "checkpoint": size * _SHARES["checkpoint"] / (bubbles * _CHECKPOINTS / 1000),
        "context": size * _SHARES["context"] / (bubbles * _CONTEXTS / 1000),
        "diff": size * _SHARES["diff"] / (bubbles * _DIFFS / 1000),
        "data": size * _SHARES["data"] / len(sessions),
    }
    open_now = [session for session in sessions if session.left]
    clock = {session.id: session.at for session in sessions}
    while open_now:
        # Several windows are open at a time, so neighbours in the file belong to different sessions.
        session = open_now[rng.randrange(min(8, len(open_now)))]
        at = clock[session.id] = clock[session.id] + rng.randrange(2_000, 26_000)
        message = _message(rng, lorem, len(session.headers), session.place.path, size_of["bubble"])
        id = new_id(rng)
        record = bubble(message, id=id, at=at, generation=5)
        session.headers.append(bubble_header(message, id=id, at=at, generation=5))
        yield f"bubbleId:{session.id}:{id}", dumps(record)
        yield from _between(rng, lorem, session, id, size_of)
        session.left -= 1
        if not session.left:
            open_now.remove(session)
            yield f"composerData:{session.id}", _data(rng, lorem, session, at, size_of["data"])


def _message(rng: Random, lorem: LoremText, position: int, folder: str, size: float) -> Message:
    if position == 0 or rng.random() < 0.06:
        return user(lorem.text(rng.randrange(40, 600)))
    kind = rng.random()
    if kind < 0.42:
        # Of a tool call both the arguments and the result are long, and few results are most of the bytes.
        length = int(min(size * 2.2 * rng.paretovariate(1.6) / 2.67, 400_000))
        call = example(rng.choice(NAMES), folder=folder, word=lorem.word())
        result = {"output": lorem.text(max(length, 20)), "exitCode": 0}
        call_id = f"call_{rng.getrandbits(64):016x}"
        told = Tool(call.name, call.params, result, call_id=call_id, has_raw_args=call.has_raw_args)
        return Message("assistant", tool=told)
    if kind < 0.7:
        return thinking(lorem.text(rng.randrange(60, 900)))
    return assistant(lorem.text(rng.randrange(80, 2400)))


def _between(
    rng: Random, lorem: LoremText, session: _Session, id: str, size_of: dict[str, float]
) -> Iterator[Row]:
    """The rows that are no messages, as often as real databases have them."""
    if rng.randrange(1000) < _CHECKPOINTS:
        text = lorem.text(int(size_of["checkpoint"]))
        files = [{"uri": {"fsPath": f"{session.place.path}/cart.py"}, "originalModelDiffWrtV0": [text]}]
        yield f"checkpointId:{session.id}:{new_id(rng)}", dumps({"files": files, "nonExistentFiles": []})
    if rng.randrange(1000) < _CONTEXTS:
        layout = dumps({"rootPath": session.place.path, "content": lorem.text(int(size_of["context"]))})
        yield f"messageRequestContext:{session.id}:{id}", dumps({"projectLayouts": [layout], "todos": []})
    if rng.randrange(1000) < _DIFFS:
        line = {"original": {"startLineNumber": 1, "endLineNumberExclusive": 2}}
        line_text = {"modified": lorem.text(int(size_of["diff"])).split("\n")}
        changes = {"newModelDiffWrtV0": [line | line_text], "originalModelDiffWrtV0": []}
        yield f"codeBlockDiff:{session.id}:{new_id(rng)}", dumps(changes)
    if rng.randrange(1000) < _BLOBS:
        told = {
            "role": "assistant",
            "id": "1",
            "content": [{"type": "text", "text": lorem.text(int(size_of["blob"]))}],
        }
        blob = dumps(told).encode()
        session.blobs.append(sha256(blob).digest())
        yield f"agentKv:blob:{session.blobs[-1].hex()}", blob


def _data(rng: Random, lorem: LoremText, session: _Session, until: int, size: float) -> str:
    record = composer_data(
        session.id,
        name=session.title,
        at=session.at,
        until=until,
        generation=5,
        version=18,
        place=session.place,
        headers=session.headers,
        state=Graph(root=protobuf.encode_message(*((1, id) for id in session.blobs))).state,
    )
    # Files as they were before the first edit: what makes these records large.
    embedded = int(size * min(rng.paretovariate(1.3), 8) / 2.8)
    file = {"content": lorem.text(embedded), "firstEditBubbleId": session.headers[0]["bubbleId"]}
    record["originalFileStates"] = {f"file://{session.place.path}/cart.py": file}
    return dumps(record)


def _write_workspace(root: Path, place: Place, entries: Sequence[session_lists.Entry]) -> None:
    path = root / "User/workspaceStorage" / place.id / "state.vscdb"
    listed = session_lists.workspace_list(entries, generation=5, is_bare=False)
    rows = database.insert_statement("ItemTable", ("key", "value"), [("composer.composerData", listed)])
    database.write(path, session_lists.KEY_VALUE_SCHEMA, [rows], journal="delete", mtime=STARTS[5])
    path.with_name("workspace.json").write_text(place.workspace_json or "{}")

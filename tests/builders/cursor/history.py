"""Write a large global database with the size and proportions of real ones."""

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
from backscroll.testing.cursor.tool_calls import TOOL_NAMES, example_call
from backscroll.testing.cursor.user_data import START_TIMES, new_id
from backscroll.testing.cursor.workspaces import Workspace, local_folder
from backscroll.testing.database import Cell
from tests.builders.lorem import LoremText

# Rows per thousand bubbles, measured in databases with 37,000 bubbles.
_CHECKPOINTS_PER_1000 = 324
_CONTEXTS_PER_1000 = 81
_DIFFS_PER_1000 = 108
_BLOBS_PER_1000 = 540

# Share of each kind of row in the bytes of the database.
_BYTE_SHARES = {"bubble": 0.36, "blob": 0.27, "checkpoint": 0.2, "data": 0.12, "context": 0.03, "diff": 0.02}
_TEXT_BYTES_PER_MEGABYTE = 890_000  # the rest is overhead of SQLite
_FOLDERS = ("shop", "docs site", "billing", "infra", "compiler", "game")

Row = tuple[str, Cell]


@dataclass
class _Session:
    id: str
    workspace: Workspace
    title: str
    at: int
    remaining: int  # bubbles that are not written yet
    headers: list[dict[str, Any]] = field(default_factory=list)
    blobs: list[bytes] = field(default_factory=list)


def write_history(
    root: Path, *, sessions: int = 75, bubbles: int = 37_000, megabytes: int = 500, seed: int = 0
) -> Path:
    """Write a user-data folder of this size. The rows of its sessions are interleaved. Return the root.

    The length of the texts depends on ``megabytes``. The records without text need
    about one megabyte per 500 bubbles.
    """
    if bubbles < sessions:
        raise ValueError("Every session needs a message.")
    rng = Random(f"history/{seed}")
    lorem = LoremText(rng)
    places = [local_folder(f"/home/dev/{name}", inode=2000 + n) for n, name in enumerate(_FOLDERS)]
    planned = list(_sessions(rng, lorem, places, sessions, bubbles))
    path = root / "User/globalStorage/state.vscdb"
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = session_lists.header_columns(5, is_upgraded=False)
    entries = [
        session_lists.Entry(s.id, 5, s.workspace, s.title, s.at, s.at + s.remaining * 14_000) for s in planned
    ]
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("pragma journal_mode = off")
        db.execute("pragma synchronous = off")
        db.execute("pragma cache_size = -200000")
        db.executescript(session_lists.KEY_VALUE_SCHEMA + session_lists.header_schema(columns))
        db.execute("begin")
        rows = _rows(rng, lorem, planned, bubbles, megabytes * _TEXT_BYTES_PER_MEGABYTE)
        db.executemany("insert into cursorDiskKV (key, value) values (?, ?)", rows)
        table = [session_lists.header_row(entry, 5) for entry in entries]
        db.executemany(
            *database.insert_statement(
                "composerHeaders", columns, [[row[c] for c in columns] for row in table]
            )
        )
        db.executemany(
            "insert into ItemTable (key, value) values (?, ?)", session_lists.table_flags(START_TIMES[5])
        )
        db.execute("commit")
        db.execute("pragma journal_mode = wal")
    database.set_mtime(path, max(entry.until for entry in entries))
    for workspace in places:
        _write_workspace(root, workspace, [entry for entry in entries if entry.workspace == workspace])
    return root


def _sessions(
    rng: Random, lorem: LoremText, places: Sequence[Workspace], count: int, bubbles: int
) -> Iterator[_Session]:
    """Yield few long sessions and many short ones."""
    weights = [min(rng.paretovariate(1.1) - 0.95, 5) for _ in range(count)]
    total_weight = sum(weights)
    remaining = bubbles
    for index, weight in enumerate(weights):
        later_count = count - 1 - index
        share = remaining - later_count
        if later_count:
            share = max(1, min(share, round(bubbles * weight / total_weight)))
        remaining -= share
        start = START_TIMES[5] - (count - index) * 86_400_000 + rng.randrange(40_000_000)
        yield _Session(new_id(rng), rng.choice(places), lorem.title(), start, share)


def _rows(
    rng: Random, lorem: LoremText, sessions: Sequence[_Session], bubbles: int, size: int
) -> Iterator[Row]:
    """Yield the rows of all sessions in the order in which Cursor would write them."""
    average_bytes = {
        "bubble": size * _BYTE_SHARES["bubble"] / bubbles - 1500,
        "blob": size * _BYTE_SHARES["blob"] / (bubbles * _BLOBS_PER_1000 / 1000),
        "checkpoint": size * _BYTE_SHARES["checkpoint"] / (bubbles * _CHECKPOINTS_PER_1000 / 1000),
        "context": size * _BYTE_SHARES["context"] / (bubbles * _CONTEXTS_PER_1000 / 1000),
        "diff": size * _BYTE_SHARES["diff"] / (bubbles * _DIFFS_PER_1000 / 1000),
        "data": size * _BYTE_SHARES["data"] / len(sessions),
    }
    open_sessions = [session for session in sessions if session.remaining]
    times = {session.id: session.at for session in sessions}
    while open_sessions:
        # Several windows are open at the same time, so adjacent rows belong to different sessions.
        session = open_sessions[rng.randrange(min(8, len(open_sessions)))]
        at = times[session.id] = times[session.id] + rng.randrange(2_000, 26_000)
        message = _random_message(
            rng, lorem, len(session.headers), session.workspace.path, average_bytes["bubble"]
        )
        id = new_id(rng)
        record = bubble(message, id=id, at=at, generation=5)
        session.headers.append(bubble_header(message, id=id, at=at, generation=5))
        yield f"bubbleId:{session.id}:{id}", dumps(record)
        yield from _other_rows(rng, lorem, session, id, average_bytes)
        session.remaining -= 1
        if not session.remaining:
            open_sessions.remove(session)
            yield (
                f"composerData:{session.id}",
                _composer_record(rng, lorem, session, at, average_bytes["data"]),
            )


def _random_message(rng: Random, lorem: LoremText, position: int, folder: str, size: float) -> Message:
    if position == 0 or rng.random() < 0.06:
        return user(lorem.text(rng.randrange(40, 600)))
    kind = rng.random()
    if kind < 0.42:
        # A few long results make up most of the bytes of all tool calls.
        length = int(min(size * 2.2 * rng.paretovariate(1.6) / 2.67, 400_000))
        call = example_call(rng.choice(TOOL_NAMES), folder=folder, word=lorem.word())
        result = {"output": lorem.text(max(length, 20)), "exitCode": 0}
        call_id = f"call_{rng.getrandbits(64):016x}"
        long_call = Tool(call.name, call.params, result, call_id=call_id, has_raw_args=call.has_raw_args)
        return Message("assistant", tool=long_call)
    if kind < 0.7:
        return thinking(lorem.text(rng.randrange(60, 900)))
    return assistant(lorem.text(rng.randrange(80, 2400)))


def _other_rows(
    rng: Random, lorem: LoremText, session: _Session, id: str, average_bytes: dict[str, float]
) -> Iterator[Row]:
    """Yield rows other than messages, with the frequency of real databases."""
    if rng.randrange(1000) < _CHECKPOINTS_PER_1000:
        text = lorem.text(int(average_bytes["checkpoint"]))
        files = [{"uri": {"fsPath": f"{session.workspace.path}/cart.py"}, "originalModelDiffWrtV0": [text]}]
        yield f"checkpointId:{session.id}:{new_id(rng)}", dumps({"files": files, "nonExistentFiles": []})
    if rng.randrange(1000) < _CONTEXTS_PER_1000:
        layout = dumps(
            {"rootPath": session.workspace.path, "content": lorem.text(int(average_bytes["context"]))}
        )
        yield f"messageRequestContext:{session.id}:{id}", dumps({"projectLayouts": [layout], "todos": []})
    if rng.randrange(1000) < _DIFFS_PER_1000:
        line = {"original": {"startLineNumber": 1, "endLineNumberExclusive": 2}}
        line_text = {"modified": lorem.text(int(average_bytes["diff"])).split("\n")}
        changes = {"newModelDiffWrtV0": [line | line_text], "originalModelDiffWrtV0": []}
        yield f"codeBlockDiff:{session.id}:{new_id(rng)}", dumps(changes)
    if rng.randrange(1000) < _BLOBS_PER_1000:
        message = {
            "role": "assistant",
            "id": "1",
            "content": [{"type": "text", "text": lorem.text(int(average_bytes["blob"]))}],
        }
        blob = dumps(message).encode()
        session.blobs.append(sha256(blob).digest())
        yield f"agentKv:blob:{session.blobs[-1].hex()}", blob


def _composer_record(rng: Random, lorem: LoremText, session: _Session, until: int, size: float) -> str:
    record = composer_data(
        session.id,
        name=session.title,
        at=session.at,
        until=until,
        generation=5,
        version=18,
        workspace=session.workspace,
        headers=session.headers,
        state=Graph(root=protobuf.encode_message(*((1, id) for id in session.blobs))).state,
    )
    # The original content of edited files is the largest part of these records.
    embedded_bytes = int(size * min(rng.paretovariate(1.3), 8) / 2.8)
    file = {"content": lorem.text(embedded_bytes), "firstEditBubbleId": session.headers[0]["bubbleId"]}
    record["originalFileStates"] = {f"file://{session.workspace.path}/cart.py": file}
    return dumps(record)


def _write_workspace(root: Path, workspace: Workspace, entries: Sequence[session_lists.Entry]) -> None:
    path = root / "User/workspaceStorage" / workspace.id / "state.vscdb"
    listed = session_lists.workspace_list(entries, generation=5, is_bare=False)
    rows = database.insert_statement("ItemTable", ("key", "value"), [("composer.composerData", listed)])
    database.write(path, session_lists.KEY_VALUE_SCHEMA, [rows], journal="delete", mtime=START_TIMES[5])
    path.with_name("workspace.json").write_text(workspace.workspace_json or "{}")

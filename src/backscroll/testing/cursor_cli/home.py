"""The folder of Cursor's command line, ``~/.cursor``: one store per chat."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from random import Random
from typing import Any, Literal, TypeAlias

from backscroll.testing import database
from backscroll.testing.cursor.bubbles import dumps
from backscroll.testing.cursor.graph import Graph, build_graph
from backscroll.testing.cursor.messages import Message
from backscroll.testing.cursor.rows import SECRET
from backscroll.testing.cursor.user_data import new_id, settle
from backscroll.testing.database import Cell, Journal, RowLocation

__all__ = ["SCHEMA", "START", "Chat", "Home", "folder_hash", "write_store"]

SCHEMA = """
create table if not exists blobs (id TEXT PRIMARY KEY, data BLOB);
create table if not exists meta (key TEXT PRIMARY KEY, value TEXT);
"""
START = 1790000000000

# How the one row of metadata is written: hex, plain JSON, a row per field, or hex with its last digit lost.
Meta: TypeAlias = Literal["hex", "plain", "rows", "odd"]
# What the metadata says about the root: its id, nothing, an id that no blob has, or no word of it.
Pointer: TypeAlias = Literal["latest", "empty", "dangling", "missing"]


@dataclass(frozen=True)
class Chat:
    """What was written for one chat, for a test to point at."""

    id: str
    folder: Path
    messages: tuple[Message, ...]  # with the ids, times and call ids they were written with
    graph: Graph

    @property
    def store(self) -> Path:
        return self.folder / "store.db"


class Home:
    """A folder that holds ``chats``, ``acp-sessions`` and ``projects``. Every chat is on disk at once."""

    def __init__(
        self,
        root: Path,
        *,
        seed: int = 0,
        journal: Journal = "wal",
        rows_in: RowLocation = "main",
        shm: bool = False,
    ) -> None:
        self.root = root
        self.seed = seed
        self._journal = journal
        self._rows_in = rows_in
        self._shm = shm
        self._drawn = 0

    def chat(
        self,
        messages: Sequence[Message] = (),
        *,
        cwd: str = "/home/dev/shop",
        id: str | None = None,
        name: str = "Rename foo",
        at: int | None = None,
        meta: Meta = "hex",
        pointer: Pointer = "latest",
        has_store: bool = True,
        has_meta_json: bool = True,
        is_acp: bool = False,
        rows_in: RowLocation | None = None,
        fields: Mapping[str, Any] | None = None,
        **graph: Any,
    ) -> Chat:
        """Write a chat, or the next state of one whose id is given again.

        ``fields`` are laid over the metadata, ``graph`` goes to `build_graph`.
        """
        self._drawn += 1
        rng = Random(f"{self.seed}/cli/{self._drawn}")
        id = id or new_id(rng)
        start = START + self._drawn * 3_600_000 if at is None else at
        said = settle(messages, rng, start)
        times = [message.at or start for message in said]
        until = max(times, default=start)
        folder = self.root / "acp-sessions" / id if is_acp else self.root / "chats" / folder_hash(cwd) / id
        folder.mkdir(parents=True, exist_ok=True)
        made = build_graph(said, times, folder=cwd, **graph) if said else Graph()
        if has_store:
            known: dict[str, Any] = {"agentId": id} | _pointer(pointer, made)
            known |= {"name": name, "mode": "default", "createdAt": start, "lastUsedModel": "model-x"}
            known |= {"blobEncryptionKey": f"{SECRET}="} | dict(fields or {})
            write_store(
                folder / "store.db",
                made.blobs,
                known,
                meta=meta,
                journal=self._journal,
                rows_in=rows_in or self._rows_in,
                shm=self._shm,
                mtime=until,
            )
        if has_meta_json:
            record: dict[str, Any] = {"schemaVersion": 1}
            if not is_acp:
                record |= {"createdAtMs": start, "updatedAtMs": until, "hasConversation": has_store}
            (folder / "meta.json").write_text(dumps(record | {"title": name, "cwd": cwd}))
            database.set_mtime(folder / "meta.json", until)
        return Chat(id, folder, said, made)

    def write_prompts(self, prompts: Sequence[str], *, chat: Chat | None = None) -> Path:
        """The prompts typed last, newest last: of everything, or of one chat."""
        path = (self.root if chat is None else chat.folder) / "prompt_history.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dumps(list(prompts)))
        database.set_mtime(path, START)
        return path


def folder_hash(cwd: str) -> str:
    """The name of the folder that holds the chats of a working directory, spelled exactly as it was."""
    return md5(cwd.encode(), usedforsecurity=False).hexdigest()


def write_store(
    path: Path,
    blobs: Mapping[str, bytes],
    known: Mapping[str, Any],
    *,
    meta: Meta = "hex",
    journal: Journal = "wal",
    rows_in: RowLocation = "main",
    shm: bool = False,
    mtime: int | None = None,
) -> None:
    """A ``store.db`` with these blobs and this metadata; blobs already there stay."""
    rows = [
        database.insert_statement("blobs", ("id", "data"), list(blobs.items())),
        database.insert_statement("meta", ("key", "value"), _meta_rows(known, meta)),
    ]
    database.write(path, SCHEMA, rows, journal=journal, rows_in=rows_in, shm=shm, mtime=mtime)


def _meta_rows(known: Mapping[str, Any], meta: Meta) -> list[tuple[Cell, Cell]]:
    text = dumps(known)
    match meta:
        case "hex":
            return [("0", text.encode().hex())]
        case "odd":
            return [("0", text.encode().hex()[:-1])]
        case "plain":
            return [("0", text)]
        case "rows":
            return [
                (name, value if isinstance(value, str) else dumps(value)) for name, value in known.items()
            ]


def _pointer(pointer: Pointer, graph: Graph) -> dict[str, str]:
    match pointer:
        case "latest":
            return {"latestRootBlobId": graph.root_id if graph.root else ""}
        case "empty":
            return {"latestRootBlobId": ""}
        case "dangling":
            return {"latestRootBlobId": "d0" * 32}
        case "missing":
            return {}

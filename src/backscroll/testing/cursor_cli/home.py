"""Folder of the Cursor CLI, ``~/.cursor``, with one store per chat."""

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
from backscroll.testing.cursor.user_data import assign_ids, new_id
from backscroll.testing.database import Cell, Journal, RowLocation

SCHEMA = """
create table if not exists blobs (id TEXT PRIMARY KEY, data BLOB);
create table if not exists meta (key TEXT PRIMARY KEY, value TEXT);
"""
START = 1790000000000

# Encoding of the metadata: hex, plain JSON, one row per field, or hex without its last digit.
MetaEncoding: TypeAlias = Literal["hex", "plain", "rows", "odd"]
# Root id in the metadata: the latest root, an empty string, an unknown id, or no field.
RootPointer: TypeAlias = Literal["latest", "empty", "dangling", "missing"]


@dataclass(frozen=True)
class Chat:
    """A written chat."""

    id: str
    folder: Path
    messages: tuple[Message, ...]  # with their ids, times and call ids
    graph: Graph

    @property
    def store(self) -> Path:
        return self.folder / "store.db"


class Home:
    """Folder with ``chats``, ``acp-sessions`` and ``projects``. Every chat is written immediately."""

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
        self._chat_count = 0

    def chat(
        self,
        messages: Sequence[Message] = (),
        *,
        cwd: str = "/home/dev/shop",
        id: str | None = None,
        name: str = "Rename foo",
        at: int | None = None,
        meta: MetaEncoding = "hex",
        pointer: RootPointer = "latest",
        has_store: bool = True,
        has_meta_json: bool = True,
        is_acp: bool = False,
        rows_in: RowLocation | None = None,
        fields: Mapping[str, Any] | None = None,
        **graph: Any,
    ) -> Chat:
        """Write a chat, or a new state of a chat with the same id.

        ``fields`` override the metadata. ``graph`` contains the arguments of `build_graph`.
        """
        self._chat_count += 1
        rng = Random(f"{self.seed}/cli/{self._chat_count}")
        id = id or new_id(rng)
        start = START + self._chat_count * 3_600_000 if at is None else at
        timed_messages = assign_ids(messages, rng, start)
        times = [message.at or start for message in timed_messages]
        until = max(times, default=start)
        folder = self.root / "acp-sessions" / id if is_acp else self.root / "chats" / folder_hash(cwd) / id
        folder.mkdir(parents=True, exist_ok=True)
        built = build_graph(timed_messages, times, folder=cwd, **graph) if timed_messages else Graph()
        if has_store:
            metadata: dict[str, Any] = {"agentId": id} | _root_field(pointer, built)
            metadata |= {"name": name, "mode": "default", "createdAt": start, "lastUsedModel": "model-x"}
            metadata |= {"blobEncryptionKey": f"{SECRET}="} | dict(fields or {})
            write_store(
                folder / "store.db",
                built.blobs,
                metadata,
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
        return Chat(id, folder, timed_messages, built)

    def write_prompts(self, prompts: Sequence[str], *, chat: Chat | None = None) -> Path:
        """Write the latest prompts of all chats or of one chat, newest last."""
        path = (self.root if chat is None else chat.folder) / "prompt_history.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dumps(list(prompts)))
        database.set_mtime(path, START)
        return path


def folder_hash(cwd: str) -> str:
    """Return the name of the folder for the chats of a working directory."""
    return md5(cwd.encode(), usedforsecurity=False).hexdigest()


def write_store(
    path: Path,
    blobs: Mapping[str, bytes],
    metadata: Mapping[str, Any],
    *,
    meta: MetaEncoding = "hex",
    journal: Journal = "wal",
    rows_in: RowLocation = "main",
    shm: bool = False,
    mtime: int | None = None,
) -> None:
    """Write blobs and metadata into a new or existing ``store.db``. Existing blobs remain."""
    rows = [
        database.insert_statement("blobs", ("id", "data"), list(blobs.items())),
        database.insert_statement("meta", ("key", "value"), _meta_rows(metadata, meta)),
    ]
    database.write(path, SCHEMA, rows, journal=journal, rows_in=rows_in, shm=shm, mtime=mtime)


def _meta_rows(metadata: Mapping[str, Any], encoding: MetaEncoding) -> list[tuple[Cell, Cell]]:
    text = dumps(metadata)
    match encoding:
        case "hex":
            return [("0", text.encode().hex())]
        case "odd":
            return [("0", text.encode().hex()[:-1])]
        case "plain":
            return [("0", text)]
        case "rows":
            return [
                (name, value if isinstance(value, str) else dumps(value)) for name, value in metadata.items()
            ]


def _root_field(pointer: RootPointer, graph: Graph) -> dict[str, str]:
    match pointer:
        case "latest":
            return {"latestRootBlobId": graph.root_id if graph.root else ""}
        case "empty":
            return {"latestRootBlobId": ""}
        case "dangling":
            return {"latestRootBlobId": "d0" * 32}
        case "missing":
            return {}

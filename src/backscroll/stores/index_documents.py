"""Documents for the index, made while a unit is read.

Reading the messages back from the archive for the index would cost as much as storing them. A worker
therefore writes the documents of its shard to a spool file. The process that merges the shard indexes them
from there, by fragment id.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from backscroll.index.documents import EncodedMessage, IndexMessage, encode_message
from backscroll.model.message import ANNOTATIONS_POSITION, Message
from backscroll.model.search import annotations_text, annotations_time, paths_of, searchable_text
from backscroll.model.session import SessionSummary

FRAME_CHARS = 1024 * 1024  # documents are written in frames of about this size
_to_json = msgspec.json.Encoder().encode
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[EncodedMessage]).decode
Frame = tuple[int, int]  # offset in the file, and bytes
Frames = dict[int, list[Frame]]  # by fragment id


def message_document(position: int, message: Message) -> IndexMessage:
    """Return the document of a message."""
    tool = message.tool
    return IndexMessage(
        position=position,
        role=message.role,
        kind=message.kind,
        at=int(message.timestamp.timestamp() * 1000) if message.timestamp is not None else None,
        text=_text(message),
        tool=tool.name if tool else None,
        model=message.model,
        branch=message.git_branch,
        paths=paths_of(message),
        is_error=message.role == "error" or (tool is not None and tool.is_error),
        is_edit=bool(tool and tool.edits),
    )


def _text(message: Message) -> str | bytes:
    """Return the searchable text as UTF-8. Faster than `searchable_text`: strings cache their UTF-8 form."""
    tool = message.tool
    try:
        if tool is None:
            return message.content.encode()
        parts = [tool.name.encode()]
        for name, value in tool.params.items():
            parts += (name.encode(), value.encode() if type(value) is str else _to_json(value))
        parts += (message.content.encode(), tool.result.encode() if tool.result else b"")
        return b"\n".join(parts)
    except UnicodeEncodeError:
        return searchable_text(message)


def annotations_document(summary: SessionSummary) -> IndexMessage | None:
    """Return the document of a session's annotations, indexed like one more message."""
    text = annotations_text(summary)
    if not text:
        return None
    last = annotations_time(summary)
    at = int(last.timestamp() * 1000) if last is not None else None
    return IndexMessage(position=ANNOTATIONS_POSITION, role="note", at=at, text=text)


class DocumentSpool:
    """Observes the writes of a shard and writes their documents to a file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._frames: Frames = {}
        self._fragment_id = 0
        self._buffer: list[EncodedMessage] = []
        self._size = 0

    def begin_fragment(self, fragment_id: int) -> None:
        """Start a fragment. An earlier one with this id was rolled back."""
        self._flush()
        self._buffer, self._size = [], 0
        self._fragment_id = fragment_id
        self._frames[fragment_id] = []

    def add_messages(self, first_position: int, messages: Sequence[Message]) -> None:
        """Add messages of the current fragment, from a position on."""
        if self._fragment_id not in self._frames:
            return
        documents = [
            encode_message(message_document(position, message))
            for position, message in enumerate(messages, start=first_position)
        ]
        self._buffer += documents
        self._size += sum([len(document.fields) for document in documents])
        if self._size >= FRAME_CHARS:
            self._flush()

    def invalidate_fragment(self) -> None:
        """Drop the documents of the current fragment: a message changed after it was added."""
        self._frames.pop(self._fragment_id, None)

    def close(self, fragment_ids: Collection[int]) -> Frames:
        """Close the file. Return the frames of the given fragments."""
        self._flush()
        self._file.close()
        return {id_: frames for id_, frames in self._frames.items() if id_ in fragment_ids}

    def _flush(self) -> None:
        if self._buffer and self._fragment_id in self._frames:
            packed = _pack(self._buffer)
            self._frames[self._fragment_id].append((self._file.tell(), len(packed)))
            self._file.write(packed)
        self._buffer, self._size = [], 0


class SpooledDocuments:
    """Documents of merged shards that are not indexed yet."""

    def __init__(self, total_size: int = 0) -> None:
        self.size = 0  # bytes
        self.total_size = total_size  # bytes, including earlier rounds
        self._frames: dict[int, tuple[Path, list[Frame]]] = {}
        self._files: list[Path] = []

    def add(self, path: Path, frames: Frames, offset: int) -> None:
        """Add a spool file. The merge has added ``offset`` to its fragment ids."""
        size = path.stat().st_size
        self.size += size
        self.total_size += size
        self._files.append(path)
        for fragment_id, fragment_frames in frames.items():
            self._frames[fragment_id + offset] = (path, fragment_frames)

    def __contains__(self, fragment_id: int) -> bool:
        return fragment_id in self._frames

    def documents(self, fragment_id: int) -> Iterator[EncodedMessage]:
        """Yield the documents of a fragment in order."""
        path, frames = self._frames[fragment_id]
        with path.open("rb") as file:
            for offset, size in frames:
                file.seek(offset)
                yield from _unpack(file.read(size))

    def clear(self) -> None:
        """Delete the files."""
        for path in self._files:
            path.unlink(missing_ok=True)

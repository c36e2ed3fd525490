"""What the index needs of messages, made while they are in hand.

Whoever reads a unit has its messages before him; taking them out of the archive
again for the index would cost as much as keeping them did. So the process that
reads writes entries into a file beside its shard, and the one that takes the shard
in finds them there, by account.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from backscroll.index.engine.documents import IndexMessage
from backscroll.index.engine.encode import EncodedMessage, encode_message
from backscroll.model import Message, SessionSummary
from backscroll.model.searchable_text import ANNOTATIONS_POSITION, annotations_text, paths_of, searchable_text

__all__ = ["Ready", "Recorder", "noted", "spoken"]

_FRAME = 1024 * 1024  # characters of entries that are written together
_to_json = msgspec.json.Encoder().encode
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[EncodedMessage]).decode

Frame = tuple[int, int]  # where in a file entries lie, and how many bytes they are
Frames = dict[int, list[Frame]]  # by account


def _encoded(message: Message) -> str | bytes:
    """The same as UTF-8, which the strings of a message that was packed have at hand; else as it is."""
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


def spoken(position: int, message: Message) -> IndexMessage:
    """What the index is told of a message."""
    tool = message.tool
    return IndexMessage(
        position=position,
        role=message.role,
        kind=message.kind,
        at=int(message.timestamp.timestamp() * 1000) if message.timestamp is not None else None,
        text=_encoded(message),
        tool=tool.name if tool else None,
        model=message.model,
        branch=message.git_branch,
        paths=paths_of(message),
        is_error=message.role == "error" or (tool is not None and tool.is_error),
        is_edit=bool(tool and tool.edits),
    )


def noted(summary: SessionSummary) -> IndexMessage | None:
    """What the index is told of a session's notes, as if they were one more message."""
    text = annotations_text(summary)
    if not text:
        return None
    last = max((note.edited_at or note.written_at for note in summary.notes), default=summary.updated_at)
    at = int(last.timestamp() * 1000) if last is not None else None
    return IndexMessage(position=ANNOTATIONS_POSITION, role="note", at=at, text=text)


class Recorder:
    """Listens to what is written into an archive, and puts the entries of it into a file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._frames: Frames = {}
        self._account = 0
        self._held: list[EncodedMessage] = []
        self._size = 0

    def begin_fragment(self, fragment_id: int) -> None:
        """An account begins; one of that number before it was taken back."""
        self._write()
        self._held, self._size = [], 0
        self._account = fragment_id
        self._frames[fragment_id] = []

    def add_messages(self, first_position: int, messages: Sequence[Message]) -> None:
        """Messages of it, from a position on."""
        if self._account not in self._frames:
            return
        made = [
            encode_message(spoken(place, message))
            for place, message in enumerate(messages, start=first_position)
        ]
        self._held += made
        self._size += sum([len(one.fields) for one in made])
        if self._size >= _FRAME:
            self._write()

    def invalidate_fragment(self) -> None:
        """A message of it turned out to be another than was said."""
        self._frames.pop(self._account, None)

    def close(self, accounts: Collection[int]) -> Frames:
        """Where the entries of these accounts are; of others there are none to be kept."""
        self._write()
        self._file.close()
        return {account: frames for account, frames in self._frames.items() if account in accounts}

    def _write(self) -> None:
        if self._held and self._account in self._frames:
            packed = _pack(self._held)
            self._frames[self._account].append((self._file.tell(), len(packed)))
            self._file.write(packed)
        self._held, self._size = [], 0


class Ready:
    """Entries of accounts that were taken in and are still to be indexed."""

    def __init__(self, ever: int = 0) -> None:
        self.size = 0
        self.ever = ever  # bytes, of all that were
        self._places: dict[int, tuple[Path, list[Frame]]] = {}
        self._files: list[Path] = []

    def take(self, path: Path, frames: Frames, offset: int) -> None:
        """Know a file, of which the accounts have got other numbers, so much greater."""
        size = path.stat().st_size
        self.size += size
        self.ever += size
        self._files.append(path)
        for account, places in frames.items():
            self._places[account + offset] = (path, places)

    def __contains__(self, account: int) -> bool:
        return account in self._places

    def entries(self, account: int) -> Iterator[EncodedMessage]:
        """The entries of an account, in order."""
        path, frames = self._places[account]
        with path.open("rb") as file:
            for offset, size in frames:
                file.seek(offset)
                yield from _unpack(file.read(size))

    def clear(self) -> None:
        """Remove the files."""
        for path in self._files:
            path.unlink(missing_ok=True)

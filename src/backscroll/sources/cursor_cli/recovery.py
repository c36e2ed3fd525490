"""Recover a conversation if its root is missing or damaged.

A store keeps all earlier roots and all messages, so most of the conversation can be restored. The session is
marked as partial.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from backscroll.readers.protobuf import Record
from backscroll.sources.cursor_graph.blobs import BlobLoader, blob_id
from backscroll.sources.cursor_graph.message_parts import decode_message
from backscroll.sources.cursor_graph.state import ConversationState, MessageRef

__all__ = ["RecoveredRoot", "recover"]

_MAX_RECORD_BYTES = 8 * 1024 * 1024
_REFERENCE_TAG = b"\x0a\x20"  # field 1, 32 bytes
_REFERENCE_BYTES = 34  # tag and id


class RecoveredRoot(Struct, frozen=True):
    """The root to use, and the messages if it does not refer to them itself."""

    state: ConversationState
    entries: list[MessageRef] | None
    root_id: str | None

    @property
    def is_empty(self) -> bool:
        return self.state.is_empty and not self.entries


class _Node(Struct, frozen=True):
    """References of a blob that is not a message."""

    id: str
    messages: tuple[str, ...]  # ids in field 1, which refers to messages in roots and archives
    archives: tuple[str, ...]
    is_valid: bool


class _Graph(Struct, frozen=True):
    """The references between the blobs of a store."""

    nodes: dict[str, _Node]
    referenced: set[str]
    messages: dict[str, None]  # ids of message blobs, in the order of the store

    def message_count(self, node: _Node) -> int:
        """Return the number of messages that a root refers to, including archived ones."""
        archived = (
            id for archive in node.archives if archive in self.nodes for id in self._message_ids(archive)
        )
        return len({*self._message_ids(node.id), *archived})

    def _message_ids(self, id: str) -> Iterator[str]:
        return (message for message in self.nodes[id].messages if message in self.messages)

    def best_root(self) -> _Node | None:
        """Return the root with the most messages that is not referenced; the latest of several."""
        roots = [node for node in self.nodes.values() if node.is_valid and any(self._message_ids(node.id))]
        unreferenced = [node for node in roots if node.id not in self.referenced]
        return max(reversed(unreferenced or roots), key=self.message_count, default=None)


def recover(
    ids: Iterable[str], blobs: BlobLoader, *, named_root_id: str | None, damaged_root: bytes | None
) -> RecoveredRoot:
    """Return the best root among the blobs with these ids, which are in the order of the store.

    `named_root_id` is the root in the metadata, and `damaged_root` its content. Valid references are read
    from the damaged root, and unreferenced messages replace the invalid ones.
    """
    graph = _build_graph(ids, blobs, excluded_id=named_root_id)
    best = graph.best_root()
    if damaged_root is not None:
        entries = _read_damaged_root(damaged_root, graph)
        if best is None or len(entries) >= graph.message_count(best):
            return RecoveredRoot(ConversationState(damaged_root), entries, None)
    if best is not None:
        return RecoveredRoot(ConversationState(blobs.get(best.id) or b""), None, best.id)
    return RecoveredRoot(ConversationState(b""), [MessageRef(id) for id in graph.messages], None)


def _build_graph(ids: Iterable[str], blobs: BlobLoader, *, excluded_id: str | None) -> _Graph:
    graph = _Graph({}, set(), {})
    for id, data in blobs.each(ids):
        if data is None or id == excluded_id:
            continue
        if data[:1] == b"{" and (message := decode_message(data)) is not None:
            # The content of files is stored too, and may be JSON.
            if "role" in message:
                graph.messages[id] = None
        elif len(data) <= _MAX_RECORD_BYTES:
            record = Record(data)
            graph.referenced.update(_ids(field.value for field in record.fields) - {id})
            archives = tuple(_ids((*record.all(11), *record.all(13))))
            graph.nodes[id] = _Node(id, tuple(_ids(record.all(1))), archives, record.fault is None)
    return graph


def _ids(values: Iterable[int | bytes]) -> set[str]:
    return {id for value in values if isinstance(value, bytes) and (id := blob_id(value)) is not None}


def _read_damaged_root(damaged_root: bytes, graph: _Graph) -> list[MessageRef]:
    """Return the messages of a damaged root. Unreferenced messages replace damaged references."""
    found: list[str | None] = []  # None for a damaged reference
    offset = previous_end = 0
    while (offset := damaged_root.find(_REFERENCE_TAG, offset)) >= 0:
        end = offset + _REFERENCE_BYTES
        if end > len(damaged_root):
            break
        id = damaged_root[offset + len(_REFERENCE_TAG) : end].hex()
        if id in graph.messages:
            found.append(id)
            offset = previous_end = end
        elif offset == previous_end:
            found.append(None)
            offset = previous_end = end
        else:
            offset += 1
    known = set(found) | graph.referenced
    unreferenced = iter([id for id in graph.messages if id not in known])
    filled = [id if id is not None else next(unreferenced, None) for id in found]
    return [MessageRef(id) for id in [*filled, *unreferenced] if id is not None]

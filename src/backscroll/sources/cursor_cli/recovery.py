"""Find a conversation whose root is lost or damaged.

The store keeps every earlier root and every message, so what the pointer no
longer reaches can still be put together; the result is marked as partial.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from backscroll.readers.protobuf import Record
from backscroll.sources.cursor_graph import BlobLoader, ConversationState, MessageRef, blob_id
from backscroll.sources.cursor_graph.message_parts import decode_message

__all__ = ["RecoveredRoot", "recover"]

_MAX_NODE_BYTES = 8 * 1024 * 1024
_REFERENCE = b"\x0a\x20"  # field 1, 32 bytes


class RecoveredRoot(Struct, frozen=True):
    """A root, and the messages to tell where the root does not say them itself."""

    state: ConversationState
    entries: list[MessageRef] | None
    root_id: str | None

    @property
    def is_empty(self) -> bool:
        return self.state.is_empty and not self.entries


class _Node(Struct, frozen=True):
    """What one blob that is no message refers to."""

    id: str
    messages: tuple[str, ...]  # among them those it names in the place where roots and archives do
    archives: tuple[str, ...]
    is_whole: bool


class _Graph(Struct, frozen=True):
    """Who refers to whom."""

    nodes: dict[str, _Node]
    referred: set[str]
    messages: dict[str, None]  # ids of blobs that someone said, in the order written

    def reached(self, node: _Node) -> int:
        """How many messages a root leads to, archived ones included."""
        archived = (id for archive in node.archives if archive in self.nodes for id in self._named(archive))
        return len({*self._named(node.id), *archived})

    def _named(self, id: str) -> Iterator[str]:
        return (message for message in self.nodes[id].messages if message in self.messages)

    def best_root(self) -> _Node | None:
        """The one that no other blob refers to and that leads to the most messages; the latest of several."""
        roots = [node for node in self.nodes.values() if node.is_whole and any(self._named(node.id))]
        loose = [node for node in roots if node.id not in self.referred]
        return max(reversed(loose or roots), key=self.reached, default=None)


def recover(
    ids: Iterable[str], blobs: BlobLoader, *, named: str | None, damaged: bytes | None
) -> RecoveredRoot:
    """The best root among the blobs of these ids, which are in the order written.

    Of the `damaged` root that the metadata `named` the references are picked out
    one by one; messages that nothing else refers to take the place of those that
    it can no longer name.
    """
    graph = _survey(ids, blobs, without=named)
    best = graph.best_root()
    if damaged is not None:
        picked = _pick(damaged, graph)
        if best is None or len(picked) >= graph.reached(best):
            return RecoveredRoot(ConversationState(damaged), picked, None)
    if best is not None:
        return RecoveredRoot(ConversationState(blobs.get(best.id) or b""), None, best.id)
    return RecoveredRoot(ConversationState(b""), [MessageRef(id) for id in graph.messages], None)


def _survey(ids: Iterable[str], blobs: BlobLoader, *, without: str | None) -> _Graph:
    graph = _Graph({}, set(), {})
    for id, data in blobs.each(ids):
        if data is None or id == without:
            continue
        if data[:1] == b"{" and (message := decode_message(data)) is not None:
            # Files that a session read are kept beside its messages, and may be JSON as well.
            if "role" in message:
                graph.messages[id] = None
        elif len(data) <= _MAX_NODE_BYTES:
            record = Record(data)
            graph.referred.update(_ids(field.value for field in record.fields) - {id})
            archives = tuple(_ids((*record.all(11), *record.all(13))))
            graph.nodes[id] = _Node(id, tuple(_ids(record.all(1))), archives, record.fault is None)
    return graph


def _ids(values: Iterable[int | bytes]) -> set[str]:
    return {id for value in values if isinstance(value, bytes) and (id := blob_id(value)) is not None}


def _pick(damaged: bytes, graph: _Graph) -> list[MessageRef]:
    """The messages a damaged root still names, with a gap for each name that was hit."""
    picked: list[str | None] = []
    at = follows = 0
    while (at := damaged.find(_REFERENCE, at)) >= 0 and at + 34 <= len(damaged):
        id = damaged[at + 2 : at + 34].hex()
        if id in graph.messages:
            picked.append(id)
            at = follows = at + 34
        elif at == follows:
            picked.append(None)
            at = follows = at + 34
        else:
            at += 1
    named = set(picked) | graph.referred
    strays = iter([id for id in graph.messages if id not in named])
    filled = [id if id is not None else next(strays, None) for id in picked]
    return [MessageRef(id) for id in [*filled, *strays] if id is not None]

"""Code that answers proposed for files, and the editor's records of what became of it."""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Raw

from backscroll.sources.cursor.database.decode import UndecodableError, as_map, as_text, decode, decode_map
from backscroll.sources.cursor.database.record_types import CodeBlock

__all__ = ["CodeProposals"]

Records = Callable[[str, str], bytes | None]  # by family and name


class CodeProposals:
    """The proposals of one session. A record beside them is fetched when it is asked for."""

    def __init__(self, data: Raw = Raw(), records: Records | None = None) -> None:  # noqa: B008 - a constant
        self._records = records
        self._by_id: dict[str, CodeBlock] = {}
        self._by_bubble: dict[str, list[CodeBlock]] = {}
        self._by_place: dict[tuple[str, str], CodeBlock] = {}
        for uri, versions in decode_map(data, Raw).items():
            for key, block in _versions(versions):
                self._add(uri, key, block)

    def _add(self, uri: str, key: str, block: CodeBlock) -> None:
        if block.uri is None:
            block.uri = uri
        if owner := as_text(block.bubble_id):
            self._by_bubble.setdefault(owner, []).append(block)
        version = block.version if isinstance(block.version, int | str) else key
        self._by_place.setdefault((uri, str(version)), block)
        for name in (key, as_text(block.diff_id)):
            if len(name) > 8:  # an id, not a place in a list
                self._by_id.setdefault(name, block)

    def for_bubble(self, bubble_id: str, shown: list[CodeBlock]) -> list[CodeBlock]:
        """The proposals of one message; ``shown`` is the message's own list, which names file and version."""
        if found := self._by_bubble.get(bubble_id):
            return found
        if not self._by_place:
            return []
        blocks = []
        for block in shown:
            uri = as_map(block.uri)
            for spelling in (
                as_text(block.uri),
                as_text(uri.get("external")),
                as_text(uri.get("_formatted")),
            ):
                if known := self._by_place.get((spelling, str(block.version or 0))):
                    blocks.append(known)
                    break
        return blocks

    def by_id(self, name: str) -> CodeBlock | None:
        return self._by_id.get(name)

    def diff(self, name: str) -> bytes | None:
        """The stored difference between the file and the proposal."""
        return self._record("codeBlockDiff", name)

    def hunk_fates(self, name: str) -> bytes | None:
        """What became of the single hunks of a proposal."""
        return self._record("codeBlockPartialInlineDiffFates", name)

    def _record(self, family: str, name: str) -> bytes | None:
        return self._records(family, name) if name and self._records is not None else None


def _versions(versions: Raw) -> Iterator[tuple[str, CodeBlock]]:
    """The proposals for one file: a list in older records, an object in newer ones."""
    pairs: list[tuple[str, Any]]
    try:
        pairs = [(str(number), raw) for number, raw in enumerate(decode(versions, list[Raw]))]
    except UndecodableError:
        pairs = list(decode_map(versions, Raw).items())
    for key, raw in pairs:
        try:
            yield key, decode(raw, CodeBlock)
        except UndecodableError:
            continue

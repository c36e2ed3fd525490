"""Code that answers proposed for files, and the editor's records of its status."""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Raw

from backscroll.sources.cursor.database.decode import UndecodableError, as_map, as_text, decode, decode_map
from backscroll.sources.cursor.database.record_types import CodeBlock

__all__ = ["CodeProposals"]

RecordLoader = Callable[[str, str], bytes | None]  # by family and name

_MIN_ID_CHARS = 9


class CodeProposals:
    """Proposals of one session. Related records are loaded on demand."""

    def __init__(self, code_block_data: Raw = Raw(), load_record: RecordLoader | None = None) -> None:  # noqa: B008 - a constant
        self._load_record = load_record
        self._by_id: dict[str, CodeBlock] = {}
        self._by_bubble: dict[str, list[CodeBlock]] = {}
        self._by_version: dict[tuple[str, str], CodeBlock] = {}
        for uri, versions in decode_map(code_block_data, Raw).items():
            for key, block in _versions(versions):
                self._add(uri, key, block)

    def _add(self, uri: str, key: str, block: CodeBlock) -> None:
        if block.uri is None:
            block.uri = uri
        if owner := as_text(block.bubble_id):
            self._by_bubble.setdefault(owner, []).append(block)
        version = block.version if isinstance(block.version, int | str) else key
        self._by_version.setdefault((uri, str(version)), block)
        for name in (key, as_text(block.diff_id)):
            if len(name) >= _MIN_ID_CHARS:  # an id, not an index
                self._by_id.setdefault(name, block)

    def for_bubble(self, bubble_id: str, code_blocks: list[CodeBlock]) -> list[CodeBlock]:
        """Return the proposals of a message. ``code_blocks`` are in the message and name file and version."""
        if found := self._by_bubble.get(bubble_id):
            return found
        if not self._by_version:
            return []
        blocks = []
        for block in code_blocks:
            uri = as_map(block.uri)
            for uri_text in (
                as_text(block.uri),
                as_text(uri.get("external")),
                as_text(uri.get("_formatted")),
            ):
                if known := self._by_version.get((uri_text, str(block.version or 0))):
                    blocks.append(known)
                    break
        return blocks

    def by_id(self, id: str) -> CodeBlock | None:
        return self._by_id.get(id)

    def diff(self, id: str) -> bytes | None:
        """Return the stored diff between the file and the proposal."""
        return self._record("codeBlockDiff", id)

    def hunk_fates(self, id: str) -> bytes | None:
        """Return the stored fates of the hunks of a proposal."""
        return self._record("codeBlockPartialInlineDiffFates", id)

    def _record(self, family: str, name: str) -> bytes | None:
        return self._load_record(family, name) if name and self._load_record is not None else None


def _versions(versions: Raw) -> Iterator[tuple[str, CodeBlock]]:
    """Return the proposals for one file: a list in older records, an object in newer ones."""
    pairs: list[tuple[str, Any]]
    try:
        pairs = [(str(index), raw) for index, raw in enumerate(decode(versions, list[Raw]))]
    except UndecodableError:
        pairs = list(decode_map(versions, Raw).items())
    for key, raw in pairs:
        try:
            yield key, decode(raw, CodeBlock)
        except UndecodableError:
            continue

"""Select the transcripts of a session to restore.

The archive has a transcript of a session for each project folder that contained one. After a move, both have
the same lines. A session that was continued in another folder has different lines in each.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from backscroll.model.safekeeping.transfer import ArchivedFile
from backscroll.sources.claude_code.project_key import matches

__all__ = ["distinct_transcripts", "has_content"]

_UUID = re.compile(rb'"uuid"\s*:\s*"([^"]+)"')
_OVERLAP_BYTES = 64  # longer than a match, which may begin in one block and end in the next


def distinct_transcripts(transcripts: Sequence[ArchivedFile], folder: str | None) -> list[ArchivedFile]:
    """Return the transcripts without those that repeat another one, the one in the store first.

    If none is in the store, the one in the project of the session's folder is first.
    """
    ranked = sorted(
        transcripts,
        key=lambda file: (
            not has_content(Path(file.path)),
            folder is None or not matches(folder, Path(file.path).parent.name),
        ),
    )
    kept: list[ArchivedFile] = []
    known: set[bytes] = set()
    for file in ranked:
        uuids = set(_uuids(file.content()))
        if has_content(Path(file.path)) or not uuids or uuids - known:
            kept.append(file)
            known |= uuids
    return kept


def has_content(path: Path) -> bool:
    """Return whether a file exists and is not empty. The tool ignores empty ones."""
    return path.exists() and path.stat().st_size > 0


def _uuids(blocks: Iterable[bytes]) -> Iterable[bytes]:
    """Yield the ids of the lines in a transcript."""
    rest = b""
    for block in blocks:
        text = rest + block
        yield from _UUID.findall(text)
        rest = text[-_OVERLAP_BYTES:]

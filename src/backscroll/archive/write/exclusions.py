"""Sessions that must not be stored: forgotten sessions and excluded workspaces."""

import re
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from backscroll.model.stream import Opening
    from backscroll.model.workspace import Workspace


MIN_DISTINCTIVE_ID_CHARS = 8  # a shorter id may occur in any text by chance
_NO_PATTERNS_HASH = bytes.fromhex("e4a6a0577479b2b4")  # precomputed: most users exclude nothing


class Exclusions(NamedTuple):
    """Forgotten sessions, checked when a session begins, and excluded workspaces, checked when it ends."""

    forgotten: frozenset[tuple[str, str]] = frozenset()  # platform and id
    patterns: tuple[str, ...] = ()

    @property
    def patterns_hash(self) -> bytes:
        """64-bit BLAKE2b of the patterns. Units that were excluded by other patterns are read again."""
        if not self.patterns:
            return _NO_PATTERNS_HASH
        from hashlib import blake2b  # start-up time: only needed with patterns

        return blake2b("\n".join(self.patterns).encode("utf-8", "surrogatepass"), digest_size=8).digest()

    def is_forgotten(self, platform: str, opening: "Opening") -> bool:
        """Return whether a session, or the session that started this subagent, was forgotten.

        The id of a subagent is unique only within its session. It is compared only if no parent is known.
        """
        if not self.forgotten:
            return False
        if opening.parent_id is not None:
            return (platform, opening.parent_id) in self.forgotten
        return (platform, opening.id) in self.forgotten

    def mentions_forgotten(self, text: str) -> bool:
        """Return whether a path or location contains the id of a forgotten session."""
        return any(id_ in text for _, id_ in self.forgotten if len(id_) >= MIN_DISTINCTIVE_ID_CHARS)

    def unless_forgotten(self, platform: str, session_id: str | None) -> str | None:
        """Return a session id, or None if that session was forgotten."""
        return None if session_id is not None and (platform, session_id) in self.forgotten else session_id

    def is_excluded(self, workspace: "Workspace | None") -> bool:
        """Return whether a pattern matches a workspace, one of its folders, or a parent of them."""
        if workspace is None or not self.patterns:
            return False
        return any(_matches(self.patterns, path) for path in (workspace.path, *workspace.folders))


def _matches(patterns: tuple[str, ...], path: str) -> bool:
    folder = _normalize(path)
    expressions = [_compile(pattern) for pattern in patterns]
    while folder:
        if any(expression.fullmatch(folder) for expression in expressions):
            return True
        folder = folder.rpartition("/")[0]
    return False


@lru_cache(maxsize=256)
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a folder pattern. Subfolders always match too, so a trailing ``/**`` is redundant."""
    folder = _normalize(pattern.removesuffix("/**"))
    return re.compile(translate(folder if "/" in folder else f"*/{folder}"))


def _normalize(path: str) -> str:
    from backscroll.model.workspace import normalize_path  # start-up time: only needed with patterns

    return normalize_path(path)

"""What is not to be written: sessions that were forgotten, and workspaces that a person excluded."""

import re
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from backscroll.model import Opening, Workspace

__all__ = ["ALONE", "TELLING", "Exclusions"]

# The kinds of units that tell of one session, today and tomorrow.
ALONE = ("session", "agent", "transcript", "notes")

_NO_PATTERNS = bytes.fromhex("e4a6a0577479b2b4")  # their digest, for all who exclude nothing
TELLING = 8  # characters of an id below which it may be found in anything


class Exclusions(NamedTuple):
    """Asked when a session begins whether it was forgotten, and when it ends whether it is excluded."""

    forgotten: frozenset[tuple[str, str]] = frozenset()  # platform and id
    patterns: tuple[str, ...] = ()

    @property
    def digest(self) -> bytes:
        """Tells these patterns from others."""
        if not self.patterns:
            return _NO_PATTERNS
        from hashlib import blake2b

        return blake2b("\n".join(self.patterns).encode("utf-8", "surrogatepass"), digest_size=8).digest()

    def is_forgotten(self, platform: str, opening: "Opening") -> bool:
        """Whether a session, or the one that started this subagent, was forgotten.

        A subagent's id is its own only within its session; alone it counts where no session is named.
        """
        if not self.forgotten:
            return False
        if opening.parent_id is not None:
            return (platform, opening.parent_id) in self.forgotten
        return (platform, opening.id) in self.forgotten

    def names(self, place: str) -> bool:
        """Whether a forgotten session is named in a path or a place."""
        return any(id_ in place for _, id_ in self.forgotten if len(id_) >= TELLING)

    def remembered(self, platform: str, id_: str | None) -> str | None:
        """The session that a message was copied from, unless that was forgotten and the copy is its own."""
        return None if id_ is not None and (platform, id_) in self.forgotten else id_

    def is_excluded(self, workspace: "Workspace | None") -> bool:
        """Whether a pattern fits a workspace, one of its folders, or a folder that it lies in."""
        if workspace is None or not self.patterns:
            return False
        return any(_fits(self.patterns, path) for path in (workspace.path, *workspace.folders))


def _fits(patterns: tuple[str, ...], path: str) -> bool:
    from backscroll.model import normalised

    folder = normalised(path)
    expressions = [_expression(pattern) for pattern in patterns]
    while folder:
        if any(expression.fullmatch(folder) for expression in expressions):
            return True
        folder = folder.rpartition("/")[0]
    return False


@lru_cache(maxsize=256)
def _expression(pattern: str) -> re.Pattern[str]:
    """A pattern for a folder; what is below goes with it, so ``/**`` at the end says nothing more."""
    from backscroll.model import normalised

    folder = normalised(pattern.removesuffix("/**"))
    return re.compile(translate(folder if "/" in folder else f"*/{folder}"))

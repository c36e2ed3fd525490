"""Map paths of one machine to another."""

import re
from collections.abc import Iterable

__all__ = ["PathMaps"]

_DRIVE = re.compile(r"/?([A-Za-z]:)(?=[/\\]|$)")


class PathMaps:
    """Pairs of an old and a new folder. The longest old folder that contains a path applies.

    A path changes only at the end of a component. The rest of it gets the separator of the new folder.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs = tuple(pairs)
        found = [(_parts(old), new.rstrip("/\\") or new) for old, new in self.pairs]
        self._parsed = sorted(found, key=lambda pair: -len(pair[0]))
        self.old_folders = tuple(old.rstrip("/\\") or old for old, _ in self.pairs)

    def __bool__(self) -> bool:
        return bool(self._parsed)

    def followed_by(self, later: "PathMaps") -> "PathMaps":
        """Return maps with the effect of these and then the later ones."""
        own = [(old, later.path(new) or new) for old, new in self.pairs]
        return PathMaps([*own, *later.pairs])

    def path(self, path: str) -> str | None:
        """Return the new path; None if the path is not below an old folder."""
        parts = _parts(path)
        for old, new in self._parsed:
            if parts[: len(old)] == old:
                separator = "\\" if "\\" in new and "/" not in new else "/"
                return separator.join([new.rstrip("/\\"), *parts[len(old) :]]) or new
        return None


def _parts(path: str) -> list[str]:
    """Return the components of a path. A drive letter is in lower case, as in URIs."""
    path = _DRIVE.sub(lambda found: found[1].lower(), path, count=1) if _DRIVE.match(path) else path
    return path.replace("\\", "/").rstrip("/").split("/")

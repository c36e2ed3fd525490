"""The folder that a session belongs to. Names are compared with what paths would be called, never decoded."""

import re
from collections.abc import Iterable
from hashlib import md5
from pathlib import PurePosixPath, PureWindowsPath

from backscroll.model import Workspace
from backscroll.sources.cursor.uri import Address, parse_uri

__all__ = ["project_slugs", "project_workspace", "store_workspace"]

_RUNS = re.compile(r"-+")
_SEPARATORS = re.compile(r"[/\\:]+")
_NOT_ALNUM = re.compile(r"[^A-Za-z0-9]")


def store_workspace(
    cwd: str | None, uris: Iterable[str], hints: Iterable[str], *, folder_hash: str
) -> Workspace | None:
    """The folder of a store: what its metadata, its root and its context name, best the one its hash is of.

    ``folder_hash`` is the name of the folder that holds the session's, which for
    most stores is the MD5 of the path as the tool saw it.
    """
    named = [Address(cwd)] if cwd else []
    rooted = [found for uri in uris if (found := parse_uri(uri)) is not None]
    told = [Address(hint) for hint in hints]
    sources = (("meta.json", named), ("conversation root", rooted), ("context told to the model", told))
    for evidence, places in sources:
        for place in places:
            if _hash(place.path) == folder_hash:
                return Workspace(
                    place.path, place.authority, f"{evidence}, hash verified", storage_ids=(folder_hash,)
                )
    for evidence, places in sources:
        if places:
            return Workspace(places[0].path, places[0].authority, evidence)
    return None


def _hash(path: str) -> str:
    return md5(path.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def project_slugs(path: str) -> set[str]:
    """What a path may be called below ``projects/``: versions differ in which characters they replace."""
    bare = path.strip("/\\")
    if len(bare) > 1 and bare[1] == ":":
        bare = bare[0].lower() + bare[1:]
    by_separators = _SEPARATORS.sub("-", bare)
    by_letters = _NOT_ALNUM.sub("-", bare)
    return {
        by_separators,
        _RUNS.sub("-", by_separators).strip("-"),
        by_letters.strip("-"),
        _RUNS.sub("-", by_letters).strip("-"),
    }


def project_workspace(slug: str, known: Iterable[str], mentioned: Iterable[str]) -> Workspace | None:
    """The folder of a transcript: a known path, or one above a path mentioned in it, of that name."""
    for path in known:
        if slug in project_slugs(path):
            return Workspace(path, evidence="project name, path known from another session")
    for path in mentioned:
        pure = PureWindowsPath(path) if re.match(r"[A-Za-z]:|\\\\", path) else PurePosixPath(path)
        if not pure.is_absolute():
            continue
        for folder in (pure, *pure.parents):
            if slug in project_slugs(str(folder)):
                return Workspace(str(folder), evidence="project name, path used in the session")
    return None

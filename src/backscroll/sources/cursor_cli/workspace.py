"""Find the workspace of a session. Slugs are compared with those of known paths, never decoded."""

import re
from collections.abc import Iterable
from hashlib import md5
from pathlib import PurePosixPath, PureWindowsPath

from backscroll.model.workspace import Workspace
from backscroll.sources.cursor.uri import Address, parse_uri

_HYPHENS = re.compile(r"-+")
_SEPARATORS = re.compile(r"[/\\:]+")
_NOT_ALNUM = re.compile(r"[^A-Za-z0-9]")


def store_workspace(
    cwd: str | None, uris: Iterable[str], context_paths: Iterable[str], *, folder_name: str
) -> Workspace | None:
    """Return the workspace of a store, from its metadata, its root or its context.

    A path that matches ``folder_name`` is preferred. This is the name of the folder that contains the
    session's folder: for most stores, the MD5 of the workspace path.
    """
    in_metadata = [Address(cwd)] if cwd else []
    in_root = [address for uri in uris if (address := parse_uri(uri)) is not None]
    in_context = [Address(path) for path in context_paths]
    sources = (("meta.json", in_metadata), ("conversation root", in_root), ("prompt context", in_context))
    for evidence, addresses in sources:
        for address in addresses:
            if folder_hash(address.path) == folder_name:
                return Workspace(
                    address.path, address.authority, f"{evidence}, hash verified", storage_ids=(folder_name,)
                )
    for evidence, addresses in sources:
        if addresses:
            return Workspace(addresses[0].path, addresses[0].authority, evidence)
    return None


def folder_hash(path: str) -> str:
    """Return the name below ``chats/`` of the sessions with a working directory."""
    return md5(path.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def project_slugs(path: str) -> tuple[str, ...]:
    """Return the possible names of a path below ``projects/``, one per rule of a version."""
    stripped = path.strip("/\\")
    if len(stripped) > 1 and stripped[1] == ":":
        stripped = stripped[0].lower() + stripped[1:]
    without_separators = _SEPARATORS.sub("-", stripped)
    without_punctuation = _NOT_ALNUM.sub("-", stripped)
    return (
        without_separators,
        _HYPHENS.sub("-", without_separators).strip("-"),
        without_punctuation.strip("-"),
        _HYPHENS.sub("-", without_punctuation).strip("-"),
    )


def moved_slug(slug: str, old_path: str, new_path: str) -> str:
    """Return the name of a new path below ``projects/``, by the rule that gave the old path its name."""
    slugs = zip(project_slugs(old_path), project_slugs(new_path), strict=True)
    return next((new for old, new in slugs if old == slug), project_slugs(new_path)[0])


def project_workspace(
    slug: str, known_paths: Iterable[str], mentioned_paths: Iterable[str]
) -> Workspace | None:
    """Return the workspace with a slug: a known path, or a mentioned path or one of its parents."""
    for path in known_paths:
        if slug in project_slugs(path):
            return Workspace(path, evidence="project name, path known from another session")
    for path in mentioned_paths:
        pure = PureWindowsPath(path) if re.match(r"[A-Za-z]:|\\\\", path) else PurePosixPath(path)
        if not pure.is_absolute():
            continue
        for folder in (pure, *pure.parents):
            if slug in project_slugs(str(folder)):
                return Workspace(str(folder), evidence="project name, path used in the session")
    return None

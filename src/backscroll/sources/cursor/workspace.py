"""Which folder a session belongs to, by the best of the records that name one."""

import os.path
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Raw

from backscroll.model import Workspace, normalize_path
from backscroll.sources.cursor.database.decode import Undecodable, as_list, as_map, as_text, decode, unwrap
from backscroll.sources.cursor.database.record_types import Composer, Head
from backscroll.sources.cursor.uri import Address, address
from backscroll.sources.cursor.user_data import Library

__all__ = ["Claims", "attribute", "from_files", "from_requests", "parent_of", "stored"]

_WORKTREES = re.compile(r"[\\/]\.cursor[\\/]worktrees[\\/]")
_LINK = re.compile(r"^gitdir:\s*(.+?)[\\/]\.git[\\/]worktrees[\\/]", re.MULTILINE)
_LARGEST_FILE = 1024 * 1024
_MOST_PARENTS = 8
_NOT_IN_SLUG = re.compile(r"[^A-Za-z0-9]+")


class Claims(NamedTuple):
    """The records of one session that may name its folder."""

    head: Head
    composer: Composer
    workspace_id: str = ""
    told: Callable[[], list[str]] = list  # folders that the agent was told it works in


def attribute(
    library: Library,
    session: str,
    claims: Claims,
    *,
    parent: str | None = None,
    claims_of: Callable[[str], Claims | None] = lambda _: None,
) -> Workspace | None:
    """The folder by the session's own records, the workspaces' lists, its checkout, or its parent."""
    first, seen = session, {session}
    for _ in range(_MOST_PARENTS):
        if found := _own(library, session, claims):
            if len(seen) > 1:
                found = Workspace(found.path, found.authority, "parent", found.folders, found.storage_ids)
            return _of_main_checkout(found, claims)
        if not parent or parent in seen:
            break
        seen.add(parent)
        after = claims_of(parent)
        if after is None:
            break
        session, claims = parent, after
        parent = parent_of(claims)
    return _from_transcript(library, first)


def parent_of(claims: Claims) -> str | None:
    """The session that started this one."""
    head, composer = claims.head, claims.composer
    for record in (head.subagent_info, composer.subagent_info):
        fields = as_map(record)
        for name in ("parentComposerId", "parentAgentId", "rootParentAgentId"):
            if found := as_text(fields.get(name)):
                return found
    for value in (head.parent_composer_id, composer.parent_composer_id, head.root_composer_id):
        if found := as_text(value):
            return found
    return None


def _own(library: Library, session: str, claims: Claims) -> Workspace | None:
    head, composer = claims.head, claims.composer
    for record in (head.workspace_identifier, composer.workspace_identifier):
        if found := _identified(library, as_map(record)):
            return found
    if claims.workspace_id and (found := stored(library, claims.workspace_id, "workspaceIdentifier.id")):
        return found
    project = library.heads().projects.get(session, {})
    if found := _identified(library, as_map(project.get("workspace"))):
        return Workspace(found.path, found.authority, "project", found.folders, found.storage_ids)
    for storage in library.members(session):
        if found := stored(library, storage, "workspace list"):
            return found
    if found := _from_checkout(library, head, composer):
        return found
    for uri in claims.told():
        if where := address(uri):
            return _workspace(library, where, "conversationState")
    return None


def _identified(library: Library, identifier: dict[str, Any]) -> Workspace | None:
    """``workspaceIdentifier``: a folder, the file of a multi-root workspace, or only an id."""
    name = as_text(identifier.get("id"))
    if found := address(identifier.get("uri")):
        return _workspace(library, found, "workspaceIdentifier.uri", name)
    if found := address(identifier.get("configPath")):
        return _multi_root(library, found, "workspaceIdentifier.configPath", name)
    return stored(library, name, "workspaceIdentifier.id") if name else None


def stored(library: Library, storage: str, evidence: str) -> Workspace | None:
    """The folder that a workspace id stands for, by its ``workspace.json``."""
    note = library.folders().get(storage)
    if note is None:
        return None
    if note.is_multi_root:
        return _multi_root(library, note.address, evidence, storage)
    return _workspace(library, note.address, evidence, storage)


def _workspace(library: Library, found: Address, evidence: str, storage: str = "") -> Workspace:
    return Workspace(found.path, found.authority, evidence, (), _storage_ids(library, found, storage))


def _multi_root(library: Library, found: Address, evidence: str, storage: str) -> Workspace:
    folders = tuple(_folders(found)) if not found.authority else ()
    return Workspace(found.path, found.authority, evidence, folders, _storage_ids(library, found, storage))


def _storage_ids(library: Library, found: Address, storage: str) -> tuple[str, ...]:
    ids = library.storage_ids(found)
    return tuple([storage] if storage and storage not in ids else []) + tuple(ids)


def _folders(config: Address) -> Iterator[str]:
    """The roots a ``.code-workspace`` file lists, when it is still there."""
    path = Path(config.path)
    try:
        if path.stat().st_size > _LARGEST_FILE:
            return
        fields = as_map(decode(Raw(path.read_bytes()), object))
    except (OSError, ValueError, Undecodable):
        return
    for folder in map(as_map, as_list(fields.get("folders"))):
        if found := address(folder.get("uri")):
            yield found.path
        elif name := as_text(folder.get("path")):
            yield os.path.normpath(path.parent / name)


def _from_checkout(library: Library, head: Head, composer: Composer) -> Workspace | None:
    environment = as_map(as_map(head.agent_location or composer.agent_location).get("environment"))
    if found := address(environment.get("uri")):
        return _workspace(library, found, "agentLocation")
    if found := address(as_map(composer.git_worktree).get("worktreePath")):
        return _workspace(library, found, "gitWorktree")
    for repos in (head.tracked_git_repos, composer.tracked_git_repos):
        for repo in as_list(repos)[:1]:
            if found := address(as_map(repo).get("repoPath")):
                return _workspace(library, found, "trackedGitRepos")
    return None


def _of_main_checkout(found: Workspace, claims: Claims) -> Workspace:
    """A worktree belongs to the repository it was made from, where a record or git itself says which."""
    if found.authority or not _WORKTREES.search(found.path):
        return found
    for repos in (claims.head.tracked_git_repos, claims.composer.tracked_git_repos):
        for repo in map(as_map, as_list(repos)):
            main = address(repo.get("repoPath"))
            if main and not _WORKTREES.search(main.path):
                return Workspace(main.path, main.authority, "worktree of", (found.path,), found.storage_ids)
    try:
        link = _LINK.search((Path(found.path) / ".git").read_text("utf-8", "replace"))
    except (OSError, ValueError):
        link = None
    if link is None:
        return found
    return Workspace(link[1], "", "worktree of", (found.path,), found.storage_ids)


def _from_transcript(library: Library, session: str) -> Workspace | None:
    """A known folder whose name, as transcripts spell it, the agent wrote this session's transcript below."""
    slugs = library.slugs(session)
    if not slugs:
        return None
    spelled = {_NOT_IN_SLUG.sub("-", slug).strip("-").lower() for slug in slugs}
    for storage, note in library.folders().items():
        if _NOT_IN_SLUG.sub("-", normalize_path(note.address.path)).strip("-").lower() in spelled:
            return stored(library, storage, "transcript")
    return None


def from_requests(library: Library, values: Iterable[bytes]) -> Workspace | None:
    """The folder whose layout was sent along with a request."""
    for value in values:
        try:
            fields = as_map(decode(value, object))
        except Undecodable:
            continue
        for layout in as_list(fields.get("projectLayouts")):
            root = as_map(unwrap(layout)).get("rootPath")
            if found := address(root):
                return _workspace(library, found, "messageRequestContext")
    return None


def from_files(library: Library, files: Iterable[str]) -> Workspace | None:
    """The folder that holds every file the session named, unless that is no folder of its own."""
    parts: list[str] | None = None
    folders: list[list[str]] = []  # named as such
    number = 0
    for file in files:
        found = address(file)
        if found is None or found.authority:
            continue
        number += 1
        folder = normalize_path(found.path).split("/")
        if file.endswith("/"):
            folders.append(folder)
        else:
            folder = folder[:-1]
        if parts is None:
            parts = folder
        else:
            same = zip(parts, folder, strict=False)
            parts = parts[
                : next((n for n, (a, b) in enumerate(same) if a != b), min(len(parts), len(folder)))
            ]
    if not parts or (parts not in folders and (number < 2 or len(parts) < 4)):
        return None
    return _workspace(library, Address("/".join(parts)), "common folder of its files")

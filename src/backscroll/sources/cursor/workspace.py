"""Which folder a session belongs to, by the best of the records that name one."""

import os.path
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Raw

from backscroll.model import Workspace, normalize_path
from backscroll.sources.cursor.database.decode import (
    UndecodableError,
    as_list,
    as_map,
    as_text,
    decode,
    unwrap,
)
from backscroll.sources.cursor.database.record_types import Composer, ComposerHeader
from backscroll.sources.cursor.uri import Address, parse_uri
from backscroll.sources.cursor.user_data import UserData

__all__ = ["WorkspaceRecords", "find_workspace", "from_files", "from_requests", "from_storage", "parent_id"]

_WORKTREES = re.compile(r"[\\/]\.cursor[\\/]worktrees[\\/]")
_LINK = re.compile(r"^gitdir:\s*(.+?)[\\/]\.git[\\/]worktrees[\\/]", re.MULTILINE)
_LARGEST_FILE = 1024 * 1024
_MOST_PARENTS = 8
_NOT_IN_SLUG = re.compile(r"[^A-Za-z0-9]+")


class WorkspaceRecords(NamedTuple):
    """The records of one session that may name its folder."""

    header: ComposerHeader
    composer: Composer
    workspace_id: str = ""
    told: Callable[[], list[str]] = list  # folders that the agent was told it works in


def find_workspace(
    user_data: UserData,
    session: str,
    records: WorkspaceRecords,
    *,
    parent: str | None = None,
    records_of: Callable[[str], WorkspaceRecords | None] = lambda _: None,
) -> Workspace | None:
    """The folder by the session's own records, the workspaces' lists, its checkout, or its parent."""
    first, seen = session, {session}
    for _ in range(_MOST_PARENTS):
        if found := _own(user_data, session, records):
            if len(seen) > 1:
                found = Workspace(found.path, found.authority, "parent", found.folders, found.storage_ids)
            return _of_main_checkout(found, records)
        if not parent or parent in seen:
            break
        seen.add(parent)
        after = records_of(parent)
        if after is None:
            break
        session, records = parent, after
        parent = parent_id(records)
    return _from_transcript(user_data, first)


def parent_id(records: WorkspaceRecords) -> str | None:
    """The session that started this one."""
    header, composer = records.header, records.composer
    for record in (header.subagent_info, composer.subagent_info):
        fields = as_map(record)
        for name in ("parentComposerId", "parentAgentId", "rootParentAgentId"):
            if found := as_text(fields.get(name)):
                return found
    for value in (header.parent_composer_id, composer.parent_composer_id, header.root_composer_id):
        if found := as_text(value):
            return found
    return None


def _own(user_data: UserData, session: str, records: WorkspaceRecords) -> Workspace | None:
    header, composer = records.header, records.composer
    for record in (header.workspace_identifier, composer.workspace_identifier):
        if found := _identified(user_data, as_map(record)):
            return found
    if records.workspace_id and (
        found := from_storage(user_data, records.workspace_id, "workspaceIdentifier.id")
    ):
        return found
    project = user_data.global_list().projects.get(session, {})
    if found := _identified(user_data, as_map(project.get("workspace"))):
        return Workspace(found.path, found.authority, "project", found.folders, found.storage_ids)
    for storage in user_data.members(session):
        if found := from_storage(user_data, storage, "workspace list"):
            return found
    if found := _from_checkout(user_data, header, composer):
        return found
    for uri in records.told():
        if where := parse_uri(uri):
            return _workspace(user_data, where, "conversationState")
    return None


def _identified(user_data: UserData, identifier: dict[str, Any]) -> Workspace | None:
    """``workspaceIdentifier``: a folder, the file of a multi-root workspace, or only an id."""
    name = as_text(identifier.get("id"))
    if found := parse_uri(identifier.get("uri")):
        return _workspace(user_data, found, "workspaceIdentifier.uri", name)
    if found := parse_uri(identifier.get("configPath")):
        return _multi_root(user_data, found, "workspaceIdentifier.configPath", name)
    return from_storage(user_data, name, "workspaceIdentifier.id") if name else None


def from_storage(user_data: UserData, storage: str, evidence: str) -> Workspace | None:
    """The folder that a workspace id stands for, by its ``workspace.json``."""
    note = user_data.folders().get(storage)
    if note is None:
        return None
    if note.is_multi_root:
        return _multi_root(user_data, note.folder, evidence, storage)
    return _workspace(user_data, note.folder, evidence, storage)


def _workspace(user_data: UserData, found: Address, evidence: str, storage: str = "") -> Workspace:
    return Workspace(found.path, found.authority, evidence, (), _storage_ids(user_data, found, storage))


def _multi_root(user_data: UserData, found: Address, evidence: str, storage: str) -> Workspace:
    folders = tuple(_folders(found)) if not found.authority else ()
    return Workspace(found.path, found.authority, evidence, folders, _storage_ids(user_data, found, storage))


def _storage_ids(user_data: UserData, found: Address, storage: str) -> tuple[str, ...]:
    ids = user_data.storage_ids(found)
    return tuple([storage] if storage and storage not in ids else []) + tuple(ids)


def _folders(config: Address) -> Iterator[str]:
    """The roots a ``.code-workspace`` file lists, when it is still there."""
    path = Path(config.path)
    try:
        if path.stat().st_size > _LARGEST_FILE:
            return
        fields = as_map(decode(Raw(path.read_bytes()), object))
    except (OSError, ValueError, UndecodableError):
        return
    for folder in map(as_map, as_list(fields.get("folders"))):
        if found := parse_uri(folder.get("uri")):
            yield found.path
        elif name := as_text(folder.get("path")):
            yield os.path.normpath(path.parent / name)


def _from_checkout(user_data: UserData, header: ComposerHeader, composer: Composer) -> Workspace | None:
    environment = as_map(as_map(header.agent_location or composer.agent_location).get("environment"))
    if found := parse_uri(environment.get("uri")):
        return _workspace(user_data, found, "agentLocation")
    if found := parse_uri(as_map(composer.git_worktree).get("worktreePath")):
        return _workspace(user_data, found, "gitWorktree")
    for repos in (header.tracked_git_repos, composer.tracked_git_repos):
        for repo in as_list(repos)[:1]:
            if found := parse_uri(as_map(repo).get("repoPath")):
                return _workspace(user_data, found, "trackedGitRepos")
    return None


def _of_main_checkout(found: Workspace, records: WorkspaceRecords) -> Workspace:
    """A worktree belongs to the repository it was made from, where a record or git itself says which."""
    if found.authority or not _WORKTREES.search(found.path):
        return found
    for repos in (records.header.tracked_git_repos, records.composer.tracked_git_repos):
        for repo in map(as_map, as_list(repos)):
            main = parse_uri(repo.get("repoPath"))
            if main and not _WORKTREES.search(main.path):
                return Workspace(main.path, main.authority, "worktree of", (found.path,), found.storage_ids)
    try:
        link = _LINK.search((Path(found.path) / ".git").read_text("utf-8", "replace"))
    except (OSError, ValueError):
        link = None
    if link is None:
        return found
    return Workspace(link[1], "", "worktree of", (found.path,), found.storage_ids)


def _from_transcript(user_data: UserData, session: str) -> Workspace | None:
    """A known folder whose name, as transcripts spell it, the agent wrote this session's transcript below."""
    slugs = user_data.slugs(session)
    if not slugs:
        return None
    spelled = {_NOT_IN_SLUG.sub("-", slug).strip("-").lower() for slug in slugs}
    for storage, note in user_data.folders().items():
        if _NOT_IN_SLUG.sub("-", normalize_path(note.folder.path)).strip("-").lower() in spelled:
            return from_storage(user_data, storage, "transcript")
    return None


def from_requests(user_data: UserData, values: Iterable[bytes]) -> Workspace | None:
    """The folder whose layout was sent along with a request."""
    for value in values:
        try:
            fields = as_map(decode(value, object))
        except UndecodableError:
            continue
        for layout in as_list(fields.get("projectLayouts")):
            root = as_map(unwrap(layout)).get("rootPath")
            if found := parse_uri(root):
                return _workspace(user_data, found, "messageRequestContext")
    return None


def from_files(user_data: UserData, files: Iterable[str]) -> Workspace | None:
    """The folder that holds every file the session named, unless that is no folder of its own."""
    parts: list[str] | None = None
    folders: list[list[str]] = []  # named as such
    number = 0
    for file in files:
        found = parse_uri(file)
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
    return _workspace(user_data, Address("/".join(parts)), "common folder of its files")

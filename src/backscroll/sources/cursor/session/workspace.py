"""Find the folder of a session, from the best of the records that name one."""

import os.path
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Raw

from backscroll.model.workspace import Workspace, normalize_path
from backscroll.sources.cursor.database.decode import (
    UndecodableError,
    as_list,
    as_map,
    as_text,
    decode,
    unwrap,
)
from backscroll.sources.cursor.database.records import Composer, ComposerHeader
from backscroll.sources.cursor.uri import Address, parse_uri
from backscroll.sources.cursor.user_data import UserData

_WORKTREES = re.compile(r"[\\/]\.cursor[\\/]worktrees[\\/]")
_WORKTREE_LINK = re.compile(r"^gitdir:\s*(.+?)[\\/]\.git[\\/]worktrees[\\/]", re.MULTILINE)
_MAX_FILE_BYTES = 1024 * 1024
_MAX_PARENTS = 8
_MIN_FILES = 2  # from which a common folder is derived
_MIN_FOLDER_PARTS = 4  # of "/home/user/folder"; a shorter path is too general
_NOT_IN_SLUG = re.compile(r"[^A-Za-z0-9]+")


class WorkspaceRecords(NamedTuple):
    """Records of one session that may name its folder."""

    header: ComposerHeader
    composer: Composer
    workspace_id: str = ""
    agent_folder_uris: Callable[[], list[str]] = list  # folders in the agent's context


def find_workspace(
    user_data: UserData,
    session_id: str,
    records: WorkspaceRecords,
    *,
    parent_id: str | None = None,
    records_of: Callable[[str], WorkspaceRecords | None] = lambda _: None,
) -> Workspace | None:
    """Return the folder of a session from its own records, its parents or its transcript."""
    first_id, seen = session_id, {session_id}
    for _ in range(_MAX_PARENTS):
        if found := _from_own_records(user_data, session_id, records):
            if len(seen) > 1:
                found = Workspace(found.path, found.authority, "parent", found.folders, found.storage_ids)
            return _resolve_worktree(found, records)
        if not parent_id or parent_id in seen:
            break
        seen.add(parent_id)
        parent_records = records_of(parent_id)
        if parent_records is None:
            break
        session_id, records = parent_id, parent_records
        parent_id = find_parent_id(records)
    return _from_transcript(user_data, first_id)


def find_parent_id(records: WorkspaceRecords) -> str | None:
    """Return the id of the session that started this one."""
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


def _from_own_records(user_data: UserData, session_id: str, records: WorkspaceRecords) -> Workspace | None:
    header, composer = records.header, records.composer
    for record in (header.workspace_identifier, composer.workspace_identifier):
        if found := _from_identifier(user_data, as_map(record)):
            return found
    if records.workspace_id and (
        found := from_storage(user_data, records.workspace_id, "workspaceIdentifier.id")
    ):
        return found
    project = user_data.global_list().projects.get(session_id, {})
    if found := _from_identifier(user_data, as_map(project.get("workspace"))):
        return Workspace(found.path, found.authority, "project", found.folders, found.storage_ids)
    for storage_id in user_data.session_storage_ids(session_id):
        if found := from_storage(user_data, storage_id, "workspace list"):
            return found
    if found := _from_checkout(user_data, header, composer):
        return found
    for uri in records.agent_folder_uris():
        if folder := parse_uri(uri):
            return _workspace(user_data, folder, "conversationState")
    return None


def _from_identifier(user_data: UserData, identifier: dict[str, Any]) -> Workspace | None:
    """Parse ``workspaceIdentifier``: a folder, the file of a multi-root workspace, or only a storage id."""
    storage_id = as_text(identifier.get("id"))
    if found := parse_uri(identifier.get("uri")):
        return _workspace(user_data, found, "workspaceIdentifier.uri", storage_id)
    if found := parse_uri(identifier.get("configPath")):
        return _multi_root(user_data, found, "workspaceIdentifier.configPath", storage_id)
    return from_storage(user_data, storage_id, "workspaceIdentifier.id") if storage_id else None


def from_storage(user_data: UserData, storage_id: str, evidence: str) -> Workspace | None:
    """Return the folder of a storage id, from its ``workspace.json``."""
    file = user_data.workspace_files().get(storage_id)
    if file is None:
        return None
    if file.is_multi_root:
        return _multi_root(user_data, file.folder, evidence, storage_id)
    return _workspace(user_data, file.folder, evidence, storage_id)


def _workspace(user_data: UserData, found: Address, evidence: str, storage_id: str = "") -> Workspace:
    return Workspace(found.path, found.authority, evidence, (), _storage_ids(user_data, found, storage_id))


def _multi_root(user_data: UserData, found: Address, evidence: str, storage_id: str) -> Workspace:
    folders = tuple(_multi_root_folders(found)) if not found.authority else ()
    return Workspace(
        found.path, found.authority, evidence, folders, _storage_ids(user_data, found, storage_id)
    )


def _storage_ids(user_data: UserData, found: Address, storage_id: str) -> tuple[str, ...]:
    ids = user_data.folder_storage_ids(found)
    return tuple([storage_id] if storage_id and storage_id not in ids else []) + tuple(ids)


def _multi_root_folders(config: Address) -> Iterator[str]:
    """Return the folders in a ``.code-workspace`` file, if it still exists."""
    path = Path(config.path)
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
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


def _resolve_worktree(found: Workspace, records: WorkspaceRecords) -> Workspace:
    """Replace a worktree by the main checkout of its repository, if a record or git names it."""
    if found.authority or not _WORKTREES.search(found.path):
        return found
    for repos in (records.header.tracked_git_repos, records.composer.tracked_git_repos):
        for repo in map(as_map, as_list(repos)):
            main = parse_uri(repo.get("repoPath"))
            if main and not _WORKTREES.search(main.path):
                return Workspace(main.path, main.authority, "worktree of", (found.path,), found.storage_ids)
    try:
        link = _WORKTREE_LINK.search((Path(found.path) / ".git").read_text("utf-8", "replace"))
    except (OSError, ValueError):
        link = None
    if link is None:
        return found
    return Workspace(link[1], "", "worktree of", (found.path,), found.storage_ids)


def _from_transcript(user_data: UserData, session_id: str) -> Workspace | None:
    """Return the known folder that matches the project folder of the session's transcript."""
    slugs = user_data.transcript_slugs(session_id)
    if not slugs:
        return None
    names = {_NOT_IN_SLUG.sub("-", slug).strip("-").lower() for slug in slugs}
    for storage_id, file in user_data.workspace_files().items():
        if _NOT_IN_SLUG.sub("-", normalize_path(file.folder.path)).strip("-").lower() in names:
            return from_storage(user_data, storage_id, "transcript")
    return None


def from_requests(user_data: UserData, values: Iterable[bytes]) -> Workspace | None:
    """Return the folder from a project layout that was sent with a request."""
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
    """Return the common folder of all files that the session names, unless it is too general."""
    parts: list[str] | None = None
    folders: list[list[str]] = []  # named as a folder, not as a file
    file_count = 0
    for file in files:
        found = parse_uri(file)
        if found is None or found.authority:
            continue
        file_count += 1
        folder = normalize_path(found.path).split("/")
        if file.endswith("/"):
            folders.append(folder)
        else:
            folder = folder[:-1]
        if parts is None:
            parts = folder
        else:
            pairs = zip(parts, folder, strict=False)
            parts = parts[
                : next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(parts), len(folder)))
            ]
    if not parts or (parts not in folders and (file_count < _MIN_FILES or len(parts) < _MIN_FOLDER_PARTS)):
        return None
    return _workspace(user_data, Address("/".join(parts)), "common folder of its files")

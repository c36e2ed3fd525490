"""Find workspaces by path, folder name, end of a path, or host, and read what is known about one.

A name may contain ``*``, which matches any text. No other character is special.
"""

import sqlite3
from collections.abc import Iterator, Sequence

from msgspec import Struct

from backscroll.archive.connection import text_list
from backscroll.errors import WorkspaceNotFoundError
from backscroll.model.store import stores_with
from backscroll.model.workspace import normalize_path

# A loose index scan: one index lookup per distinct hash, regardless of the number of sessions.
_KNOWN_WORKSPACES = """
with recursive distinct_hash(hash) as (
    select min(workspace_hash) from conversations where workspace_hash is not null
    union all
    select (select min(workspace_hash) from conversations where workspace_hash > distinct_hash.hash)
    from distinct_hash where distinct_hash.hash is not null
)
select d.hash, c.workspace_path, c.workspace_name, json_extract(c.metadata, '$.workspace_authority')
from distinct_hash d join conversations c on c.rowid =
    (select rowid from conversations where workspace_hash = d.hash limit 1)
where c.workspace_path is not null
"""
# Local folders with sessions that are in a tool's store, or of which the archive has the records.
_WORKSPACES_TO_MOVE = """
select c.workspace_path, c.source, count(*) from conversations c
where c.workspace_path is not null and json_extract(c.metadata, '$.workspace_authority') is null
    and (not c.is_gone or c.visibility in ('listed', 'archived')) and exists (
        select 1 from fragment f join unit u on u.id = f.unit_id
        where f.platform = c.platform and f.external_id = c.external_id and u.is_gone = c.is_gone
            and u.source = c.source
            and f.store in {stores}
    )
group by c.workspace_path, c.source order by c.workspace_path, c.source
"""
_IS_LOCAL_WORKSPACE = "c.workspace_path = ? and json_extract(c.metadata, '$.workspace_authority') is null"
_SESSION_FRAGMENTS = (
    "fragment_session f join conversations c"
    " on c.external_id = f.session_external_id and c.platform = f.platform"
)
_WINDOW_PREFIX = "workspace:"
_MAX_EDITED_PATHS = 5000
_MAX_FRAGMENTS = 200


class WorkspaceFacts(Struct, frozen=True):
    """What the archive knows about a folder, which need not exist."""

    path: str
    storage_ids: tuple[str, ...]  # Cursor's ids of the folder, computed from its path and inode
    pull_requests: tuple[str, ...]  # URLs
    edited_paths: tuple[str, ...]  # as the tools stored them, the most often edited first
    fragment_ids: tuple[int, ...]  # of its sessions, the newest first


class WorkspaceQueries:
    """Reads what is known about the folders of sessions on this machine."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def with_movable_sessions(self) -> dict[str, dict[str, int]]:
        """Return the folders with sessions that can be moved: the number of sessions by source.

        They are in a tool's store, or the tool has deleted them.
        """
        sql = _WORKSPACES_TO_MOVE.format(stores=text_list(stores_with("records")))
        found: dict[str, dict[str, int]] = {}
        for path, source, count in self._db.execute(sql):
            found.setdefault(path, {})[source] = count
        return found

    def facts(self, path: str) -> WorkspaceFacts:
        """Return what is known about a folder."""
        storages = self._db.execute(
            "select external_session_id from cursor_sessions where workspace_path = ?", [path]
        )
        requests = self._db.execute(
            "select distinct r.value from conversations c, json_each(c.metadata, '$.pull_requests') r"  # noqa: S608
            f" where {_IS_LOCAL_WORKSPACE}",
            [path],
        )
        edited = self._db.execute(
            f"select e.path from {_SESSION_FRAGMENTS} join edit e on e.fragment_id = f.fragment_id"  # noqa: S608
            f" where {_IS_LOCAL_WORKSPACE} group by e.path order by count(*) desc, e.path limit ?",
            [path, _MAX_EDITED_PATHS],
        )
        fragments = self._db.execute(
            f"select f.fragment_id from {_SESSION_FRAGMENTS} where {_IS_LOCAL_WORKSPACE}"  # noqa: S608
            " order by c.updated_at desc, f.fragment_id limit ?",
            [path, _MAX_FRAGMENTS],
        )
        return WorkspaceFacts(
            path=path,
            storage_ids=tuple(
                id_.removeprefix(_WINDOW_PREFIX) for (id_,) in storages if id_.startswith(_WINDOW_PREFIX)
            ),
            pull_requests=tuple(url for (url,) in requests if isinstance(url, str)),
            edited_paths=tuple(edited_path for (edited_path,) in edited),
            fragment_ids=tuple(id_ for (id_,) in fragments),
        )


class KnownWorkspace(Struct, frozen=True):
    """A workspace of the archive and the names that it can be found by."""

    hash: str
    path: str
    name: str
    host: str  # empty for this machine

    @property
    def label(self) -> str:
        return f"{self.host}:{self.path}" if self.host else self.path

    def names(self) -> Iterator[str]:
        """Return all names that a wildcard is compared with."""
        path = _fold(self.path)
        yield path
        yield self.name.casefold()
        for host in self._hosts():
            yield from (host, f"{host}:{path}")
        while path := path.partition("/")[2]:
            yield path

    def has_path(self, name: str) -> bool:
        if "/" not in name:
            return False
        path = _fold(self.path)
        return name == path or name in {f"{host}:{path}" for host in self._hosts()}

    def has_name(self, name: str) -> bool:
        return name == self.name.casefold()

    def has_host(self, name: str) -> bool:
        return name in self._hosts()

    def _hosts(self) -> tuple[str, ...]:
        """Return the host as stored by the tool (``ssh-remote+gauge-box``) and without its prefix."""
        if not self.host:
            return ()
        host = self.host.casefold()
        return host, host.rpartition("+")[2]


def known_workspaces(db: sqlite3.Connection) -> list[KnownWorkspace]:
    """Return all workspaces of the archive."""
    return [
        KnownWorkspace(hash_, path, name or "", authority or "")
        for hash_, path, name, authority in db.execute(_KNOWN_WORKSPACES)
    ]


def workspace_hashes(db: sqlite3.Connection, name: str, *, is_strict: bool = True) -> list[str]:
    """Return the hashes of the workspaces that a name refers to. See `find_workspaces`."""
    return find_workspaces(known_workspaces(db), name, is_strict=is_strict)


def find_workspaces(workspaces: Sequence[KnownWorkspace], name: str, *, is_strict: bool = True) -> list[str]:
    """Return the hashes of the workspaces that a name refers to.

    Several workspaces can share a path, a name or a host, or match a ``*``. If several paths only end
    with the name, raises `WorkspaceNotFoundError` with the candidates, unless `is_strict` is false.
    """
    folded = _fold(name)
    if "*" in folded:
        return [
            workspace.hash
            for workspace in workspaces
            if any(matches_pattern(known, folded) for known in workspace.names())
        ]
    for has in (KnownWorkspace.has_path, KnownWorkspace.has_name, KnownWorkspace.has_host):
        if found := [workspace.hash for workspace in workspaces if has(workspace, folded)]:
            return found
    suffix = f"/{folded.strip('/')}"
    candidates = [workspace for workspace in workspaces if _fold(workspace.path).endswith(suffix)]
    if len(candidates) > 1 and is_strict:
        labels = "\n".join(sorted(f"  {workspace.label}" for workspace in candidates))
        raise WorkspaceNotFoundError(
            f"{name!r} matches several workspaces. Write more of the path:\n{labels}", name
        )
    return [workspace.hash for workspace in candidates]


def _fold(path: str) -> str:
    return normalize_path(path).replace("\\", "/").casefold()


def matches_pattern(text: str, pattern: str) -> bool:
    """Return whether a pattern matches the whole text."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *middle, last = others
    if not text.startswith(first) or not text.endswith(last):
        return False
    position, end = len(first), len(text) - len(last)
    for part in middle:
        position = text.find(part, position, end) + len(part)
        if position < len(part):
            return False
    return position <= end


def glob_pattern(pattern: str) -> str:
    """Return a pattern for SQLite's ``glob``."""
    return "".join(f"[{char}]" if char in "[?" else char for char in pattern)


def like_pattern(pattern: str) -> str:
    r"""Return a pattern for SQLite's ``like`` with the escape character ``\``."""
    escaped = "".join(f"\\{char}" if char in "\\%_" else char for char in pattern)
    return escaped.replace("*", "%")

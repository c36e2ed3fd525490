"""Workspaces as people call them: by path, by the folder's name, by the end of a path, by the host."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from backscroll.archive.query.wildcards import fits
from backscroll.errors import WorkspaceNotFoundError
from backscroll.model import normalised
from backscroll.model.workspace import WorkspaceSummary

__all__ = ["Known", "every_workspace", "known_workspaces", "meant", "workspace_hashes", "workspaces_of"]

# Every hash once: each is found by a step in the index, however many sessions the one before has.
_EVERY = """
with recursive one(hash) as (
    select min(workspace_hash) from conversations where workspace_hash is not null
    union all
    select (select min(workspace_hash) from conversations where workspace_hash > one.hash)
    from one where one.hash is not null
)
select one.hash, c.workspace_path, c.workspace_name, json_extract(c.metadata, '$.workspace_authority')
from one join conversations c on c.rowid =
    (select rowid from conversations where workspace_hash = one.hash limit 1)
where c.workspace_path is not null
"""


class Known(Struct, frozen=True):
    """A workspace as it may be called."""

    hash: str
    path: str
    name: str
    host: str  # empty for this machine

    @property
    def spelled(self) -> str:
        return f"{self.host}:{self.path}" if self.host else self.path


def workspace_hashes(db: sqlite3.Connection, called: str, *, is_strict: bool = True) -> list[str]:
    """The workspaces that somebody may mean; several when they share a name, path or host, or fit a ``*``.

    When the end of a path fits several, raises `WorkspaceNotFoundError` with the candidates if strict.
    """
    return meant(known_workspaces(db), called, is_strict=is_strict)


def known_workspaces(db: sqlite3.Connection) -> list[Known]:
    """Every workspace that somebody may mean."""
    return [_known(row) for row in db.execute(_EVERY)]


def meant(every: Sequence[Known], called: str, *, is_strict: bool = True) -> list[str]:
    """The same as `workspace_hashes`, of workspaces that are known already."""
    wanted = _folded(called)
    if "*" in wanted:
        return [one.hash for one in every if any(fits(name, wanted) for name in _names(one))]
    for is_it in (_is_path, _is_name, _is_host):
        if found := [one for one in every if is_it(one, wanted)]:
            return [one.hash for one in found]
    ending = f"/{wanted.strip('/')}"
    found = [one for one in every if _folded(one.path).endswith(ending)]
    if len(found) > 1 and is_strict:
        names = "\n".join(sorted(f"  {one.spelled}" for one in found))
        raise WorkspaceNotFoundError(
            f"{called!r} may be any of these workspaces; write more of the path:\n{names}", called
        )
    return [one.hash for one in found]


def every_workspace(db: sqlite3.Connection) -> list[WorkspaceSummary]:
    """Every workspace that a listed session belongs to, the one used last first."""
    rows = db.execute(
        "select workspace_path, workspace_name, json_extract(metadata, '$.workspace_authority'), count(*),"
        " max(updated_at) from conversations where visibility in ('listed', 'archived')"
        " and workspace_path is not null group by workspace_hash order by 5 desc, 1"
    )
    return [
        WorkspaceSummary(
            path=path,
            name=name,
            host=authority or None,
            session_count=count,
            updated_at=datetime.fromisoformat(last) if last else None,
        )
        for path, name, authority, count, last in rows
    ]


def workspaces_of(db: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, str]:
    """The hash of the workspace that each session, and each subagent with it, belongs to."""
    rows = db.execute(
        "select number, workspace_hash from conversations"
        " where number in (select value from json_each(:many))"
        " union all select s.id, c.workspace_hash from subagent s join conversations c"
        " on c.external_id = s.parent_external_id and c.platform = s.platform"
        " where s.id in (select value from json_each(:many))",
        {"many": msgspec.json.encode(list(numbers)).decode()},
    )
    return {number: hash_ for number, hash_ in rows if hash_ is not None}


def _known(row: tuple[str, str, str | None, str | None]) -> Known:
    hash_, path, name, authority = row
    return Known(hash_, path, name or "", authority or "")


def _names(one: Known) -> Iterator[str]:
    """All that a workspace may be called."""
    path = _folded(one.path)
    yield path
    yield one.name.casefold()
    for host in _hosts(one) if one.host else ():
        yield from (host, f"{host}:{path}")
    while path := path.partition("/")[2]:
        yield path


def _is_path(one: Known, wanted: str) -> bool:
    if "/" not in wanted:
        return False
    path = _folded(one.path)
    return wanted == path or (bool(one.host) and wanted in {f"{host}:{path}" for host in _hosts(one)})


def _is_name(one: Known, wanted: str) -> bool:
    return wanted == one.name.casefold()


def _is_host(one: Known, wanted: str) -> bool:
    return bool(one.host) and wanted in _hosts(one)


def _hosts(one: Known) -> tuple[str, str]:
    """A host as the tool spells it, ``ssh-remote+gauge-box``, and as people do."""
    whole = one.host.casefold()
    return whole, whole.rpartition("+")[2]


def _folded(path: str) -> str:
    return normalised(path).replace("\\", "/").casefold()

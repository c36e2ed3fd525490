"""Change paths in a private copy of an archive, for another machine."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from backscroll.archive.derive.fragments import decode_closing, encode_closing
from backscroll.model.workspace import PathMaps, Workspace

NewRoot = Callable[[str, str], tuple[str, Callable[[str], str]] | None]


def relocate_units(db: sqlite3.Connection, new_root: NewRoot, maps: PathMaps) -> int:
    """Change root and path of units, and the workspaces of their sessions. Return the number of units.

    ``new_root`` takes source and root. It returns the new root and a function for the paths below it, which
    are relative with forward slashes; None if they stay as they are. Units that still exist are read again by
    the next sync: the folders in their files have changed, too.
    """
    db.execute("begin")
    count = 0
    for unit_id, source, root, path, earlier in db.execute(
        "select id, source, root, path, folder_maps from unit"
    ).fetchall():
        earlier_maps = PathMaps(msgspec.json.decode(earlier)) if earlier else PathMaps(())
        pairs = msgspec.json.encode(earlier_maps.followed_by(maps).pairs).decode()
        db.execute("update unit set folder_maps = ? where id = ?", [pairs, unit_id])
        _map_workspaces(db, unit_id, maps)
        if (found := new_root(source, root)) is None:
            continue
        target, new_path = found
        relative = path[len(root) :].replace("\\", "/").strip("/")
        db.execute(
            "update unit set root = ?, path = ?, fingerprint = iif(is_gone, fingerprint, '') where id = ?",
            [target, str(Path(target).joinpath(*new_path(relative).split("/"))), unit_id],
        )
        _relocate_rows(db, unit_id, new_path)
        count += 1
    db.execute(
        "delete from folder_fingerprint where (source, root, path) not in"
        " (select source, root, folder from unit where key = '')"
    )
    db.execute("commit")
    return count


def apply_folder_maps(db: sqlite3.Connection, unit_id: int) -> None:
    """Map the workspaces of a unit whose stored original was parsed again."""
    (pairs,) = db.execute("select folder_maps from unit where id = ?", [unit_id]).fetchone()
    if pairs:
        _map_workspaces(db, unit_id, PathMaps(msgspec.json.decode(pairs)))


def _map_workspaces(db: sqlite3.Connection, unit_id: int, maps: PathMaps) -> None:
    rows = db.execute("select id, closing from fragment where unit_id = ?", [unit_id]).fetchall()
    for fragment_id, body in rows:
        closing = decode_closing(body)
        if closing is None or closing.workspace is None:
            continue
        workspace = _new_workspace(closing.workspace, maps)
        if workspace != closing.workspace:
            db.execute(
                "update fragment set closing = ?, is_derived = 0 where id = ?",
                [encode_closing(replace(closing, workspace=workspace)), fragment_id],
            )


def _new_workspace(workspace: Workspace, maps: PathMaps) -> Workspace:
    if workspace.authority:  # on another host, which the maps do not concern
        return workspace
    return replace(
        workspace,
        path=maps.path(workspace.path) or workspace.path,
        folders=tuple(maps.path(folder) or folder for folder in workspace.folders),
    )


def _relocate_rows(db: sqlite3.Connection, unit_id: int, new_path: Callable[[str], str]) -> None:
    """Change the paths of side files and of rows from other files below the root."""
    paths = db.execute("select distinct path from raw_row where unit_id = ? and path <> ''", [unit_id])
    changes = [(new_path(path), unit_id, path) for (path,) in paths.fetchall()]
    db.executemany("update raw_row set path = ? where unit_id = ? and path = ?", changes)

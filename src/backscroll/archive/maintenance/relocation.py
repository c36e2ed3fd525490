"""Change the folders of sessions: for another machine, or of sessions that their tools have deleted."""

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from backscroll.archive.connection import text_list
from backscroll.archive.derive.fragments import decode_closing, encode_closing
from backscroll.archive.session_key import PARENT, SessionKey
from backscroll.model.store import prompt_log_kinds
from backscroll.model.workspace import PathMaps, mapped_workspace

_GONE_UNITS = (
    "select distinct u.id, u.folder_moves from fragment f join unit u on u.id = f.unit_id"  # noqa: S608
    f" where u.is_gone and u.kind not in {text_list(prompt_log_kinds())} and f.platform = :platform"
    " and (f.external_id = :id and not f.is_subagent"
    f" or {PARENT} = :id)"
)
NewRoot = Callable[[str, str], tuple[str, Callable[[str], str]] | None]


def relocate_units(db: sqlite3.Connection, new_root: NewRoot, maps: PathMaps) -> int:
    """Change root and path of units, and the workspaces of their sessions. Return the number of units.

    ``new_root`` takes source and root. It returns the new root and a function for the paths below it, which
    are relative with forward slashes; None if they stay as they are. Units that still exist are read again by
    the next sync: the folders in their files have changed, too.
    """
    db.execute("begin")
    count = 0
    for unit_id, source, root, path, earlier, moves in db.execute(
        "select id, source, root, path, folder_maps, folder_moves from unit"
    ).fetchall():
        earlier_maps = PathMaps(msgspec.json.decode(earlier)) if earlier else PathMaps(())
        pairs = msgspec.json.encode(earlier_maps.followed_by(maps).pairs).decode()
        db.execute("update unit set folder_maps = ? where id = ?", [pairs, unit_id])
        if moves is not None:
            mapped = [[maps.path(one) or one for one in move] for move in msgspec.json.decode(moves)]
            _save_moves(db, unit_id, mapped)
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


def move_sessions(
    db: sqlite3.Connection, sessions: Iterable[SessionKey], before: str, after: str, *, is_undo: bool
) -> None:
    """Move sessions that their tools have deleted from one folder to another, or undo such a move.

    Only units that are gone are changed. Repeating either has no effect. Undo also moves back what a restore,
    which was undone, had written for the new folder.
    """
    move, inverse = [before, after], [after, before]
    for session in sessions:
        key = {"platform": session.platform, "id": session.id}
        for unit_id, moves in db.execute(_GONE_UNITS, key).fetchall():
            known = msgspec.json.decode(moves) if moves is not None else []
            if not is_undo:
                if known[-1:] != [move]:
                    _save_moves(db, unit_id, [*known, move])
            elif known[-1:] == [move]:
                _save_moves(db, unit_id, known[:-1])
            elif after in _workspaces(db, unit_id, known):
                _save_moves(db, unit_id, [*known, inverse])


def _workspaces(db: sqlite3.Connection, unit_id: int, moves: Iterable[tuple[str, str]]) -> set[str]:
    """Return the folders of the sessions in a unit, after moves."""
    maps = PathMaps(()).followed_by_each(moves)
    rows = db.execute("select closing from fragment where unit_id = ?", [unit_id])
    closings = [decode_closing(body) for (body,) in rows]
    found = [one.workspace for one in closings if one is not None and one.workspace is not None]
    return {mapped_workspace(one, maps).path for one in found}


def _save_moves(db: sqlite3.Connection, unit_id: int, moves: list[list[str]]) -> None:
    value = msgspec.json.encode(moves).decode() if moves else None
    db.execute("update unit set folder_moves = ? where id = ?", [value, unit_id])
    db.execute("update fragment set is_derived = 0 where unit_id = ?", [unit_id])


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
        workspace = mapped_workspace(closing.workspace, maps)
        if workspace != closing.workspace:
            db.execute(
                "update fragment set closing = ?, is_derived = 0 where id = ?",
                [encode_closing(replace(closing, workspace=workspace)), fragment_id],
            )


def _relocate_rows(db: sqlite3.Connection, unit_id: int, new_path: Callable[[str], str]) -> None:
    """Change the paths of side files and of rows from other files below the root."""
    paths = db.execute("select distinct path from raw_row where unit_id = ? and path <> ''", [unit_id])
    changes = [(new_path(path), unit_id, path) for (path,) in paths.fetchall()]
    db.executemany("update raw_row set path = ? where unit_id = ? and path = ?", changes)

"""Planned and recorded changes of the tools' stores, as lines and as JSON."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from backscroll.model.dates import iso
from backscroll.model.safekeeping.changes import Change, ChangePlan
from backscroll.model.safekeeping.transfer import MigrateError
from backscroll.model.text import one_line, pluralize, sanitize

__all__ = ["change_document", "change_lines", "error_document", "plan_document", "plan_lines"]

_MAX_KEY_CHARS = 120


def plan_lines(plan: ChangePlan) -> Iterator[str]:
    """Yield what a plan changes, file by file and row by row. The rows of a database follow its path."""
    yield sanitize(plan.what)
    for file in plan.files:
        yield sanitize(f"  {file.action:7} {file.label:14} {file.path}")
    for line in plan.lines:
        action = "append" if line.before is None else "change"
        yield sanitize(f"  {action:7} {line.label:14} {line.path}")
    database: Path | None = None
    for row in plan.rows:
        if row.database != database:
            database = row.database
            yield sanitize(f"  rows of {database}")
        key = one_line(" ".join(map(str, row.key.values())), _MAX_KEY_CHARS)
        yield sanitize(f"    {row.action:7} {row.label:14} {row.table} {key}")
    for warning in plan.warnings:
        yield sanitize(f"  Warning: {warning}")


def plan_document(plan: ChangePlan) -> dict[str, Any]:
    """Return a plan as JSON."""
    return {
        "what": plan.what,
        "files": [
            {"action": file.action, "label": file.label, "path": str(file.path), "size": file.size}
            for file in plan.files
        ],
        "lines": [{"label": line.label, "path": str(line.path)} for line in plan.lines],
        "rows": [
            {
                "action": row.action,
                "label": row.label,
                "table": row.table,
                "key": " ".join(map(str, row.key.values())),
                "database": str(row.database),
            }
            for row in plan.rows
        ],
        "warnings": list(plan.warnings),
    }


def change_lines(changes: Iterable[Change]) -> Iterator[str]:
    """Yield one line per recorded change."""
    for change in changes:
        counts = [pluralize(change.file_count, "file"), pluralize(change.row_count, "row")]
        state = "  undone" if change.is_undone else "  interrupted" if change.is_interrupted else ""
        at = f"{change.at.astimezone():%Y-%m-%d %H:%M}"
        yield sanitize(f"{change.id}  {at}  {change.what}  ({', '.join(counts)}){state}")


def change_document(change: Change) -> dict[str, Any]:
    """Return a recorded change as JSON."""
    return {
        "id": change.id,
        "at": iso(change.at),
        "what": change.what,
        "sessions": list(change.sessions),
        "files": change.file_count,
        "rows": change.row_count,
        "is_undone": change.is_undone,
        "is_interrupted": change.is_interrupted,
    }


def error_document(error: MigrateError) -> dict[str, str]:
    """Return the reason why a session was not changed as JSON."""
    return {"session_id": error.session_id, "code": error.code, "message": error.message}

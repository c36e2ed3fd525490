"""Tools that create, check and restore backups."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from backscroll.errors import UsageError
from backscroll.mcp.call import Call
from backscroll.mcp.tools.arguments import CreateBackup, RestoreBackup, ValidateBackup, absolute_path
from backscroll.mcp.tools.plans import Plan, run_planned, shell_command
from backscroll.mcp.tools.results import ToolAnswer
from backscroll.model.backup import BackupPlan, BackupProgress, ProgressCallback, RestoredFile, RestoreResult
from backscroll.model.session import Filter
from backscroll.model.text import one_line, pluralize
from backscroll.render.backups import (
    manifest_document,
    manifest_lines,
    restored_counts,
    session_lines,
    validation_document,
    validation_lines,
)
from backscroll.render.humanize import format_size

MAX_LINES = 30  # of files in a plan or result
MAX_SKIPPED_LINES = 5
MAX_PATH_CHARS = 500
RECENT_SECONDS = 600
_WRITTEN = ("create", "replace", "insert")
_ACTIONS = {
    "create": "create",
    "replace": "replace",
    "insert": "insert into",
    "kept": "keep",
    "damaged": "skip",
}


def create_backup(call: Call, arguments: CreateBackup) -> ToolAnswer:
    path = absolute_path("path", arguments.path) if arguments.path is not None else None
    base = absolute_path("base", arguments.base) if arguments.base is not None else None

    def make_plan() -> Plan:
        call.history.sync(call.report_progress)
        filter_ = call.filter(arguments)
        selection: _Selection = {
            "filter": filter_ if filter_ != Filter() else None,
            "sessions": arguments.refs or (),
            "base": base,
        }
        return _CreatePlan(call.history.backups.plan(path, **selection), selection)

    return run_planned(call, "create_backup", arguments, make_plan)


class _Selection(TypedDict):
    """What a backup contains."""

    filter: Filter | None
    sessions: Sequence[str]
    base: Path | None


class _CreatePlan(Plan):
    """A backup to create. The tools may be running, so nothing blocks it."""

    is_empty = False

    def __init__(self, planned: BackupPlan, selection: _Selection) -> None:
        self._planned = planned
        self._selection = selection

    @property
    def paths(self) -> list[str | Path]:
        base = self._selection["base"]
        return [self._planned.backup_path, *([base] if base is not None else [])]

    def describe(self, call: Call) -> ToolAnswer:
        planned = self._planned
        lines = [
            f"Write {planned.backup_path}",
            f"  {pluralize(planned.stats.session_count, 'session')},"
            f" {pluralize(planned.stats.message_count, 'message')}, {pluralize(planned.file_count, 'file')},"
            f" {format_size(planned.size)} before compression",
            *(f"  {root.name} from {one_line(root.path, MAX_PATH_CHARS)}" for root in planned.roots),
        ]
        if (base := self._selection["base"]) is not None:
            lines.append(f"  only what changed since {base}")
        if self._selection["filter"] is not None or self._selection["sessions"]:
            lines.append("  only the selected sessions")
        if not (folder := Path(planned.backup_path).parent).exists():
            lines.append(f"  creates the folder {folder}")
        return ToolAnswer("\n".join(lines), msgspec.to_builtins(planned))

    def apply(self, call: Call) -> ToolAnswer:
        call.history.sync(call.report_progress)
        result = call.history.create_backup(
            self._planned.backup_path, **self._selection, progress=_progress(call)
        )
        document = {
            "backup_path": result.backup_path,
            "manifest": manifest_document(result.manifest, with_files=False),
        }
        lines = [f"Created {result.backup_path}", *manifest_lines(result.manifest)]
        return ToolAnswer("\n".join(lines), document, ("The backup was created.",))


def validate_backup(call: Call, arguments: ValidateBackup) -> ToolAnswer:
    path = absolute_path("path", arguments.path)
    validation = call.history.validate_backup(path, _progress(call))
    lines = [str(path), *_limited(list(validation_lines(validation)), MAX_LINES)]
    document = validation_document(validation)
    document["file_count"] = len(validation.files)
    document["files"] = [check for check in document["files"] if check["status"] != "valid"][:MAX_LINES]
    hints = {
        "valid": "The backup can be restored completely.",
        "warnings": "The backup can be restored. Read the warnings.",
        "invalid": "Damaged files cannot be restored. Inform the user, and create a new backup.",
    }
    if validation.manifest is None:
        return ToolAnswer("\n".join(lines), document, ("It cannot be restored. Check the path.",))
    return ToolAnswer("\n".join(lines), document, (hints[validation.status],))


def restore_backup(call: Call, arguments: RestoreBackup) -> ToolAnswer:
    path = absolute_path("path", arguments.path)
    maps = [_parse_map(text) for text in arguments.maps or ()]

    def make_plan() -> Plan:
        source = call.filter(arguments).source
        planned = call.history.backups.plan_restore(
            path,
            source=source,
            sessions=arguments.refs or (),
            path_map=dict(maps),
            force=arguments.force,
            with_running=True,
            progress=_progress(call),
        )
        return _RestorePlan(planned, path, maps, source, arguments)

    return run_planned(call, "restore_backup", arguments, make_plan)


def _parse_map(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise UsageError(f"maps: {text!r} is not OLD=NEW. Example: /home/ada=/home/bea")
    return old, str(absolute_path("maps", new))


class _RestorePlan(Plan):
    """Files of a backup to restore."""

    def __init__(
        self,
        planned: RestoreResult,
        path: Path,
        maps: list[tuple[str, str]],
        source: str | None,
        arguments: RestoreBackup,
    ) -> None:
        self._planned = planned
        self._path = path
        self._maps = maps
        self._source = source
        self._arguments = arguments

    @property
    def is_empty(self) -> bool:
        return self._planned.is_empty

    @property
    def paths(self) -> list[str | Path]:
        return [self._path, *(file.path for file in self._planned.files if file.action in _WRITTEN)]

    @property
    def command(self) -> Sequence[str]:
        given = self._arguments
        source = ["--source", self._source] if self._source is not None else []
        sessions = [word for ref in given.refs or () for word in ("--session", ref)]
        maps = [word for old, new in self._maps for word in ("--map", f"{old}={new}")]
        force = ["--force"] if given.force else []
        return ["backup", "restore", str(self._path), *source, *sessions, *maps, *force]

    def describe(self, call: Call) -> ToolAnswer:
        lines = [f"Restore {self._path}", *_restore_lines(self._planned)]
        planned = self._planned
        kept = any(file.action == "kept" for file in planned.files) or any(
            one.action == "differing" for one in planned.sessions
        )
        hints = ("Files and sessions that differ are kept. force=true replaces them.",) if kept else ()
        return ToolAnswer("\n".join(lines), _restore_document(self._planned), hints)

    def find_obstacle(self, call: Call) -> str | None:
        if self._planned.blocked_by is not None:
            return self._planned.blocked_by
        for file in self._planned.files:
            if file.action not in _WRITTEN:
                continue
            path = Path(file.path)
            if path == call.history.archive_path.absolute():
                return (
                    "The archive is open in this server. Restore one tool with source, or close all programs"
                    " that use this server."
                )
            if file.action == "replace" and time.time() - _modified_at(path) < RECENT_SECONDS:
                return (
                    f"{one_line(file.path, MAX_PATH_CHARS)} was changed within the last ten minutes; the"
                    " session may be open. Close the tool, or wait."
                )
        return None

    def apply(self, call: Call) -> ToolAnswer:
        given = self._arguments
        result = call.history.restore_backup(
            self._path,
            source=self._source,
            sessions=given.refs or (),
            path_map=dict(self._maps),
            force=given.force,
            progress=_progress(call),
        )
        call.history.sync(call.report_progress)
        undo = shell_command([*call.options.command, "undo"])
        lines = [restored_counts(result), *_restore_lines(result)]
        hints = (f"To revert it, run: {undo}",) if result.change_id is not None else ()
        return ToolAnswer("\n".join(lines), _restore_document(result), hints)


def _restore_lines(result: RestoreResult) -> list[str]:
    """Return the written files, the skipped ones, and the counts."""
    written = [file for file in result.files if file.action in _WRITTEN]
    skipped = [file for file in result.files if file.action not in (*_WRITTEN, "unchanged")]
    counts = Counter(file.action for file in result.files)
    size = sum(file.size for file in written)
    summary = (
        f"  create {counts['create']:,}, replace {counts['replace']:,}, insert {counts['insert']:,}"
        f" ({format_size(size)}); keep {counts['kept']:,}, skip {counts['damaged']:,},"
        f" unchanged {counts['unchanged']:,}"
    )
    return [
        *_limited([_file_line(file) for file in written], MAX_LINES),
        *_limited([_file_line(file) for file in skipped], MAX_SKIPPED_LINES),
        summary,
        *_limited([f"  {line.strip()}" for line in session_lines(result)], MAX_LINES),
    ]


def _file_line(file: RestoredFile) -> str:
    reason = f" ({file.reason})" if file.reason else ""
    return f"  {_ACTIONS[file.action]} {one_line(file.path, MAX_PATH_CHARS)}{reason}"


def _restore_document(result: RestoreResult) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(result)
    document["files"] = [file for file in document["files"] if file["action"] != "unchanged"][:MAX_LINES]
    document["sessions"] = [one for one in document["sessions"] if one["action"] != "kept"][:MAX_LINES]
    return document


def _limited(lines: list[str], limit: int) -> Iterator[str]:
    yield from lines[:limit]
    if len(lines) > limit:
        yield f"  … and {len(lines) - limit:,} more"


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _progress(call: Call) -> ProgressCallback:
    def report(progress: BackupProgress) -> None:
        call.report_progress(progress.done, progress.total)

    return report

"""Backups as text and JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from backscroll.filters import FILTERS
from backscroll.model.backup import (
    BackupDetails,
    BackupManifest,
    BackupSummary,
    BackupValidation,
    BackupVerdict,
    KeepReason,
    NightlyResult,
    RestoredFile,
    RestoreResult,
)
from backscroll.model.session import Filter
from backscroll.model.text import one_line, pluralize
from backscroll.render.humanize import format_size

MAX_PATH_CHARS = 500
_ACTIONS = {
    "create": "create",
    "replace": "replace",
    "insert": "insert",
    "kept": "keep",
    "damaged": "damaged",
}
_VERDICTS = {"valid": "Valid", "warnings": "Valid with warnings", "invalid": "Invalid"}


def manifest_lines(manifest: BackupManifest) -> Iterator[str]:
    """Return the content of a backup: counts by root, and what is missing."""
    stats = manifest.stats
    writer = one_line(f"{manifest.platform} by {manifest.program}", MAX_PATH_CHARS)
    yield f"  created {_time(manifest.created_at)} on {writer}"
    yield (
        f"  {pluralize(stats.session_count, 'session')}, {pluralize(stats.message_count, 'message')},"
        f" {pluralize(len(manifest.files), 'file')} in {_size(stats.file_size)}"
    )
    counts, sizes = Counter[str](), Counter[str]()
    for file in manifest.files:
        counts[file.root] += 1
        sizes[file.root] += file.size
    width = max((len(root.name) for root in manifest.roots), default=0)
    for root in manifest.roots:
        files = pluralize(counts[root.name], "file")
        path = one_line(root.path, MAX_PATH_CHARS)
        yield f"  {root.name:<{width}}  {files}, {_size(sizes[root.name])} from {path}"
        if not root.source and (own := ", ".join(_own_files(manifest, root.name))):
            yield f"  {'':<{width}}  with {own}"
    if manifest.is_filtered:
        conditions = ", ".join(_conditions(manifest.filter)) or "named sessions"
        yield f"  filtered: {one_line(conditions, MAX_PATH_CHARS)}"
    for base in manifest.bases:
        yield f"  incremental: needs {one_line(base.name, MAX_PATH_CHARS)}"
    yield f"  credentials: {'included' if manifest.has_secrets else 'removed'}"
    for skipped in manifest.skipped:
        yield f"  not included: {_reason(skipped.path, skipped.reason)}"


def _own_files(manifest: BackupManifest, root: str) -> Iterator[str]:
    """Return what the folder of the archive has besides the archive."""
    paths = [file.path for file in manifest.files if file.root == root]
    counts = Counter(path.partition("/")[0] for path in paths if "/" in path)
    changes = len({path.split("/")[1] for path in paths if path.startswith("changes/")})
    if counts["journal"]:
        yield pluralize(counts["journal"], "file of a journal", "files of journals")
    yield from (name for name in ("prices.toml", "config.toml") if name in paths)
    if changes:
        yield pluralize(changes, "change", "changes") + " of the change log"


def details_lines(details: BackupDetails) -> Iterator[str]:
    """Return the settings and the change log in a backup, as they may come from anyone."""
    if details.settings is not None:
        yield "  settings, restored with --config only:"
        yield from (f"    {one_line(line, MAX_PATH_CHARS)}" for line in details.settings.splitlines() if line)
    if details.changes:
        yield "  change log, for reading only:"
    for change in details.changes:
        undone = " (undone)" if change.is_undone else ""
        what = one_line(f"{change.id}  {change.what}", MAX_PATH_CHARS)
        yield f"    {_time(change.at)}  {what}{undone}"


def _conditions(filter_: Filter | None) -> Iterator[str]:
    """Return the conditions of a filter that are set, as users type them."""
    for each in FILTERS if filter_ is not None else ():
        value = getattr(filter_, each.field)
        if each.kind == "flag" and value:
            yield each.label.lower()
        elif each.kind == "date" and value is not None:
            yield f"{'before' if each.name == 'until' else each.name} {_time(value)}"
        elif each.kind == "tags":
            yield from (f"{each.name} {tag}" for tag in value)
        elif each.kind == "text" and value is not None:
            yield f"{each.name} {value}"


def file_lines(manifest: BackupManifest) -> Iterator[str]:
    """Return one line per file: size, time and entry."""
    for file in manifest.files:
        at = _time(datetime.fromtimestamp(file.modified_ns / 1e9, UTC))
        yield f"  {file.size:>13,}  {at}  {one_line(f'{file.root}/{file.path}', MAX_PATH_CHARS)}"


def list_lines(backups: Sequence[BackupSummary]) -> Iterator[str]:
    """Return one line per backup."""
    width = max((len(one_line(backup.path, MAX_PATH_CHARS)) for backup in backups), default=0)
    for backup in backups:
        path = f"{one_line(backup.path, MAX_PATH_CHARS):<{width}}"
        if backup.manifest is None:
            yield f"{path}  cannot be read: {one_line(backup.problem or '', MAX_PATH_CHARS)}"
            continue
        stats = backup.manifest.stats
        yield (
            f"{path}  {_time(backup.manifest.created_at)}  {_size(stats.file_size)}"
            f"  {pluralize(stats.session_count, 'session')}{'  incremental' if backup.manifest.bases else ''}"
            f"{'  filtered' if backup.manifest.is_filtered else ''}"
            f"{'  incomplete' if backup.manifest.skipped else ''}"
        )


_REASONS: dict[KeepReason, str] = {
    "incomplete": "no complete one is newer",
    "damaged": "not counted: damaged, or its base is",
    "filtered": "not counted: selected sessions only",
    "named": "not counted: named by you",
    "other": "not counted: of another machine or archive",
    "unreadable": "not counted: cannot be read as a backup",
}


def verdict_lines(verdicts: Sequence[BackupVerdict]) -> Iterator[str]:
    """Return one line per backup: kept and why, or deleted."""
    names = [one_line(verdict.backup.path, MAX_PATH_CHARS) for verdict in verdicts]
    width = max(map(len, names), default=0)
    for verdict, name in zip(verdicts, names, strict=True):
        manifest = verdict.backup.manifest
        at = f"{_time(manifest.created_at) if manifest is not None else '':16}"
        reasons = [_REASONS.get(reason, reason) for reason in verdict.reasons if reason != "base"]
        if verdict.needed_by:
            others = len(verdict.needed_by) - 1
            more = f" and {others} more" if others else ""
            reasons.append(f"needed by {one_line(verdict.needed_by[0], MAX_PATH_CHARS)}{more}")
        action = "keep" if verdict.is_kept else "delete"
        yield f"{action:<6}  {at}  {name:<{width}}  {', '.join(reasons)}".rstrip()


def verdicts_document(verdicts: Sequence[BackupVerdict], *, is_dry_run: bool = False) -> dict[str, Any]:
    """Return what is kept and deleted as a JSON document."""
    kept = [
        {"path": one.backup.path, "reasons": one.reasons, "needed_by": one.needed_by}
        for one in verdicts
        if one.is_kept
    ]
    removed = [one.backup.path for one in verdicts if not one.is_kept]
    return {"kept": kept, "removable": removed, "deleted": [] if is_dry_run else removed}


def nightly_line(result: NightlyResult) -> str:
    """Return what a nightly backup did in one line."""
    manifest, validation = result.created.manifest, result.validation
    new = sum(file.backup_id is None for file in manifest.files)
    parts = [
        f"{one_line(result.created.backup_path, MAX_PATH_CHARS)}: "
        f"{pluralize(manifest.stats.session_count, 'session')},"
        f" {new:,} of {pluralize(len(manifest.files), 'file')} written, {_size(manifest.stats.file_size)}",
        _VERDICTS[validation.status].lower(),
    ]
    if manifest.skipped:
        parts.append(f"{pluralize(len(manifest.skipped), 'file')} not included")
    if validation.status == "invalid":
        parts.append("no backup was deleted")
    else:
        deleted = len(result.deleted)
        parts.append(f"{len(result.verdicts) - deleted:,} kept, {deleted:,} deleted")
    return f"{_time(datetime.now(UTC))}  {'; '.join(parts)}"


def failure_line(error: Exception) -> str:
    """Return why a nightly backup failed in one line."""
    return f"{_time(datetime.now(UTC))}  failed: {one_line(str(error), MAX_PATH_CHARS)}"


def nightly_document(result: NightlyResult) -> dict[str, Any]:
    """Return what a nightly backup did as a JSON document."""
    return {
        "backup_path": result.created.backup_path,
        "status": result.validation.status,
        "manifest": manifest_document(result.created.manifest, with_files=False),
        **verdicts_document(result.verdicts),
    }


def validation_lines(validation: BackupValidation) -> Iterator[str]:
    """Return the verdict, and every damaged file."""
    files = pluralize(len(validation.files), "file")
    yield f"{_VERDICTS[validation.status]}: {files} checked."
    for check in validation.files:
        if check.status != "valid":
            yield f"  {_reason(check.path, check.reason)}"
    yield from (f"  {one_line(problem, MAX_PATH_CHARS)}" for problem in validation.problems)


def restore_lines(result: RestoreResult) -> Iterator[str]:
    """Return what a restore does, file by file. Unchanged files are counted only."""
    for file in result.files:
        if file.action != "unchanged":
            details = one_line(", ".join(_details(file)), MAX_PATH_CHARS)
            suffix = f" ({details})" if details else ""
            yield f"  {_ACTIONS[file.action]:<10} {one_line(file.path, MAX_PATH_CHARS)}{suffix}"
    counts = Counter(file.action for file in result.files)
    size = sum(file.size for file in result.files if file.action in ("create", "replace", "insert"))
    inserted = f", {counts['insert']:,} to insert" if counts["insert"] else ""
    yield (
        f"{counts['create']:,} to create, {counts['replace']:,} to replace{inserted}, {_size(size)};"
        f" {counts['unchanged']:,} unchanged, {counts['kept']:,} kept."
    )
    yield from session_lines(result)
    if counts["damaged"]:
        yield f"{pluralize(counts['damaged'], 'file')} damaged in the backup: not restored."
    if counts["kept"] or any(one.action == "differing" for one in result.sessions):
        yield "What exists and differs is kept. Use --prefer backup to take the version of the backup."
    yield from (f"Warning: {one_line(warning, MAX_PATH_CHARS)}" for warning in result.warnings)


def session_lines(result: RestoreResult) -> Iterator[str]:
    """Return the sessions that differ, the counts of each source, and the annotations."""
    for one in result.sessions:
        if one.action == "differing":
            yield f"  differs    {_reason(one.ref, one.reason)}"
    counts = Counter((one.ref.partition(":")[0], one.action) for one in result.sessions)
    for source in sorted({source for source, _ in counts}):
        added, kept, differing = (counts[source, action] for action in ("added", "kept", "differing"))
        name = one_line(source, 50)
        yield f"{name}: {pluralize(added, 'session')} added, {kept:,} kept, {differing:,} differing."
    if result.annotations_restored:
        count = pluralize(result.annotations_restored, "tag, note or title", "tags, notes and titles")
        yield f"{count} added."


def _details(file: RestoredFile) -> Iterator[str]:
    if file.session_id is not None:
        yield f"session {file.session_id}"
    if file.row_count:
        yield pluralize(file.row_count, "row" if file.session_id is not None else "record")
    if file.reason:
        yield file.reason


def restore_summary(result: RestoreResult) -> str:
    """Return the result of a restore in one line."""
    if result.is_empty:
        return "Nothing to restore."
    change = f" Change {result.change_id}." if result.change_id is not None else ""
    return f"{restored_counts(result)}{change}"


def restored_counts(result: RestoreResult) -> str:
    """Return the number of restored files and of the sessions that the tools have again."""
    sessions = f" with {pluralize(result.sessions_restored, 'session')}" if result.sessions_restored else ""
    return f"Restored {pluralize(result.files_restored, 'file')}{sessions}."


def manifest_document(manifest: BackupManifest, *, with_files: bool = True) -> dict[str, Any]:
    """Return a manifest as a JSON document."""
    document: dict[str, Any] = msgspec.to_builtins(manifest) | {"sources": manifest.sources}
    if not with_files:
        document["file_count"] = len(document.pop("files"))
    return document


def details_document(details: BackupDetails) -> dict[str, Any]:
    """Return the manifest, the settings and the change log of a backup as a JSON document."""
    changes = msgspec.to_builtins(details.changes)
    return manifest_document(details.manifest) | {"settings": details.settings, "changes": changes}


def summary_document(backup: BackupSummary) -> dict[str, Any]:
    """Return a listed backup as a JSON document, without its files."""
    manifest = backup.manifest and manifest_document(backup.manifest, with_files=False)
    return {"path": backup.path, "manifest": manifest, "problem": backup.problem}


def validation_document(validation: BackupValidation) -> dict[str, Any]:
    """Return a validation as a JSON document."""
    manifest = validation.manifest and manifest_document(validation.manifest, with_files=False)
    document: dict[str, Any] = msgspec.to_builtins(validation)
    return document | {"manifest": manifest}


def _reason(path: str, reason: str | None) -> str:
    """Return a path and what is wrong with it. Both may come from a foreign backup."""
    return f"{one_line(path, MAX_PATH_CHARS)}: {one_line(reason or '', MAX_PATH_CHARS)}"


def _time(at: datetime) -> str:
    return at.astimezone().strftime("%Y-%m-%d %H:%M")


def _size(size: int | None) -> str:
    return format_size(size or 0)

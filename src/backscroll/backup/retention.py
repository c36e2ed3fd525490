"""Which backups in a folder are kept: the newest ones, and the newest of each day, week and month.

Only complete and valid backups count. The rules are those of restic.
"""

import platform
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from backscroll.backup.folder import list_backups
from backscroll.backup.reader import BackupReader
from backscroll.errors import BackupError, InvalidBackupError, UsageError
from backscroll.model.backup import BackupManifest, BackupSummary, BackupVerdict, KeepReason, KeepRules

LATEST = "latest"
MAX_CHAIN_DAYS = 30  # after which a nightly backup is not incremental: its base could never be deleted

_GENERATED_NAME = re.compile(r"backscroll-\d{8}-\d{6}(-\d+)?\.zip")


def plan_prune(folder: Path, rules: KeepRules, *, of: BackupManifest | None = None) -> list[BackupVerdict]:
    """Return every backup in a folder with whether it is kept and why, newest first. Nothing is deleted.

    The rules apply to the backups of each machine and archive. Kept without being counted: files that cannot
    be read as backups, damaged ones, and those of selected sessions. With ``of``, the manifest of a nightly
    backup, also those that the user named, and those of other machines. Incomplete backups are deleted if
    they are older than a complete one. The rules apply to the others separately.
    """
    check_rules(rules)
    validity = _Validity(list_backups(folder))
    found: dict[str, list[KeepReason]] = {}
    complete: dict[tuple[str, str], list[BackupSummary]] = {}
    incomplete: dict[tuple[str, str], list[BackupSummary]] = {}
    for backup in validity.backups:
        if (reason := validity.not_counted(backup, of)) is not None:
            found[backup.path] = [reason]
            continue
        origin = _manifest(backup).origin
        if not _manifest(backup).skipped:
            complete.setdefault(origin, []).append(backup)
        elif origin not in complete:
            incomplete.setdefault(origin, []).append(backup)
    for counted in complete.values():
        found |= _apply(rules, counted)
    for counted in incomplete.values():
        found |= {path: [*reasons, "incomplete"] for path, reasons in _apply(rules, counted).items()}
    needed_by = _needed_by(validity.backups, found)
    return [
        BackupVerdict(
            backup=backup,
            reasons=tuple(found.get(backup.path, ())) + (("base",) if needed_by[backup.path] else ()),
            needed_by=needed_by[backup.path],
        )
        for backup in validity.backups
    ]


def check_rules(rules: KeepRules) -> None:
    """Raise `UsageError` if rules keep nothing."""
    counts = (rules.last, rules.daily, rules.weekly, rules.monthly)
    if min(counts) < 0 or not any(counts):
        raise UsageError(
            "At least one backup must be kept.",
            hint="Pass --keep-last, --keep-daily, --keep-weekly or --keep-monthly.",
        )


def latest_path(folder: Path) -> Path:
    """Return the newest backup in a folder. Raises `BackupError` if there is none."""
    # A generated name that cannot be read is a damaged backup. It has only a modification time.
    found = [
        one for one in list_backups(folder) if one.manifest or _GENERATED_NAME.fullmatch(Path(one.path).name)
    ]
    if not found:
        raise BackupError(f"There is no backup in {folder}.", folder)
    return Path(max(found, key=_time).path)


def latest_base(folder: Path, archive_folder: Path) -> Path:
    """Return the newest complete and valid backup of this archive in a folder.

    Raises `BackupError` if there is none.
    """
    found = _latest_base(list_backups(folder), archive_folder)
    if found is None:
        raise BackupError(
            f"There is no complete and valid backup of this archive in {folder}.",
            folder,
            hint="Create one without --base first.",
        )
    return Path(found.path)


def nightly_base(folder: Path, archive_folder: Path, now: datetime) -> Path | None:
    """Return the base of a nightly backup: the latest, unless its chain is old; None for the first one."""
    backups = list_backups(folder)
    latest = _latest_base(backups, archive_folder)
    if latest is None:
        return None
    chain = {_manifest(latest).id, *(base.id for base in _manifest(latest).bases)}
    start = min(one.manifest.created_at for one in backups if one.manifest and one.manifest.id in chain)
    return Path(latest.path) if now - start < timedelta(days=MAX_CHAIN_DAYS) else None


def _latest_base(backups: Sequence[BackupSummary], archive_folder: Path) -> BackupSummary | None:
    validity, origin = _Validity(backups), (platform.node(), str(archive_folder.absolute()))
    own = (one for one in backups if one.manifest is not None and one.manifest.origin == origin)
    return next((one for one in own if validity.not_counted(one) is None), None)


def _time(backup: BackupSummary) -> float:
    if backup.manifest is not None:
        return backup.manifest.created_at.timestamp()
    try:
        return Path(backup.path).stat().st_mtime
    except OSError:
        return 0.0


class _Validity:
    """Checks the bytes of backups, each once."""

    def __init__(self, backups: Sequence[BackupSummary]) -> None:
        self.backups = backups
        self._by_id = {one.manifest.id: one for one in backups if one.manifest is not None}
        self._sealed: dict[str, bool] = {}

    def not_counted(self, backup: BackupSummary, of: BackupManifest | None = None) -> KeepReason | None:
        """Return why a backup is kept without being counted; None if it is counted."""
        if backup.manifest is None:
            return "unreadable"
        if of is not None and of.origin != backup.manifest.origin:
            return "other"
        if of is not None and _GENERATED_NAME.fullmatch(Path(backup.path).name) is None:
            return "named"
        if backup.manifest.is_filtered:
            return "filtered"
        bases = [self._by_id.get(base.id) for base in backup.manifest.bases]
        is_valid = all(base is not None and self._has_seal(base.path) for base in (backup, *bases))
        return None if is_valid else "damaged"

    def _has_seal(self, path: str) -> bool:
        if path not in self._sealed:
            try:
                with BackupReader(Path(path)) as reader:
                    self._sealed[path] = reader.has_valid_seal()
            except (InvalidBackupError, OSError):
                self._sealed[path] = False
        return self._sealed[path]


def _manifest(backup: BackupSummary) -> BackupManifest:
    assert backup.manifest is not None
    return backup.manifest


def _day(at: datetime) -> object:
    return at.date()


def _week(at: datetime) -> object:
    return at.isocalendar()[:2]


def _month(at: datetime) -> object:
    return at.year, at.month


def _apply(rules: KeepRules, backups: Sequence[BackupSummary]) -> dict[str, list[KeepReason]]:
    """Return the backups to keep by path, with the rules that keep them. ``backups`` are newest first.

    As in restic, a rule that is not exhausted keeps the oldest backup, too.
    """
    kept: dict[str, list[KeepReason]] = {}
    for backup in backups[: rules.last]:
        kept.setdefault(backup.path, []).append("last")
    periods: tuple[tuple[KeepReason, int, Callable[[datetime], object]], ...] = (
        ("daily", rules.daily, _day),
        ("weekly", rules.weekly, _week),
        ("monthly", rules.monthly, _month),
    )
    for reason, count, period_of in periods:
        last: object = None
        for number, backup in enumerate(backups, start=1):
            period = period_of(_manifest(backup).created_at.astimezone())
            if count and (period != last or number == len(backups)):
                kept.setdefault(backup.path, []).append(reason)
                last, count = period, count - 1
    return kept


def _needed_by(backups: Sequence[BackupSummary], kept: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return for each backup the names of the kept ones that need it."""
    kept = set(kept)
    needing = [(Path(one.path).name, one.manifest) for one in backups if one.path in kept and one.manifest]
    return {
        backup.path: tuple(
            name
            for name, manifest in needing
            if backup.manifest is not None and any(base.id == backup.manifest.id for base in manifest.bases)
        )
        for backup in backups
    }

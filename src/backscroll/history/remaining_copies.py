"""Find the copies of a session that remain when it is erased from the archive."""

import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from backscroll.errors import BackscrollError
from backscroll.journal.files import parse_blocks, read_text
from backscroll.journal.story import quoted_texts
from backscroll.model.backup import BackupManifest, BackupSummary
from backscroll.model.copies import RemainingCopy
from backscroll.model.session import SessionSummary
from backscroll.render.humanize import short_ref
from backscroll.stores.stores import Stores

_MIN_QUOTE_CHARS = 20  # shorter texts are in many sessions
_MAX_QUOTE_CHARS = 200  # a journal shortens long quotes
_NOT_COMPARED = re.compile(r"[\s\\*_`>…]+")


def find_remaining_copies(
    stores: Stores,
    summary: SessionSummary,
    backups: Iterable[BackupSummary],
    open_backup: Callable[[str], Stores],
) -> list[RemainingCopy]:
    """Return the files of tools, journal entries, backups and damaged archives that contain a session."""
    return [
        *_tool_files(stores, summary),
        *_journal_files(stores, summary),
        *_backups(stores, summary, backups, open_backup),
        *_damaged_archives(stores),
    ]


def _tool_files(stores: Stores, summary: SessionSummary) -> Iterator[RemainingCopy]:
    originals = stores.archive.originals
    found: dict[tuple[str, str], bool] = {}
    for unit in originals.in_stores(summary):
        if Path(unit.path).exists():
            found[unit.source, unit.path] = bool(unit.key)
        for path, _ in originals.side_files(unit):
            if (Path(unit.root) / path).is_file():
                found.setdefault((unit.source, str(Path(unit.root) / path)), False)
    for log in originals.prompt_logs(summary):
        if (
            not log.is_gone
            and Path(log.path).is_file()
            and summary.id.encode() in Path(log.path).read_bytes()
        ):
            found.setdefault((log.source, log.path), True)
    for (source, path), is_shared in sorted(found.items()):
        yield RemainingCopy("tool", path, source, is_shared)


def _journal_files(stores: Stores, summary: SessionSummary) -> Iterator[RemainingCopy]:
    """Yield the journal files that name the session, or quote a message of it."""
    folders = [stores.archive_path.with_name("journal")]
    folders += [checkout / folder for checkout, folder in stores.settings.journal_folders]
    paths = {path for folder in folders if folder.is_dir() for path in folder.rglob("*.md")}
    words: str | None = None
    for path in sorted(paths):
        text = read_text(path)
        is_quoted = summary.id in text or short_ref(summary.ref) in text
        if not is_quoted:
            words = _words(stores, summary) if words is None else words
            is_quoted = any(_is_in(quote, words) for quote in _quotes(text))
        if is_quoted:
            yield RemainingCopy("journal", str(path), is_shared=True)


def _quotes(text: str) -> Iterator[str]:
    """Yield the quotes of a journal file, and the paragraphs of notes."""
    yield from quoted_texts(text)
    for block in parse_blocks(text):
        if block.kind in ("reflection", "context"):
            yield from block.text.split("\n\n")


def _is_in(quote: str, words: str) -> bool:
    start = _compared(quote)[:_MAX_QUOTE_CHARS]
    return len(start) >= _MIN_QUOTE_CHARS and start in words


def _words(stores: Stores, summary: SessionSummary) -> str:
    return _compared(" ".join(one.content for one in stores.archive.messages.of_session(summary)))


def _compared(text: str) -> str:
    """Return a text without spaces and Markdown marks, which a journal changes."""
    return _NOT_COMPARED.sub("", text)


def _backups(
    stores: Stores,
    summary: SessionSummary,
    backups: Iterable[BackupSummary],
    open_backup: Callable[[str], Stores],
) -> Iterator[RemainingCopy]:
    try:
        for backup in backups:
            if backup.manifest is None:
                yield RemainingCopy("backup", backup.path, is_shared=True, is_certain=False)
            elif _is_listed(backup.manifest, summary):
                yield RemainingCopy("backup", backup.path, is_shared=True)
            elif not backup.manifest.is_filtered:
                try:
                    with closing(open_backup(backup.path)) as opened:
                        is_there = any(
                            one.ref == summary.ref for one in opened.archive.sessions.find(summary.id)
                        )
                except BackscrollError:
                    yield RemainingCopy("backup", backup.path, is_shared=True, is_certain=False)
                else:
                    if is_there:
                        yield RemainingCopy("backup", backup.path, is_shared=True)
    finally:
        shutil.rmtree(stores.backup_cache, ignore_errors=True)


def _is_listed(manifest: BackupManifest, summary: SessionSummary) -> bool:
    """Return whether a manifest names the session. A deleted one is only in the archive of the backup."""
    return summary.ref in manifest.sessions or any(summary.id in file.session_ids for file in manifest.files)


def _damaged_archives(stores: Stores) -> Iterator[RemainingCopy]:
    """Yield the files that `archive repair` kept. They are too damaged to be searched."""
    for path in sorted(stores.archive_path.parent.glob("archive.damaged-*.db")):
        yield RemainingCopy("archive", str(path), is_shared=True, is_certain=False)

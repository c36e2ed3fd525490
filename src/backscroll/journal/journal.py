"""The journal: entries of commits, notes, and summaries of periods."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, tzinfo
from os import PathLike
from pathlib import Path

from backscroll import git
from backscroll.commits.commits import Commits
from backscroll.errors import SessionNotFoundError, UsageError
from backscroll.git.repository import find_commit
from backscroll.journal.files import journal_folder, lock_path
from backscroll.journal.material import Material
from backscroll.journal.story import INSTRUCTIONS, PROSE_SECTIONS, story_prompt
from backscroll.journal.summaries import Period, parse_period
from backscroll.journal.writer import JournalWriter
from backscroll.model.commit import CommitDetails
from backscroll.model.journal import (
    SECTION_TITLES,
    BackfillResult,
    JournalContext,
    JournalNote,
    JournalResult,
    NoteKind,
    PeriodKind,
    QuoteProblem,
    SectionName,
)
from backscroll.model.session import SessionSummary
from backscroll.redact.redactor import Redactor
from backscroll.search.search import Search
from backscroll.stores.lookup import check_choice, find_session
from backscroll.stores.stores import Stores

Progress = Callable[[int, int], None]  # commits done, and in total
Folder = str | PathLike[str]


class Journal:
    """A written record of commits and their conversations, in Markdown files.

    ``repository`` is any folder in a checkout, or a bare clone. ``folder`` is the folder of the journal. By
    default it is the one in the settings, or one beside the archive. Secrets are redacted.
    """

    def __init__(self, stores: Stores, *, zone: tzinfo | None = None) -> None:
        self._stores = stores
        self._zone = zone  # of dates and times; None is local time

    def folder(self, repository: Folder = ".", folder: Folder | None = None) -> Path:
        """Return the folder of a repository's journal, existing or not."""
        return self._folder(git.open_repository(Path(repository)), folder)

    def write(
        self,
        revision: str = "HEAD",
        repository: Folder = ".",
        *,
        folder: Folder | None = None,
        model: str | None = None,
        is_refreshed: bool = True,
        progress: Progress | None = None,
    ) -> JournalResult:
        """Write the entry of a commit. An existing entry is updated, unless the user edited it.

        ``model`` is a name that the `llm` program knows; without one, the entry is extracted. With
        ``is_refreshed``, the entry of the parent commit is updated too: its conversation may have gone on.
        """
        writer, opened = self._open(repository, folder)
        sha = find_commit(opened, revision)
        reason = writer.skip_reason(sha)
        if reason is not None:
            return JournalResult(
                sha=sha,
                path=None,
                is_new=False,
                is_changed=False,
                entry=None,
                skipped=reason,
            )
        details = Commits(self._stores).get(sha, repository, progress)
        if is_refreshed and details.parent is not None:
            self._refresh(writer, details.parent, repository)
        known = writer.existing(sha)
        if model is None and known is not None and known[1] is not None and known[1].fields.get("by"):
            # Prose by a model is only replaced by prose.
            entry = writer.build(self._material(writer, details))
            return JournalResult(sha=sha, path=known[0], is_new=False, is_changed=False, entry=entry)
        return self._write(writer, details, model)

    def log_failure(self, repository: Folder, revision: str, error: Exception) -> None:
        """Append an error to ``journal.log`` beside the archive, for callers that have no user to tell."""
        line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {Path(repository).absolute()} {revision}: {error}\n"
        with (
            suppress(OSError),  # the disk is full, or the folder of the archive is missing
            self._stores.archive_path.with_name("journal.log").open("a", encoding="utf-8") as file,
        ):
            file.write(line)

    def backfill(
        self,
        repository: Folder = ".",
        *,
        period: tuple[PeriodKind, str] | None = None,
        since: datetime | None = None,
        folder: Folder | None = None,
        model: str | None = None,
        progress: Progress | None = None,
    ) -> BackfillResult:
        """Write the missing entries of a period, oldest first, and its summary; or those since a time.

        Every entry is saved at once. After an interruption, the next call continues. If the model fails, the
        other entries are extracted without it.
        """
        writer, _ = self._open(repository, folder)
        named: Period | None = None
        until: datetime | None = None
        if period is not None:
            named = parse_period(*period, datetime.now(UTC), self._zone)
            since, until = named.start(self._zone), named.stop(self._zone)
        commits = Commits(self._stores).page(repository, since=since, until=until)
        known = {block.fields.get("sha") for _, block in writer.files.entries()}
        written: list[str] = []
        skipped = 0
        message: str | None = None
        for number, commit in enumerate(reversed(commits.data)):
            if progress is not None:
                progress(number, len(commits.data))
            if commit.sha in known:
                continue
            if writer.skip_reason(commit.sha) is not None:
                skipped += 1
                continue
            if writer.existing(commit.sha) is not None:
                continue
            details = Commits(self._stores).get(commit.sha, repository)
            result = self._write(writer, details, model if message is None else None)
            if result.is_new:
                written.append(commit.sha)
            if (
                details.sessions
                and result.message is not None
                and result.entry
                and result.entry.model is None
            ):
                message = result.message
        if progress is not None:
            progress(len(commits.data), len(commits.data))
        path, _, is_edited = writer.summarize(named) if named is not None else (None, False, False)
        return BackfillResult(
            written=tuple(written),
            existing=len(commits.data) - len(written) - skipped,
            skipped=skipped,
            folder=writer.files.folder,
            summary_path=path,
            is_summary_edited=is_edited,
            message=message,
        )

    def add_note(
        self, kind: NoteKind, text: str, repository: Folder = ".", *, folder: Folder | None = None
    ) -> JournalNote:
        """Append a reflection or a captured context to the file of today."""
        check_choice("kind of note", kind, NoteKind)
        writer, _ = self._open(repository, folder)
        return writer.add_note(kind, text, datetime.now(UTC))

    def read(
        self, day: str = "today", repository: Folder = ".", *, folder: Folder | None = None
    ) -> str | None:
        """Return the file of a day as Markdown; None if there is none."""
        writer, _ = self._open(repository, folder)
        path = writer.files.path(parse_period("day", day, datetime.now(UTC), self._zone).first)
        return writer.day_text(path) if path.exists() else None

    def days(self, repository: Folder = ".", *, folder: Folder | None = None) -> list[date]:
        """Return the days with a file, newest first."""
        writer, _ = self._open(repository, folder)
        return [day for day, _ in writer.files.days()][::-1]

    def context(
        self, revision: str = "HEAD", repository: Folder = ".", *, folder: Folder | None = None
    ) -> JournalContext:
        """Return everything that an assistant needs to write the entry of a commit."""
        writer, opened = self._open(repository, folder)
        details = Commits(self._stores).get(find_commit(opened, revision), repository)
        material = self._material(writer, details)
        entry = writer.build(material)
        known = writer.existing(details.sha)
        parents = git.read_commits(opened, [details.parent]) if details.parent is not None else []
        since = datetime.fromtimestamp(parents[0].authored_at, UTC) if parents else None
        return JournalContext(
            entry=entry,
            path=known[0] if known is not None else None,
            instructions=INSTRUCTIONS,
            material=story_prompt(material, entry),
            notes=tuple(writer.notes(since, details.at)),
        )

    def write_story(
        self,
        sections: Mapping[str, str],
        revision: str = "HEAD",
        repository: Folder = ".",
        *,
        author: str = "an assistant",
        folder: Folder | None = None,
    ) -> tuple[JournalResult | None, list[QuoteProblem]]:
        """Write an entry in prose. Nothing is written if a quote in it is not verbatim.

        ``sections`` are Markdown texts by name: summary, synopsis, accomplishments, frustrations, decisions,
        open, discussion. Returns the result, or the quotes that are not verbatim.
        """
        writer, opened = self._open(repository, folder)
        sha = find_commit(opened, revision)
        details = Commits(self._stores).get(sha, repository)
        return writer.write_story(self._material(writer, details), _checked(sections), author)

    def _write(self, writer: JournalWriter, details: CommitDetails, model: str | None) -> JournalResult:
        material = self._material(writer, details)
        if model is None:
            return writer.write(writer.build(material))
        entry, message = writer.narrate(material, model)
        known = writer.existing(details.sha)
        if entry.model is None and known is not None:  # the model failed; keep the entry as it is
            return JournalResult(
                sha=details.sha, path=known[0], is_new=False, is_changed=False, entry=entry, message=message
            )
        return writer.write(entry, message=message)

    def _refresh(self, writer: JournalWriter, sha: str, repository: Folder) -> None:
        """Update the entry of a commit if it was extracted and the user has not edited it."""
        known = writer.existing(sha)
        if known is None or known[1] is None or known[1].fields.get("by") or known[1].is_edited:
            return
        writer.write(writer.build(self._material(writer, Commits(self._stores).get(sha, repository))))

    def _material(self, writer: JournalWriter, details: CommitDetails) -> Material:
        sessions = list(self._sessions(details))
        search = Search(self._stores)
        for summary in sessions:
            search.learn_secrets(writer.redactor, summary)
        return writer.material(details, sessions)

    def _sessions(self, details: CommitDetails) -> Iterator[SessionSummary]:
        for linked in details.sessions:
            try:
                yield find_session(self._stores.archive, linked.session_ref)
            except SessionNotFoundError:
                continue  # forgotten by another process in the meantime

    def _open(self, repository: Folder, folder: Folder | None) -> tuple[JournalWriter, git.Repository]:
        opened = git.open_repository(Path(repository))
        found = self._folder(opened, folder)
        lock = lock_path(found, self._base)
        writer = JournalWriter(self._stores.archive, opened, found, lock, Redactor(), zone=self._zone)
        return writer, opened

    def _folder(self, opened: git.Repository, folder: Folder | None) -> Path:
        return journal_folder(
            opened,
            named=Path(folder) if folder is not None else None,
            configured=dict(self._stores.settings.journal_folders),
            base=self._base,
        )

    @property
    def _base(self) -> Path:
        return self._stores.archive_path.with_name("journal")


def _checked(sections: Mapping[str, str]) -> dict[SectionName, str]:
    """Return the sections with a text. Raises `UsageError` for an unknown name."""
    unknown = [name for name in sections if name not in PROSE_SECTIONS]
    if unknown:
        raise UsageError(f"Unknown section {unknown[0]!r}. Use {', '.join(PROSE_SECTIONS)}.")
    checked: dict[SectionName, str] = {
        name: sections[name].strip() for name in SECTION_TITLES if sections.get(name, "").strip()
    }
    if "summary" not in checked:
        raise UsageError("The entry needs a summary.")
    return checked

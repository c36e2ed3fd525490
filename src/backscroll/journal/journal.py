"""The journal: entries of commits, notes, and summaries of periods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, tzinfo
from os import PathLike
from pathlib import Path
from typing import TypeVar

from backscroll import git
from backscroll.archive.archive import Archive
from backscroll.commits.commits import Commits
from backscroll.errors import SessionNotFoundError, UsageError
from backscroll.git.repository import find_commit
from backscroll.journal.entry import build_entry, entry_text
from backscroll.journal.files import (
    Block,
    DailyFiles,
    is_journal_path,
    journal_folder,
    journal_lock,
    lock_path,
    read_text,
)
from backscroll.journal.material import Material, read_context, read_turns
from backscroll.journal.story import (
    INSTRUCTIONS,
    PROSE_SECTIONS,
    ModelFailureError,
    QuoteBook,
    check_story,
    merge_story,
    parse_story,
    quoted_texts,
    run_model,
    story_prompt,
)
from backscroll.journal.summaries import Period, parse_period, write_summary
from backscroll.model.commit import CommitDetails, LinkedSession, OpenSession
from backscroll.model.export import SecretLocation
from backscroll.model.journal import (
    SECTION_TITLES,
    BackfillResult,
    JournalContext,
    JournalEntry,
    JournalNote,
    JournalResult,
    NoteKind,
    PeriodKind,
    QuoteProblem,
    SectionName,
    SkipReason,
)
from backscroll.model.session import SessionSummary
from backscroll.model.sync import Progress
from backscroll.model.text import pluralize
from backscroll.redact import Redactor
from backscroll.search.search import Search
from backscroll.stores.lookup import check_choice, find_session
from backscroll.stores.stores import Stores

_NOTE_TITLES: dict[NoteKind, str] = {"reflection": "Reflection", "context": "Context"}
Folder = str | PathLike[str]
T = TypeVar("T", LinkedSession, OpenSession)


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
            return JournalResult(sha=sha, skipped=reason)
        details = Commits(self._stores).get(sha, repository, progress)
        if is_refreshed and details.parent is not None:
            self._refresh(writer, details.parent, repository)
        known = writer.existing(sha)
        if model is None and known is not None and known[1] is not None and known[1].fields.get("by"):
            # Prose by a model is only replaced by prose.
            entry = build_entry(self._material(writer, details), self._zone)
            return JournalResult(sha=sha, path=known[0], entry=entry)
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
            is_extracted = result.entry is not None and result.entry.model is None
            if details.sessions and is_extracted and result.message is not None:
                message = result.message  # why the model failed
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
        return read_text(path) if path.exists() else None

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
        entry = build_entry(material, self._zone)
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
            return writer.write(build_entry(material, self._zone))
        entry, message = writer.narrate(material, model)
        known = writer.existing(details.sha)
        if entry.model is None and known is not None:  # the model failed; keep the entry as it is
            return JournalResult(sha=details.sha, path=known[0], entry=entry, message=message)
        return writer.write(entry, message=message)

    def _refresh(self, writer: JournalWriter, sha: str, repository: Folder) -> None:
        """Update the entry of a commit if it was extracted and the user has not edited it."""
        known = writer.existing(sha)
        if known is None or known[1] is None or known[1].fields.get("by") or known[1].is_edited:
            return
        material = self._material(writer, Commits(self._stores).get(sha, repository))
        writer.write(build_entry(material, self._zone))

    def _material(self, writer: JournalWriter, details: CommitDetails) -> Material:
        sessions = [summary for summary, _ in self._found(details.sessions)]
        opened, since = Commits(self._stores).open_sessions(details, writer.repository)
        context = list(self._found(opened))
        search = Search(self._stores)
        for summary in (*sessions, *(summary for summary, _ in context)):
            search.learn_secrets(writer.redactor, summary)
        return writer.material(details, sessions, context, since)

    def _found(self, named: Iterable[T]) -> Iterator[tuple[SessionSummary, T]]:
        for one in named:
            try:
                yield find_session(self._stores.archive, one.session_ref), one
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


class JournalWriter:
    """Adds entries, notes and summaries to the journal of one repository."""

    def __init__(
        self,
        archive: Archive,
        repository: git.Repository,
        folder: Path,
        lock: Path,
        redactor: Redactor,
        *,
        zone: tzinfo | None = None,
    ) -> None:
        self._archive, self.repository, self.redactor = archive, repository, redactor
        self._lock, self._zone = lock, zone
        self.files = DailyFiles(folder, zone)

    def skip_reason(self, sha: str) -> SkipReason | None:
        """Return ``merge`` or ``journal-only`` for a commit without an entry, None for others."""
        if any(commit.is_merge for commit in git.read_commits(self.repository, [sha])):
            return "merge"
        paths = [size.path for size in git.read_sizes(self.repository, sha)]
        is_journal = (is_journal_path(path, self.repository, self.files.folder) for path in paths)
        return "journal-only" if paths and all(is_journal) else None

    def material(
        self,
        details: CommitDetails,
        sessions: Sequence[SessionSummary],
        context: Sequence[tuple[SessionSummary, OpenSession]],
        since: datetime,
    ) -> Material:
        """Read everything that an entry is written from."""
        repository, sha = self.repository, details.sha
        (commit,) = git.read_commits(repository, [sha])
        parents = git.read_commits(repository, list(commit.parents[:1]))  # a shallow clone may have none
        folder = self.files.folder
        changes = dict(git.read_changes(repository, [sha])).get(sha, [])
        turns = read_turns(
            self._archive,
            details,
            sessions,
            parent_at=parents[0].authored_at if parents else None,
            redactor=self.redactor,
        )
        return Material(
            commit=commit,
            patch_id=git.patch_id(repository, sha),
            branch=next((session.git_branch for session in sessions if session.git_branch), None),
            sizes=tuple(
                size
                for size in git.read_sizes(repository, sha)
                if not is_journal_path(size.path, repository, folder)
            ),
            changes=tuple(
                change for change in changes if not is_journal_path(change.path, repository, folder)
            ),
            sessions=tuple(map(self.redactor.redact_summary, sessions)),
            turns=turns,
            context=read_context(self._archive, details, context, since=since, redactor=self.redactor),
        )

    def existing(self, sha: str) -> tuple[Path, Block | None] | None:
        """Return the file with the entry of a commit, or of the commit that it replaced.

        A rewritten commit has the same changes. The old one has the same author's time, or is on no branch.
        """
        patch = ""
        for path, block in self.files.entries():
            if block.fields.get("sha") == sha:
                return path, block
            if block.fields.get("patch"):
                patch = patch or git.patch_id(self.repository, sha)
                if block.fields["patch"] == patch and self._is_rewritten(block, sha):
                    return path, block
        path_without_marker = self.files.mentions(sha)
        return (path_without_marker, None) if path_without_marker is not None else None

    def _is_rewritten(self, block: Block, sha: str) -> bool:
        if block.at is not None:
            times = [commit.authored_at for commit in git.read_commits(self.repository, [sha])]
            if int(block.at.timestamp()) in times:
                return True
        return not git.is_reachable(self.repository, block.fields.get("sha", ""))

    def write(self, entry: JournalEntry, *, message: str | None = None) -> JournalResult:
        """Add an entry, or replace it if the user has not edited it."""
        text = self._redacted(entry_text(entry, self._zone))
        fields = {"sha": entry.sha, "patch": entry.patch_id, "by": "model" if entry.model else ""}
        with journal_lock(self._lock):
            known = self.existing(entry.sha)
            if known is None:
                path = self.files.add("entry", fields, text, entry.at)
                return JournalResult(
                    sha=entry.sha, path=path, is_new=True, is_changed=True, entry=entry, message=message
                )
            path, block = known
            if block is None or block.is_edited:
                return JournalResult(sha=entry.sha, path=path, entry=entry, skipped="edited")
            is_changed = self.files.replace(path, block.fields["sha"], fields, text)
            return JournalResult(
                sha=entry.sha, path=path, is_changed=is_changed, entry=entry, message=message
            )

    def narrate(self, material: Material, model: str) -> tuple[JournalEntry, str | None]:
        """Return the entry in prose by a language model, and a message for people.

        If the model fails, return the extracted entry.
        """
        entry = build_entry(material, self._zone)
        if not material.turns:
            return entry, "No session was found for this commit, so no model was used."
        try:
            answer = run_model(model, INSTRUCTIONS, story_prompt(material, entry))
        except ModelFailureError as error:
            return entry, f"{error} The entry was extracted without a model."
        sections = parse_story(answer)
        if "summary" not in sections:
            return entry, f"The answer of {model} is not an entry. The entry was extracted without a model."
        checked, quotes, problems = check_story(sections, QuoteBook(material))
        if "summary" not in checked:
            return entry, f"The quotes of {model} are not verbatim. The entry was extracted without a model."
        return merge_story(entry, checked, quotes, model, self._zone), _quote_message(problems)

    def write_story(
        self, material: Material, sections: dict[SectionName, str], author: str
    ) -> tuple[JournalResult | None, list[QuoteProblem]]:
        """Write an entry that an assistant wrote. Nothing is written if a quote is not verbatim."""
        book = QuoteBook(material)
        quotes, problems = book.check(text for section in sections.values() for text in quoted_texts(section))
        if problems:
            return None, problems
        entry = merge_story(build_entry(material, self._zone), sections, quotes, author, self._zone)
        return self.write(entry), []

    def add_note(self, kind: NoteKind, text: str, at: datetime) -> JournalNote:
        """Append a reflection or a captured context to the day."""
        text = self._redacted(text.strip())
        if not text:
            raise UsageError(f"The {kind} is empty.")
        local = at.astimezone(self._zone)
        body = f"## {local:%H:%M} {_NOTE_TITLES[kind]}\n\n{_safe(text)}\n"
        with journal_lock(self._lock):
            path = self.files.add(kind, {}, body, at)
        return JournalNote(kind, text, at, path)

    def notes(self, since: datetime | None, until: datetime) -> list[JournalNote]:
        """Return the notes of a time range."""
        found = []
        for _, path in self.files.days():
            for block in self.files.blocks(path):
                if block.kind not in _NOTE_TITLES or block.at is None or block.at > until:
                    continue
                if since is None or block.at > since:
                    text = block.text.partition("\n")[2].strip()
                    kind: NoteKind = "reflection" if block.kind == "reflection" else "context"
                    found.append(JournalNote(kind, text, block.at, path))
        return found

    def summarize(self, period: Period) -> tuple[Path | None, bool, bool]:
        """Write the summary of a period. See `write_summary`."""
        with journal_lock(self._lock):
            return write_summary(self.files, period)

    def _redacted(self, text: str) -> str:
        return self.redactor.redact_text(text, SecretLocation("journal", None))


def _safe(text: str) -> str:
    """Return a note whose lines cannot be taken for a marker of the journal."""
    return text.replace("<!-- backscroll:", "<\\!-- backscroll:")


def _quote_message(problems: Sequence[QuoteProblem]) -> str | None:
    replaced = sum(problem.suggestion is not None for problem in problems)
    removed = len(problems) - replaced
    parts = [f"replaced {pluralize(replaced, 'quote')}"] if replaced else []
    parts += [f"removed {pluralize(removed, 'quote')}"] if removed else []
    return f"Quotes that were not verbatim: {' and '.join(parts)}." if parts else None


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

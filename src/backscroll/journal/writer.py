"""Write the journal of one repository."""

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from pathlib import Path

from backscroll import git
from backscroll.archive.archive import Archive
from backscroll.errors import UsageError
from backscroll.journal.entry import build_entry, entry_text
from backscroll.journal.files import Block, DailyFiles, is_journal_path, journal_lock, read_text
from backscroll.journal.material import Material, read_turns
from backscroll.journal.story import (
    INSTRUCTIONS,
    ModelFailureError,
    QuoteBook,
    check_story,
    merge_story,
    parse_story,
    quoted_texts,
    run_model,
    story_prompt,
)
from backscroll.journal.summaries import Period, write_summary
from backscroll.model.commit import CommitDetails
from backscroll.model.export import SecretLocation
from backscroll.model.journal import (
    JournalEntry,
    JournalNote,
    JournalResult,
    NoteKind,
    QuoteProblem,
    SectionName,
    SkipReason,
)
from backscroll.model.session import SessionSummary
from backscroll.model.text import pluralize
from backscroll.redact.redactor import Redactor

_NOTE_TITLES: dict[NoteKind, str] = {"reflection": "Reflection", "context": "Context"}

Model = Callable[[str, str, str], str]  # name, instructions and prompt; returns the answer


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
        model: Model = run_model,
    ) -> None:
        self._archive, self._repository, self.redactor = archive, repository, redactor
        self._lock, self._zone, self._model = lock, zone, model
        self.files = DailyFiles(folder, zone)

    def skip_reason(self, sha: str) -> SkipReason | None:
        """Return ``merge`` or ``journal-only`` for a commit without an entry, None for others."""
        if any(commit.is_merge for commit in git.read_commits(self._repository, [sha])):
            return "merge"
        paths = [size.path for size in git.read_sizes(self._repository, sha)]
        is_journal = (is_journal_path(path, self._repository, self.files.folder) for path in paths)
        return "journal-only" if paths and all(is_journal) else None

    def material(self, details: CommitDetails, sessions: Sequence[SessionSummary]) -> Material:
        """Read everything that an entry is written from."""
        repository, sha = self._repository, details.sha
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
        )

    def build(self, material: Material) -> JournalEntry:
        """Return the extracted entry."""
        return build_entry(material, self._zone)

    def existing(self, sha: str) -> tuple[Path, Block | None] | None:
        """Return the file with the entry of a commit, or of the commit that it replaced.

        A rewritten commit has the same changes. The old one has the same author's time, or is on no branch.
        """
        patch = ""
        for path, block in self.files.entries():
            if block.fields.get("sha") == sha:
                return path, block
            if block.fields.get("patch"):
                patch = patch or git.patch_id(self._repository, sha)
                if block.fields["patch"] == patch and self._is_rewritten(block, sha):
                    return path, block
        path_without_marker = self.files.mentions(sha)
        return (path_without_marker, None) if path_without_marker is not None else None

    def _is_rewritten(self, block: Block, sha: str) -> bool:
        if block.at is not None:
            times = [commit.authored_at for commit in git.read_commits(self._repository, [sha])]
            if int(block.at.timestamp()) in times:
                return True
        return not git.is_reachable(self._repository, block.fields.get("sha", ""))

    def write(self, entry: JournalEntry, *, message: str | None = None) -> JournalResult:
        """Add an entry, or replace it if the user has not edited it."""
        text = self._redacted(entry_text(entry, self._zone))
        fields = {"sha": entry.sha, "patch": entry.patch_id, "by": "model" if entry.model else ""}
        with journal_lock(self._lock):
            known = self.existing(entry.sha)
            if known is None:
                path = self.files.add("entry", fields, text, entry.at)
                return _result(entry, path, is_new=True, is_changed=True, message=message)
            path, block = known
            if block is None or block.is_edited:
                return JournalResult(
                    sha=entry.sha, path=path, is_new=False, is_changed=False, entry=entry, skipped="edited"
                )
            is_changed = self.files.replace(path, block.fields["sha"], fields, text)
            return _result(entry, path, is_new=False, is_changed=is_changed, message=message)

    def narrate(self, material: Material, model: str) -> tuple[JournalEntry, str | None]:
        """Return the entry in prose by a language model, and a message for people.

        If the model fails, return the extracted entry.
        """
        entry = self.build(material)
        if not material.turns:
            return entry, "No session was found for this commit, so no model was used."
        try:
            answer = self._model(model, INSTRUCTIONS, story_prompt(material, entry))
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
        entry = merge_story(self.build(material), sections, quotes, author, self._zone)
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

    def day_text(self, path: Path) -> str:
        """Return the text of a file of the journal."""
        return read_text(path)

    def _redacted(self, text: str) -> str:
        return self.redactor.redact_text(text, SecretLocation("journal", None))


def _result(
    entry: JournalEntry, path: Path, *, is_new: bool, is_changed: bool, message: str | None
) -> JournalResult:
    return JournalResult(
        sha=entry.sha, path=path, is_new=is_new, is_changed=is_changed, entry=entry, message=message
    )


def _safe(text: str) -> str:
    """Return a note whose lines cannot be taken for a marker of the journal."""
    return text.replace("<!-- backscroll:", "<\\!-- backscroll:")


def _quote_message(problems: Sequence[QuoteProblem]) -> str | None:
    replaced = sum(problem.suggestion is not None for problem in problems)
    removed = len(problems) - replaced
    parts = [f"replaced {pluralize(replaced, 'quote')}"] if replaced else []
    parts += [f"removed {pluralize(removed, 'quote')}"] if removed else []
    return f"Quotes that were not verbatim: {' and '.join(parts)}." if parts else None

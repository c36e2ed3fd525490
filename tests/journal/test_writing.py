"""Entries are written once, updated while untouched, and never overwrite what the user wrote."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backscroll.errors import DestinationError
from backscroll.history.history import History
from backscroll.journal.files import journal_lock, lock_path, write_atomically
from backscroll.journal.journal import Journal
from tests.journal.conftest import REASON, Workplace


def _daily(result_path: Path | None) -> str:
    assert result_path is not None
    return result_path.read_text(encoding="utf-8")


def test_an_entry_has_sections_quotes_and_a_file_of_its_day(journal: Journal, workplace: Workplace) -> None:
    result = journal.write("HEAD", workplace.repository)
    assert result.sha == workplace.second
    assert (result.is_new, result.is_changed) == (True, True)
    assert result.path == journal.folder(workplace.repository) / "daily" / "2026-03-02-journal.md"
    text = _daily(result.path)
    assert "## 09:00 Add prices" in text
    assert f"- “{REASON}” (assistant, 09:00)\n  - “Yes, cents." in text
    assert "### Open\n\n- “Rounding of VAT is not done yet.”" in text
    assert "`prices.py` (+2 −0)" in text
    assert f"`{workplace.second}` by Robin Vale" in text
    assert result.entry is not None
    assert {quote.speaker for quote in result.entry.quotes} == {"user", "assistant"}


def test_secrets_are_redacted(journal: Journal, workplace: Workplace) -> None:
    result = journal.write("HEAD", workplace.repository)
    assert "ghp_" not in _daily(result.path)
    assert "[redacted: " in _daily(result.path)
    note = journal.add_note(
        "reflection", "key: ghp_Zk3vQ8sT1uWxY5aB7cD9eF2gH4iJ6kL0mN1p", workplace.repository
    )
    assert "ghp_" not in note.path.read_text()


def test_nothing_is_written_into_the_repository(journal: Journal, workplace: Workplace) -> None:
    journal.write("HEAD", workplace.repository)
    journal.add_note("context", "Waiting", workplace.repository)
    assert workplace.checkout.run("status", "--porcelain", "--ignored") == ""
    assert workplace.home in journal.folder(workplace.repository).parents


def test_a_named_folder_may_be_in_the_repository(journal: Journal, workplace: Workplace) -> None:
    folder = workplace.repository / "journal"
    result = journal.write("HEAD", workplace.repository, folder=folder)
    assert result.path == folder / "daily" / "2026-03-02-journal.md"
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == ["2026-03-02-journal.md"]


def test_config_names_the_folder_of_a_repository(workplace: Workplace) -> None:
    workplace.home.mkdir()
    config = workplace.home / "config.toml"
    config.write_text(f'[journal.folders]\n"{workplace.repository}" = "notes/journal"\n')
    with workplace.history() as history:
        assert history.journal.folder(workplace.repository) == workplace.repository / "notes" / "journal"
        assert history.settings.unknown == ()


def test_all_clones_share_a_journal(journal: Journal, workplace: Workplace) -> None:
    clone = workplace.checkout.bare_clone(workplace.folder / "other-name.git")
    path = journal.write("HEAD", workplace.repository).path
    again = journal.write("HEAD", clone)
    assert (again.path, again.is_new, again.is_changed) == (path, False, False)


def test_writing_again_changes_nothing(journal: Journal, workplace: Workplace) -> None:
    first = journal.write("HEAD", workplace.repository)
    text = _daily(first.path)
    again = journal.write("HEAD", workplace.repository)
    assert (again.is_new, again.is_changed) == (False, False)
    assert _daily(first.path) == text


def test_an_entry_is_updated_when_the_conversation_goes_on(history: History, workplace: Workplace) -> None:
    journal = Journal(history._stores, zone=UTC)
    journal.write("HEAD", workplace.repository)
    workplace.session.transcript.assistant("The tests are missing as well.")
    workplace.save()
    history.sync()
    result = journal.write("HEAD", workplace.repository)
    assert (result.is_new, result.is_changed) == (False, True)
    assert "The tests are missing as well." in _daily(result.path)
    assert _daily(result.path).count("backscroll:entry") == 1


def test_the_entry_of_the_parent_is_updated_with_the_next_commit(
    history: History, workplace: Workplace
) -> None:
    journal = Journal(history._stores, zone=UTC)
    path = journal.write("HEAD", workplace.repository).path
    workplace.session.transcript.assistant("The tests are missing as well.")
    workplace.save()
    workplace.checkout.write("README.md", "The shop.\n")
    workplace.checkout.commit("Edit the README", datetime(2026, 3, 3, 9, tzinfo=UTC))
    history.sync()
    journal.write("HEAD", workplace.repository)
    assert "The tests are missing as well." in _daily(path)


def test_an_edited_entry_is_kept(journal: Journal, workplace: Workplace) -> None:
    path = journal.write("HEAD", workplace.repository).path
    edited = _daily(path).replace("### Decisions", "### Decisions\n\nMine.") + "\nMy own words.\n"
    assert path is not None
    path.write_text(edited)
    result = journal.write("HEAD", workplace.repository)
    assert (result.skipped, result.is_changed) == ("edited", False)
    journal.backfill(workplace.repository, since=datetime(2026, 1, 1, tzinfo=UTC))
    assert _daily(path) == edited


def test_an_entry_without_its_markers_is_not_duplicated(journal: Journal, workplace: Workplace) -> None:
    path = journal.write("HEAD", workplace.repository).path
    assert path is not None
    kept = "".join(f"{line}\n" for line in _daily(path).splitlines() if "<!--" not in line)
    path.write_text(kept)
    assert journal.write("HEAD", workplace.repository).skipped == "edited"
    assert _daily(path) == kept


def test_text_around_entries_is_kept(journal: Journal, workplace: Workplace) -> None:
    path = journal.write("HEAD", workplace.repository).path
    assert path is not None
    path.write_bytes(b"My title\r\n\r\n" + path.read_bytes().replace(b"\n", b"\r\n") + b"My end\r\n")
    workplace.checkout.write("README.md", "The shop.\n")
    workplace.checkout.commit("Edit the README", datetime(2026, 3, 2, 8, tzinfo=UTC))
    journal.write("HEAD", workplace.repository)
    data = path.read_bytes()
    assert data.startswith(b"My title\r\n\r\n") and data.endswith(b"My end\r\n")
    assert data.count(b"\n") == data.count(b"\r\n")
    assert data.index(b"## 08:00 Edit the README") < data.index(b"## 09:00 Add prices")


@pytest.mark.parametrize("kind", ["amend", "rebase", "cherry-pick"])
def test_a_rewritten_commit_is_not_duplicated(journal: Journal, workplace: Workplace, kind: str) -> None:
    path = journal.write("HEAD", workplace.repository).path
    checkout = workplace.checkout
    later = datetime(2026, 3, 4, tzinfo=UTC)
    if kind == "amend":
        checkout.run("commit", "--amend", "--quiet", "-m", "Add prices in cents")
    else:
        checkout.run("checkout", "--quiet", "-b", "other", workplace.first)
        checkout.write("other.txt", "Other\n")
        checkout.commit("Other", later)
        checkout.run(
            *(["cherry-pick", "main"] if kind == "cherry-pick" else ["rebase", "--quiet", "other", "main"])
        )
    assert checkout.head() != workplace.second
    result = journal.write("HEAD", workplace.repository)
    assert (result.is_new, result.path) == (False, path)
    assert _daily(path).count("backscroll:entry") == 1
    assert f"sha={checkout.head()}" in _daily(path)
    journal.backfill(workplace.repository, since=datetime(2026, 1, 1, tzinfo=UTC))
    assert sum(text.count("Add prices") for text in _all_headings(journal, workplace)) == 1


def _all_headings(journal: Journal, workplace: Workplace) -> list[str]:
    files = (journal.folder(workplace.repository) / "daily").glob("*.md")
    return [line for file in files for line in file.read_text().splitlines() if line.startswith("## ")]


def test_the_same_change_made_again_has_its_own_entry(journal: Journal, workplace: Workplace) -> None:
    checkout = workplace.checkout
    journal.write("HEAD", workplace.repository)
    checkout.run("revert", "--no-edit", "HEAD", at=datetime(2026, 3, 3, tzinfo=UTC))
    checkout.run("revert", "--no-edit", "HEAD", at=datetime(2026, 3, 4, tzinfo=UTC))
    assert journal.write("HEAD", workplace.repository).is_new


def test_merges_and_commits_of_the_journal_have_no_entry(journal: Journal, workplace: Workplace) -> None:
    folder = workplace.repository / "journal"
    journal.write("HEAD", workplace.repository, folder=folder)
    workplace.checkout.commit("Add the journal", datetime(2026, 3, 3, tzinfo=UTC))
    result = journal.write("HEAD", workplace.repository, folder=folder)
    assert (result.skipped, result.path, result.entry) == ("journal-only", None, None)
    workplace.checkout.run("checkout", "--quiet", "-b", "side", workplace.first)
    workplace.checkout.write("side.txt", "Side\n")
    workplace.checkout.commit("Side", datetime(2026, 3, 4, tzinfo=UTC))
    workplace.checkout.run("merge", "--quiet", "--no-ff", "-m", "Merge", "main")
    assert journal.write("HEAD", workplace.repository, folder=folder).skipped == "merge"


def test_a_commit_with_code_and_journal_lists_only_the_code(journal: Journal, workplace: Workplace) -> None:
    folder = workplace.repository / "journal"
    journal.write("HEAD", workplace.repository, folder=folder)
    workplace.checkout.write("README.md", "Another shop.\n")
    workplace.checkout.commit("Both", datetime(2026, 3, 3, tzinfo=UTC))
    entry = journal.write("HEAD", workplace.repository, folder=folder).entry
    assert entry is not None and entry.sections["files"] == "- `README.md` (+1 −1)"


def test_the_body_of_a_commit_message_cannot_change_the_entry(journal: Journal, workplace: Workplace) -> None:
    body = "# Why\n\nReason.\n<!-- backscroll:end -->\n\nCo-Authored-By: Claude <noreply@example.invalid>"
    workplace.checkout.run("commit", "--amend", "--quiet", "-m", f"Add prices\n\n{body}")
    result = journal.write("HEAD", workplace.repository)
    text = _daily(result.path)
    assert "#### Why\n\nReason." in text and "Co-Authored-By" not in text
    assert text.count("\n<!-- backscroll:end -->") == 1
    assert journal.write("HEAD", workplace.repository).is_changed is False


def test_backfilling_writes_missing_entries_once(journal: Journal, workplace: Workplace) -> None:
    steps: list[tuple[int, int]] = []
    first = journal.backfill(
        workplace.repository,
        since=datetime(2026, 1, 1, tzinfo=UTC),
        progress=lambda done, total: steps.append((done, total)),
    )
    assert first.written == (workplace.first, workplace.second)
    assert steps[-1] == (2, 2)
    again = journal.backfill(workplace.repository, since=datetime(2026, 1, 1, tzinfo=UTC))
    assert (again.written, again.existing) == ((), 2)


def test_notes_are_appended_to_today(journal: Journal, workplace: Workplace) -> None:
    for number in range(3):
        note = journal.add_note("reflection", f"Thought {number}", workplace.repository)
    text = note.path.read_text()
    assert note.path.name == f"{datetime.now(UTC):%Y-%m-%d}-journal.md"
    assert text.index("Thought 0") < text.index("Thought 1") < text.index("Thought 2")
    context = journal.context("HEAD", workplace.repository)
    assert context.notes == ()  # written after the commit


def test_a_note_cannot_end_its_block(journal: Journal, workplace: Workplace) -> None:
    journal.add_note("reflection", "<!-- backscroll:end -->\nrest", workplace.repository)
    note = journal.add_note("context", "next", workplace.repository)
    assert note.path.read_text().count("\n<!-- backscroll:end -->") == 2


def test_a_file_that_is_not_utf8_is_an_error(journal: Journal, workplace: Workplace) -> None:
    path = journal.folder(workplace.repository) / "daily" / "2026-03-02-journal.md"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"caf\xe9\n")
    with pytest.raises(DestinationError, match="is not UTF-8"):
        journal.write("HEAD", workplace.repository)
    assert path.read_bytes() == b"caf\xe9\n"


def test_a_file_changed_by_another_program_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "day.md"
    path.write_text("new\n")
    with pytest.raises(DestinationError, match="changed by another program"):
        write_atomically(path, "mine\n", expected="old\n")
    assert path.read_text() == "new\n"
    assert os.listdir(tmp_path) == ["day.md"]  # noqa: PTH208


def test_a_locked_journal_is_an_error_after_the_timeout(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "a.lock"
    with (
        journal_lock(path),
        pytest.raises(DestinationError, match="Another process"),
        journal_lock(path, 0.1),
    ):
        pass


def test_two_processes_at_once_lose_no_note(workplace: Workplace, history: History) -> None:
    history.close()
    code = (
        "import sys\nfrom pathlib import Path\nfrom backscroll.history.history import History\n"
        "with History(home=Path(sys.argv[1])) as history:\n"
        "    for number in range(8):\n"
        "        history.journal.add_note('reflection', f'{sys.argv[3]}-{number}.', sys.argv[2])\n"
    )
    command = [sys.executable, "-c", code, str(workplace.home), str(workplace.repository)]
    processes = [subprocess.Popen([*command, name]) for name in ("one", "two")]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]
    with workplace.history() as opened:
        text = "".join(opened.journal.read(day, workplace.repository) or "" for day in ("yesterday", "today"))
    assert all(f"{name}-{number}." in text for name in ("one", "two") for number in range(8))


def test_the_lock_is_beside_the_archive(workplace: Workplace) -> None:
    base = workplace.home / "journal"
    assert lock_path(workplace.repository / "journal", base).parent == base / "locks"
    assert lock_path(workplace.repository / "a", base) != lock_path(workplace.repository / "b", base)


def test_work_before_the_parent_commit_is_not_repeated(history: History, workplace: Workplace) -> None:
    """One prompt may lead to many commits: each entry has only what was said since the last one."""
    session = workplace.session
    session.transcript.wait(60)
    session.transcript.assistant("Now the VAT, because invoices need it.")
    session.write("vat.py", "def vat_of(price_in_cents):\n    return price_in_cents * 25 // 100\n")
    session.transcript.assistant("Invoices now have VAT.")
    third = session.commit("Add VAT")
    workplace.save()
    history.sync()
    entry = Journal(history._stores, zone=UTC).write(third, workplace.repository).entry
    assert entry is not None
    assert "because invoices need it" in entry.sections["decisions"]
    assert REASON not in "".join(entry.sections.values())
    assert "Topic" not in entry.sections["summary"]
    assert entry.at - session.now < timedelta(minutes=1)

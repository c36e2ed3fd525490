"""Entries of the demo commits contain what a reader of the conversations would note."""

import re
import shutil
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from backscroll.history.history import History
from backscroll.journal.journal import Journal
from backscroll.model.journal import SECTION_TITLES, JournalEntry
from tests.demo.journal_expectations import EXPECTED, Expected

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

MAX_DECISIONS = 8
_SINCE_START = re.compile(r"\s+")


@pytest.fixture(scope="module")
def entries(history: History, home: Path) -> dict[str, JournalEntry]:
    """Return all entries by repository and subject."""
    found: dict[str, JournalEntry] = {}
    journal = Journal(history._stores, zone=UTC)
    for repository in ("tideline", "saltern", "lintel", "website"):
        folder = home / "projects" / repository
        for commit in history.list_commits(folder, limit=None).data:
            entry = journal.write(commit.sha, folder, is_refreshed=False).entry
            assert entry is not None
            found[f"{repository}: {commit.subject}"] = entry
    return found


def _flat(text: str) -> str:
    """Return a text in one line, without the marks of block quotes."""
    return _SINCE_START.sub(" ", re.sub(r"^> ?", "", text, flags=re.MULTILINE))


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda expected: expected.subject)
def test_an_entry_contains_decisions_errors_and_alternatives(
    entries: dict[str, JournalEntry], expected: Expected
) -> None:
    entry = entries[f"{expected.repository}: {expected.subject}"]
    sections = {name: _flat(text) for name, text in entry.sections.items()}

    def text_of(*names: str) -> str:
        return " ".join(sections.get(name, "") for name in names)  # type: ignore[call-overload]

    results = text_of("summary", "synopsis", "accomplishments", "decisions")
    everything = text_of(*SECTION_TITLES)
    places = {
        text_of("decisions"): (*expected.decisions, *expected.dropped),
        text_of("frustrations"): (*expected.errors, *expected.corrections),
        results: expected.results,
        text_of("open"): expected.open_items,
        everything: expected.anywhere,
    }
    missing = [text for place, texts in places.items() for text in texts if text not in place]
    assert missing == []
    assert [text for text in expected.nowhere if text in everything] == []
    assert [text for text in expected.not_errors if text in text_of("frustrations")] == []
    assert [text for text in expected.not_decisions if text in text_of("decisions")] == []


def test_every_quote_is_a_verbatim_part_of_its_message(
    entries: dict[str, JournalEntry], history: History
) -> None:
    for entry in entries.values():
        for quote in entry.quotes:
            message = history.get_session(quote.session_ref).messages[quote.position]
            tool = message.tool
            texts = [message.content, tool.result or "" if tool is not None else ""]
            texts += [str(value) for value in tool.params.values()] if tool is not None else []
            redacted = "[redacted" in quote.text
            assert redacted or any(quote.text in text for text in texts), quote
            assert quote.at == message.timestamp


def test_the_size_of_an_entry_follows_the_size_of_the_conversation(entries: dict[str, JournalEntry]) -> None:
    by_hand = entries["tideline: Shorten the README"]
    assert list(by_hand.sections) == ["files", "commit"]
    assert by_hand.quotes == ()
    short = entries["lintel: Say what the modules are for"]
    assert set(short.sections) <= {"summary", "discussion", "files", "commit"}
    for entry in entries.values():
        assert all(text.strip() for text in entry.sections.values())
        assert len(re.findall(r"^- ", entry.sections.get("decisions", ""), re.MULTILINE)) <= MAX_DECISIONS
        assert sum(map(len, entry.sections.values())) < 6000


def test_no_sentence_of_the_assistant_is_in_two_sections_except_as_outcome(
    entries: dict[str, JournalEntry],
) -> None:
    for entry in entries.values():
        for quote in entry.quotes:
            if quote.speaker == "assistant":
                places = [name for name, text in entry.sections.items() if quote.text in _flat(text)]
                assert len(set(places) - {"summary"}) <= 1, (entry.subject, quote.text, places)


@pytest.fixture(scope="module", autouse=True)
def _without_leaving_files(home: Path) -> Iterator[None]:
    before = sorted(path for path in (home / "projects").rglob("*") if ".git" not in path.parts)
    yield
    assert sorted(path for path in (home / "projects").rglob("*") if ".git" not in path.parts) == before

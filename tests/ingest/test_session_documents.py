"""The index has one session document per window of messages, kept up to date by every sync."""

from pathlib import Path

import pytest
import tantivy

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.index import documents
from backscroll.index.schema import SESSION_TAG, schema
from backscroll.testing.claude_code import Transcript

ID = "10000000-0000-4000-8000-000000000000"


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path / "home")


def write(folder: Path, *prompts: str) -> None:
    transcript = Transcript(ID, seed=1, cwd="/home/zoe/shop")
    for prompt in prompts:
        transcript.user(prompt).assistant("Done.")
    transcript.write(folder / "claude")


def session_document_count(history: History) -> int:
    query = tantivy.Query.term_query(schema(), "tags", SESSION_TAG)
    searcher = history._stores.index.index._latest_snapshot().searcher
    return searcher.search(query, 10, count=True).count or 0


def test_words_of_earlier_and_later_messages_find_the_session(history: History, tmp_path: Path) -> None:
    with history:
        for prompts in (["The ferry"], ["The ferry", "was late"], ["The ferry", "was late", "in the fog"]):
            write(tmp_path, *prompts)
            history.sync()
            assert session_document_count(history) == 1
        (match,) = history.search_sessions("ferry late fog").data
        assert match.ranks is not None
        assert match.ranks.session == 1


def test_an_append_keeps_the_documents_of_earlier_windows(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "WINDOW_MESSAGES", 4)
    prompts = [f"prompt{number}" for number in range(5)]
    with history:
        write(tmp_path, *prompts[:4])
        history.sync()
        assert session_document_count(history) == 2
        write(tmp_path, *prompts)
        history.sync()
        assert session_document_count(history) == 3
        for pair in (prompts[:2], prompts[2:4]):
            (match,) = history.search_sessions(" ".join(pair)).data
            assert match.ranks is not None
            assert match.ranks.session == 1


@pytest.mark.parametrize("messages_per_window", [512, 2], ids=["first window", "at the end of a window"])
@pytest.mark.parametrize("change", ["deleted", "grown without a message"])
def test_a_change_without_new_messages_keeps_the_documents(
    history: History,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    messages_per_window: int,
) -> None:
    monkeypatch.setattr(documents, "WINDOW_MESSAGES", messages_per_window)
    with history:
        write(tmp_path, "The ferry", "was late")
        history.sync()
        before = session_document_count(history)
        (path,) = (tmp_path / "claude").rglob("*.jsonl")
        if change == "deleted":
            path.unlink()
        else:
            with path.open("a") as file:
                file.write(f'{{"type":"last-prompt","lastPrompt":"was late","sessionId":"{ID}"}}\n')
        history.sync()
        assert session_document_count(history) == before
        (match,) = history.search_sessions("ferry shop").data
        assert match.ranks is not None
        assert match.ranks.session == 1


def test_a_forgotten_session_leaves_no_document(history: History, tmp_path: Path) -> None:
    with history:
        write(tmp_path, "The ferry")
        history.sync()
        history.archive_admin.forget(ID)
        assert session_document_count(history) == 0

"""Text typed into dialogs and decisions about calls: counts, search and rebuild."""

from pathlib import Path
from typing import Any

import pytest

from backscroll.index.store import Index
from backscroll.ingest.originals import rebuild
from backscroll.sources.claude_code.transcript import tool_results
from backscroll.testing.claude_code import Transcript, tool_calls
from tests.archive.synced_archive import SyncedArchive


def _write_dialogs(root: Path) -> Path:
    """Write a session with a rejected, a denied and a stopped edit, and a typed answer."""
    edit = tool_calls.edit("/a.py", "x", "y", original="x\n")
    session = Transcript(version="2.1.212").user("go").run(edit).assistant(tools=[edit])
    session.reject(session.tool_ids[-1], feedback="use another name").assistant(tools=[edit])
    session.deny(
        session.tool_ids[-1],
        "Claude requested permissions to write to /a.py, but you haven't granted it yet.",
    )
    session.assistant(tools=[edit]).stop(session.tool_ids[-1]).user("ask me")
    session.run(tool_calls.ask("Which tea?", ["Green", "Black"], "oolong")).assistant("Noted.")
    return session.write(root)


def test_text_typed_into_dialogs_counts_as_prompts(tmp_path: Path) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    _write_dialogs(synced.root)
    synced.sync()
    (summary,) = synced.summaries()
    assert (summary.interaction_count, summary.first_message_preview) == (4, "go")


def test_only_decisions_of_the_user_lower_the_acceptance_rate(tmp_path: Path) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    _write_dialogs(synced.root)
    synced.sync()
    (summary,) = synced.summaries()
    assert summary.acceptance_rate == 0.5  # one accepted, one rejected


def test_a_rebuild_corrects_decisions_and_adds_text_typed_into_dialogs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    path = _write_dialogs(synced.root)

    def reject_all(result: str, line: Any, *, is_error: bool) -> tuple[str, str | None]:
        return ("cancelled", "rejected") if is_error else ("completed", None)

    with monkeypatch.context() as before:
        before.setattr(tool_results, "parse_outcome", reject_all)
        before.setattr(tool_results, "feedback", lambda *_: None)
        before.setattr(tool_results, "typed_answers", lambda _: None)
        synced.sync()
    path.unlink()
    synced.sync()
    assert synced.summaries()[0].interaction_count == 2
    assert rebuild(synced.archive, Index(tmp_path / "index")).units == 1
    (summary,) = synced.summaries()
    assert (summary.interaction_count, summary.acceptance_rate) == (4, 0.5)

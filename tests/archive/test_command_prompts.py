"""Slash commands as prompts: title, preview, counts and rebuild."""

from pathlib import Path

import pytest

from backscroll.index.store import Index
from backscroll.ingest.originals import rebuild
from backscroll.sources.claude_code.transcript import user_text
from backscroll.testing.claude_code import Transcript
from tests.archive.synced_archive import SyncedArchive

_PLAN = (
    "<command-name>/plan</command-name><command-message>plan</command-message>"
    "<command-args>the quay</command-args>"
)


def _figures(synced: SyncedArchive) -> tuple[str | None, str | None, int | None, int]:
    (summary,) = synced.summaries()
    preview, prompts = summary.first_message_preview, summary.interaction_count
    return summary.title, preview, prompts, summary.message_count


def test_a_session_that_starts_with_a_command_has_it_as_title_and_preview(tmp_path: Path) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    session = Transcript().command("clear").prompt_command("orchestrator", "create TODO app")
    session.assistant("Creating.").user("faster").assistant("ok").write(synced.root)
    synced.sync()
    command = "/orchestrator create TODO app"
    assert _figures(synced) == (command, command, 2, 4)


def test_a_command_becomes_a_prompt_when_its_answer_is_synced(tmp_path: Path) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    session = Transcript().user_line(_PLAN)
    session.write(synced.root)
    synced.sync()
    assert _figures(synced)[1:] == (None, 0, 0)
    session.assistant("Here it is.").write(synced.root)
    assert synced.sync().grew == 1
    assert _figures(synced) == ("/plan the quay", "/plan the quay", 1, 2)
    assert synced.archive.maintenance.verify() == []


def test_a_rebuild_corrects_commands_that_were_archived_as_system_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")
    path = Transcript().prompt_command("brew", "oolong").assistant("Brewing.").write(synced.root)
    with monkeypatch.context() as before:
        before.setattr(user_text, "classify", lambda parts, _: (parts, False))
        synced.sync()
    path.unlink()
    synced.sync()
    assert _figures(synced)[1:] == (None, 0, 1)
    assert rebuild(synced.archive, Index(tmp_path / "index")).units == 1
    assert _figures(synced) == ("/brew oolong", "/brew oolong", 1, 2)

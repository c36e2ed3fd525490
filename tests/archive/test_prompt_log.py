"""The prompt log: only new lines are read, and they extend the sessions."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backscroll.sources.claude_code import prompt_log
from backscroll.testing.claude_code import Prompt
from backscroll.testing.claude_code.side_files import write_prompts
from tests.archive.synced_archive import SyncedArchive

START = datetime(2026, 8, 1, 9, tzinfo=UTC)
ONE = "5e551011-0000-4000-8000-0000000000aa"
TWO = "5e551011-0000-4000-8000-0000000000bb"


@pytest.fixture
def synced(tmp_path: Path) -> SyncedArchive:
    (tmp_path / "root").mkdir()
    return SyncedArchive("claude-code", tmp_path / "root", tmp_path / "home")


def _log() -> list[Prompt]:
    return [
        Prompt(f"prompt {index}", START + timedelta(minutes=index), "/home/zoe/ferry", (ONE, TWO)[index % 2])
        for index in range(12)
    ]


def test_a_log_read_while_it_grew_equals_one_read_at_once(synced: SyncedArchive, tmp_path: Path) -> None:
    for prompt in _log():
        path = write_prompts(synced.root, [prompt])
        synced.sync()
    at_once = SyncedArchive("claude-code", synced.root, tmp_path / "at-once")
    at_once.sync()
    assert synced.content() == at_once.content()
    (one,) = synced.archive.sessions.find(ONE)
    assert (one.created_at, one.updated_at) == (START, START + timedelta(minutes=10))
    assert synced.archive.maintenance.verify() == []
    (original,) = synced.archive.originals.units_with_file()
    synced.archive.originals.write_file(original, tmp_path / "written")
    assert (tmp_path / "written").read_bytes() == path.read_bytes()


def test_only_new_prompts_are_read(synced: SyncedArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    write_prompts(synced.root, _log())
    synced.sync()
    read: list[str] = []
    original = prompt_log._message

    def recording(*arguments: object) -> object:
        message = original(*arguments)  # type: ignore[arg-type]
        read.append(message.content)
        return message

    monkeypatch.setattr(prompt_log, "_message", recording)
    write_prompts(synced.root, [Prompt("one more", START + timedelta(hours=1), "/home/zoe/ferry", ONE)])
    assert synced.sync().grew == 1
    assert read == ["one more"]
    assert [m.content for m in synced.messages(ONE)][-2:] == ["prompt 10", "one more"]


def test_prompts_removed_from_the_log_are_kept(synced: SyncedArchive) -> None:
    path = write_prompts(synced.root, _log())
    synced.sync()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[6:]))
    synced.sync()
    assert sorted(m.content for m in synced.messages(ONE)) == sorted(f"prompt {n}" for n in range(0, 12, 2))

"""The log of prompts: of what was typed since, only that is read, and it joins what was there."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backscroll.sources.claude_code import prompt_log
from backscroll.testing.claude_code import Prompt
from backscroll.testing.claude_code.side_files import write_prompts
from tests.archive.keeping import Kept

START = datetime(2026, 8, 1, 9, tzinfo=UTC)
ONE = "5e551011-0000-4000-8000-0000000000aa"
TWO = "5e551011-0000-4000-8000-0000000000bb"


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    (tmp_path / "root").mkdir()
    return Kept("claude-code", tmp_path / "root", tmp_path / "home")


def _log() -> list[Prompt]:
    return [
        Prompt(
            f"prompt {number}", START + timedelta(minutes=number), "/home/zoe/ferry", (ONE, TWO)[number % 2]
        )
        for number in range(12)
    ]


def test_a_log_read_as_it_grew_tells_what_it_tells_read_at_once(kept: Kept, tmp_path: Path) -> None:
    for prompt in _log():
        path = write_prompts(kept.root, [prompt])
        kept.sync()
    at_once = Kept("claude-code", kept.root, tmp_path / "at-once")
    at_once.sync()
    assert kept.told() == at_once.told()
    (one,) = kept.archive.sessions.find(ONE)
    assert (one.created_at, one.updated_at) == (START, START + timedelta(minutes=10))
    assert kept.archive.maintenance.verify() == []
    (original,) = kept.archive.originals.units_with_file()
    kept.archive.originals.write_file(original, tmp_path / "written")
    assert (tmp_path / "written").read_bytes() == path.read_bytes()


def test_only_what_was_typed_since_is_read(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    write_prompts(kept.root, _log())
    kept.sync()
    read: list[str] = []
    told = prompt_log._message

    def listened(*told_of: object) -> object:
        message = told(*told_of)  # type: ignore[arg-type]
        read.append(message.content)
        return message

    monkeypatch.setattr(prompt_log, "_message", listened)
    write_prompts(kept.root, [Prompt("one more", START + timedelta(hours=1), "/home/zoe/ferry", ONE)])
    assert kept.sync().grew == 1
    assert read == ["one more"]
    assert [m.content for m in kept.messages(ONE)][-2:] == ["prompt 10", "one more"]


def test_a_log_that_was_pruned_keeps_what_it_told(kept: Kept) -> None:
    path = write_prompts(kept.root, _log())
    kept.sync()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[6:]))
    kept.sync()
    assert sorted(m.content for m in kept.messages(ONE)) == sorted(f"prompt {n}" for n in range(0, 12, 2))

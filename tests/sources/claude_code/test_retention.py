"""What Claude Code is about to delete, said in time."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.stores import write_settings

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def written(root: Path, days: int, seed: int) -> str:
    session = Transcript(seed=seed).user("a")
    path = session.write(root)
    at = (NOW - timedelta(days=days)).timestamp()
    os.utime(path, (at, at))
    return session.session_id


def test_sessions_that_go_within_a_week_are_named(tmp_path: Path) -> None:
    written(tmp_path, 5, 1)
    soon = written(tmp_path, 25, 2)
    found = ClaudeCode().retention(tmp_path, NOW)
    assert found is not None
    assert (found.days, found.is_default, found.expiring) == (30, True, (soon,))
    assert '+  "cleanupPeriodDays": 3650' in found.diff


def test_only_the_one_setting_is_shown(tmp_path: Path) -> None:
    written(tmp_path, 8, 1)
    path = write_settings(tmp_path, cleanup_days=10, env={"ANTHROPIC_API_KEY": "sk-do-not-show"})
    before = path.read_bytes()
    found = ClaudeCode().retention(tmp_path, NOW)
    assert found is not None
    assert (found.days, found.is_default) == (10, False)
    assert '-  "cleanupPeriodDays": 10,' in found.diff
    assert "sk-do-not-show" not in str(found)
    assert path.read_bytes() == before


def test_a_long_period_needs_no_word(tmp_path: Path) -> None:
    written(tmp_path, 100, 1)
    write_settings(tmp_path, cleanup_days=3650)
    assert ClaudeCode().retention(tmp_path, NOW) is None


def test_settings_that_cannot_be_read_mean_the_default(tmp_path: Path) -> None:
    written(tmp_path, 29, 1)
    (tmp_path / "settings.json").write_text("{broken")
    found = ClaudeCode().retention(tmp_path, NOW)
    assert found is not None
    assert found.is_default

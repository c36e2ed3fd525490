"""What Claude Code is about to delete, said in time."""

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backscroll.model import Retention
from backscroll.render.retention import retention_lines
from backscroll.sources.claude_code import ClaudeCode, settings
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.side_files import write_settings

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
    assert '-  "cleanupPeriodDays": 10' in found.diff
    assert "sk-do-not-show" not in str(found)
    assert path.read_bytes() == before


def test_a_long_period_needs_no_word(tmp_path: Path) -> None:
    written(tmp_path, 100, 1)
    write_settings(tmp_path, cleanup_days=3650)
    assert ClaudeCode().retention(tmp_path, NOW) is None


@pytest.fixture(autouse=True)
def managed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where an organisation would put its settings."""
    path = tmp_path / "etc" / "managed-settings.json"
    path.parent.mkdir()
    monkeypatch.setattr(settings, "_MANAGED", {})
    monkeypatch.setattr(settings, "_MANAGED_ELSEWHERE", path)
    return path


def expiring(root: Path) -> Retention:
    written(root, 29, 1)
    found = ClaudeCode().retention(root, NOW)
    assert found is not None
    return found


def applied(root: Path, diff: str) -> dict[str, Any]:
    """The settings after the diff was applied as it stands."""
    if shutil.which("patch") is None:
        pytest.skip("patch is not installed")
    done = subprocess.run(
        ["patch", "--unified", str(root / "settings.json")], input=diff, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((root / "settings.json").read_text())
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    "before",
    [
        None,
        "",
        "{\n}\n",
        '{\n  "env": {"KEY": "secret"}\n}\n',
        '{\n  "model": "x",\n\t"cleanupPeriodDays" : 14,\n  "env": {"KEY": "secret"}\n}\n',
        '{\n  "env": {"KEY": "secret"},\n  "cleanupPeriodDays": 20\n}',
    ],
)
def test_the_diff_can_be_applied_and_shows_nothing_else(tmp_path: Path, before: str | None) -> None:
    path = tmp_path / "settings.json"
    if before is not None:
        path.write_text(before)
    found = expiring(tmp_path)
    assert "secret" not in found.diff
    was = json.loads(before) if before and before.strip() else {}
    assert applied(tmp_path, found.diff) == was | {"cleanupPeriodDays": 3650}
    assert ClaudeCode().retention(tmp_path, NOW) is None


def test_settings_in_one_line_are_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"env": {"KEY": "secret"}, "cleanupPeriodDays": 20}')
    found = expiring(tmp_path)
    assert found.diff.splitlines()[2:] == ['-  "cleanupPeriodDays": 20', '+  "cleanupPeriodDays": 3650']


def test_the_organisation_decides_before_the_user_and_the_local_file_before_the_other(
    tmp_path: Path, managed: Path
) -> None:
    write_settings(tmp_path, cleanup_days=3650)
    (tmp_path / "settings.local.json").write_text('{"cleanupPeriodDays": 25}')
    found = expiring(tmp_path)
    assert (found.days, found.settings) == (25, str(tmp_path / "settings.local.json"))
    managed.write_text('{"cleanupPeriodDays": 10}')
    found = expiring(tmp_path)
    assert (found.days, found.settings) == (10, str(managed))
    managed.write_text('{"cleanupPeriodDays": 400}')
    assert ClaudeCode().retention(tmp_path, NOW) is None


def test_zero_days_keep_nothing(tmp_path: Path) -> None:
    written(tmp_path, 0, 5)
    write_settings(tmp_path, cleanup_days=0)
    found = expiring(tmp_path)
    assert (found.days, found.is_default, len(found.expiring)) == (0, False, 2)


@pytest.mark.parametrize("value", ['"30"', "true", "-5", "null", "[1]"])
def test_what_is_no_number_of_days_means_the_default(tmp_path: Path, value: str) -> None:
    (tmp_path / "settings.json").write_text(f'{{"cleanupPeriodDays": {value}}}')
    found = expiring(tmp_path)
    assert (found.days, found.is_default) == (30, True)
    assert found.diff.count("+  ") == found.diff.count("-  ") == 1


def test_a_number_beyond_all_time_is_long_enough(tmp_path: Path) -> None:
    written(tmp_path, 29, 1)
    (tmp_path / "settings.json").write_text('{"cleanupPeriodDays": 900000000000}')
    assert ClaudeCode().retention(tmp_path, NOW) is None


@pytest.mark.parametrize(("text", "why"), [("{broken", "is not JSON"), ("[]", "is not a JSON object")])
def test_settings_that_cannot_be_read_are_said_and_no_change_is_made_up(
    tmp_path: Path, text: str, why: str
) -> None:
    (tmp_path / "settings.json").write_text(text)
    found = expiring(tmp_path)
    assert (found.is_default, found.trouble, found.diff) == (True, why, "")
    told = "\n".join(retention_lines(found))
    assert why in told
    assert "settings.json" in told
    assert "To keep them" not in told

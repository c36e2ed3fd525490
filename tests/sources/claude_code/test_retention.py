"""Sessions that Claude Code deletes within a week."""

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backscroll.config import Machine
from backscroll.history.history import History
from backscroll.model.retention import Retention
from backscroll.render.sync import retention_lines
from backscroll.sources.claude_code import retention as retention_module
from backscroll.sources.claude_code.retention import retention
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.side_files import write_settings

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def write_session(root: Path, days: int, seed: int) -> str:
    session = Transcript(seed=seed).user("a")
    path = session.write(root)
    at = (NOW - timedelta(days=days)).timestamp()
    os.utime(path, (at, at))
    return session.session_id


def test_sessions_that_expire_within_a_week_are_returned(tmp_path: Path) -> None:
    write_session(tmp_path, 5, 1)
    expiring_id = write_session(tmp_path, 25, 2)
    found = retention(tmp_path, NOW)
    assert found is not None
    assert (found.days, found.is_default, found.expiring) == (30, True, (expiring_id,))
    assert '+  "cleanupPeriodDays": 3650' in found.diff


def test_the_diff_contains_only_the_retention_setting(tmp_path: Path) -> None:
    write_session(tmp_path, 8, 1)
    path = write_settings(tmp_path, cleanup_days=10, env={"ANTHROPIC_API_KEY": "sk-do-not-show"})
    before = path.read_bytes()
    found = retention(tmp_path, NOW)
    assert found is not None
    assert (found.days, found.is_default) == (10, False)
    assert '-  "cleanupPeriodDays": 10' in found.diff
    assert "sk-do-not-show" not in str(found)
    assert path.read_bytes() == before


def test_a_long_retention_period_needs_no_warning(tmp_path: Path) -> None:
    write_session(tmp_path, 100, 1)
    write_settings(tmp_path, cleanup_days=3650)
    assert retention(tmp_path, NOW) is None


@pytest.fixture(autouse=True)
def managed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the managed settings of this test."""
    path = tmp_path / "etc" / "managed-settings.json"
    path.parent.mkdir()
    monkeypatch.setattr(retention_module, "_MANAGED_PATHS", {})
    monkeypatch.setattr(retention_module, "_DEFAULT_MANAGED_PATH", path)
    return path


def expiring(root: Path) -> Retention:
    write_session(root, 29, 1)
    found = retention(root, NOW)
    assert found is not None
    return found


def apply_diff(root: Path, diff: str) -> dict[str, Any]:
    """Return the settings after the diff was applied with ``patch``."""
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
    assert apply_diff(tmp_path, found.diff) == was | {"cleanupPeriodDays": 3650}
    assert retention(tmp_path, NOW) is None


def test_other_settings_on_the_same_line_are_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"env": {"KEY": "secret"}, "cleanupPeriodDays": 20}')
    found = expiring(tmp_path)
    assert found.diff.splitlines()[2:] == ['-  "cleanupPeriodDays": 20', '+  "cleanupPeriodDays": 3650']


def test_managed_settings_take_precedence_over_local_and_user_settings(tmp_path: Path, managed: Path) -> None:
    write_settings(tmp_path, cleanup_days=3650)
    (tmp_path / "settings.local.json").write_text('{"cleanupPeriodDays": 25}')
    found = expiring(tmp_path)
    assert (found.days, found.settings) == (25, str(tmp_path / "settings.local.json"))
    managed.write_text('{"cleanupPeriodDays": 10}')
    found = expiring(tmp_path)
    assert (found.days, found.settings) == (10, str(managed))
    managed.write_text('{"cleanupPeriodDays": 400}')
    assert retention(tmp_path, NOW) is None


def test_a_period_of_zero_days_expires_everything(tmp_path: Path) -> None:
    write_session(tmp_path, 0, 5)
    write_settings(tmp_path, cleanup_days=0)
    found = expiring(tmp_path)
    assert (found.days, found.is_default, len(found.expiring)) == (0, False, 2)


@pytest.mark.parametrize("value", ['"30"', "true", "-5", "null", "[1]"])
def test_an_invalid_number_of_days_means_the_default(tmp_path: Path, value: str) -> None:
    (tmp_path / "settings.json").write_text(f'{{"cleanupPeriodDays": {value}}}')
    found = expiring(tmp_path)
    assert (found.days, found.is_default) == (30, True)
    assert found.diff.count("+  ") == found.diff.count("-  ") == 1


def test_a_very_large_number_of_days_needs_no_warning(tmp_path: Path) -> None:
    write_session(tmp_path, 29, 1)
    (tmp_path / "settings.json").write_text('{"cleanupPeriodDays": 900000000000}')
    assert retention(tmp_path, NOW) is None


@pytest.mark.parametrize(("text", "why"), [("{broken", "is not JSON"), ("[]", "is not a JSON object")])
def test_unreadable_settings_are_reported_without_a_diff(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "settings.json").write_text(text)
    found = expiring(tmp_path)
    assert (found.is_default, found.trouble, found.diff) == (True, why, "")
    output = "\n".join(retention_lines(found))
    assert why in output
    assert "settings.json" in output
    assert "To keep them" not in output


def copy_to_other_project(root: Path, session_id: str, *, days: int) -> None:
    (path,) = root.glob(f"projects/*/{session_id}.jsonl")
    copy = root / "projects" / "-other" / path.name
    copy.parent.mkdir()
    shutil.copyfile(path, copy)
    at = (NOW - timedelta(days=days)).timestamp()
    os.utime(copy, (at, at))


def test_a_session_with_files_in_two_projects_counts_once(tmp_path: Path) -> None:
    session_id = write_session(tmp_path, 29, 1)
    copy_to_other_project(tmp_path, session_id, days=25)
    found = retention(tmp_path, NOW)
    assert found is not None
    assert found.expiring == (session_id,)


def test_a_session_with_a_recent_file_does_not_expire(tmp_path: Path) -> None:
    session_id = write_session(tmp_path, 29, 1)
    copy_to_other_project(tmp_path, session_id, days=1)
    assert retention(tmp_path, NOW) is None


def test_files_without_a_listed_session_are_not_counted(tmp_path: Path) -> None:
    root = tmp_path / ".claude"
    session_id = write_session(root, 29, 1)
    (path,) = root.glob(f"projects/*/{session_id}.jsonl")
    empty = path.with_name("11111111-2222-4333-8444-555555555555.jsonl")
    empty.write_text('{"type": "summary", "summary": "Nothing was said", "leafUuid": "1"}\n')
    os.utime(empty, (0, 0))
    machine = Machine(tmp_path, {}, "linux")
    for is_synced in (True, False):  # the second History does not sync
        with History(home=tmp_path / "archive", machine=machine) as history:
            if is_synced:
                history.sync()
            assert [one.id for one in history.list_sessions().data] == [session_id]
            (found,) = history.retentions(NOW)
            assert found.expiring == (session_id,)


def test_a_session_that_was_not_synced_yet_is_counted(tmp_path: Path) -> None:
    root = tmp_path / ".claude"
    with History(home=tmp_path / "archive", machine=Machine(tmp_path, {}, "linux")) as history:
        assert history.list_sessions().data == ()
        session_id = write_session(root, 29, 1)
        (found,) = history.retentions(NOW)
    assert found.expiring == (session_id,)

"""A backup brings back every message, title, workspace and time, also into a home that is in use."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.session import SessionSummary
from backscroll.testing import cursor, cursor_cli
from backscroll.testing.claude_code import Transcript
from tests.backup.test_filtered import content
from tests.histories import HISTORIES_WITH_SOAK
from tests.histories import History as SampleHistory

Sessions = dict[str, tuple[dict[str, Any], list[Any]]]
FIELDS = ("title", "workspace_path", "workspace_name", "created_at", "updated_at", "message_count",
          "git_branch", "models", "total_tokens", "is_gone", "parent_ref")  # fmt: skip


def sessions_of(history: History, among: Iterable[str] | None = None) -> Sessions:
    """Return the compared fields and the messages of each session, by ref."""
    return {
        one.ref: (fields(one), content(history.get_session(one.ref)))
        for one in history.all_sessions()
        if among is None or one.ref in among
    }


def fields(summary: SessionSummary) -> dict[str, Any]:
    return {name: getattr(summary, name) for name in FIELDS}


def use_home(root: Path, source: str) -> None:
    """Write another session of a source, as a tool does that was used before the restore."""
    root.mkdir()
    match source:
        case "claude-code":
            Transcript(seed=77, cwd="/home/used").user("work here").assistant("Yes.").write(root)
        case "cursor":
            ide = cursor.Home(root)
            messages = [cursor.user("work here"), cursor.assistant("Yes.")]
            ide.composer(
                messages, workspace=cursor.SHOP, name="Used", id="77777777-0000-4000-8000-000000000000"
            )
            ide.write()
        case "cursor-cli":
            cli = cursor_cli.Home(root, seed=77)
            cli.chat([cursor.user("work here"), cursor.assistant("Yes.")], cwd="/home/used")


@pytest.mark.parametrize("sample", HISTORIES_WITH_SOAK, ids=str)
def test_every_session_comes_back_as_it_was_into_a_home_in_use(sample: SampleHistory, tmp_path: Path) -> None:
    root = sample.write(tmp_path / sample.source_name)
    roots = [NamedRoot(sample.source_name, root)]
    with History(roots=roots, home=tmp_path / "home") as history:
        history.sync()
        before = sessions_of(history)
        backup = Path(history.create_backup(tmp_path / "backup.zip").backup_path)
    shutil.rmtree(root)
    shutil.rmtree(tmp_path / "home")
    use_home(root, sample.source_name)
    with History(roots=roots, home=tmp_path / "home") as history:
        history.sync()
        used = sessions_of(history)
        result = history.restore_backup(backup)
        history.sync()
        assert sessions_of(history, before) == before
        assert sessions_of(history, used) == used
        again = history.restore_backup(backup)
        assert (again.files_restored, again.change_id) == (0, None)
    added = {one.ref for one in result.sessions if one.action == "added"}
    gone = {ref for ref, (summary, _) in before.items() if summary["is_gone"]}
    not_added = {one.ref: one.reason for one in result.sessions if one.action == "differing"}
    assert all(not_added.values())
    assert before.keys() <= added | not_added.keys()  # some are not listed
    with History(roots=roots, home=tmp_path / "fresh") as fresh:  # from the files of the tool alone
        fresh.sync()
        in_tool = sessions_of(fresh)
    assert used.items() <= in_tool.items()
    expected = {ref: before[ref] for ref in before if ref not in gone | not_added.keys()}
    assert {ref: in_tool.get(ref) for ref in expected} == expected

"""A session that Backscroll copied to another folder is not counted again."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backscroll import History
from backscroll.changes.change_log import ChangeLog
from backscroll.config import NamedRoot
from backscroll.model.session import SessionSummary
from backscroll.model.transfer import StoredSession
from backscroll.sources import named
from backscroll.testing.cursor_cli.home import Home
from tests.builders.cursor.generations import GENERATIONS
from tests.builders.cursor_cli.stores import example_messages

STORES = [*(name for name in GENERATIONS if name != "g0-chat-panel"), "cursor-cli"]


@pytest.fixture(params=STORES)
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[History]:
    source = "cursor-cli" if request.param == "cursor-cli" else "cursor"
    root = tmp_path / source
    if source == "cursor":
        GENERATIONS[request.param].write(root)
    else:
        Home(root).chat(example_messages())
    with History(roots=[NamedRoot(source, root)], home=tmp_path / "archive") as history:
        history.sync()
        yield history


def copy(history: History, summary: SessionSummary, target: Path) -> SessionSummary:
    target.mkdir()
    ((source, root),) = history.roots()
    writer = named(source.name).writer()
    assert writer is not None
    session = StoredSession(
        ref=summary.ref, id=summary.id, root=root, paths=(), folder=summary.workspace_path
    )
    plan = writer.plan_copy(session, target, keep_cwd=False)
    ChangeLog(target.parent / "changes").apply(plan.changes)
    history.sync()
    return history.find(plan.session_id)


def totals(history: History) -> tuple[int, int, int]:
    sessions = history.all_sessions()
    return (
        sum(session.interaction_count for session in sessions),
        sum(session.total_tokens or 0 for session in sessions),
        sum(session.total_changes or 0 for session in sessions),
    )


def test_prompts_tokens_and_edits_stay_with_the_original(history: History, tmp_path: Path) -> None:
    before = totals(history)
    original = next(
        one
        for one in history.all_sessions()
        if one.workspace_path == "/home/dev/shop" and one.interaction_count
    )
    copied = copy(history, original, tmp_path / "target")
    assert copied.workspace_path == str(tmp_path / "target")
    assert copied.message_count == original.message_count
    assert copied.interaction_count == 0
    assert history.find(original.ref).interaction_count == original.interaction_count
    assert totals(history) == before
    assert {message.copied_from for message in history.get_session(copied.ref).messages} == {original.id}


def test_a_prompt_after_the_copy_belongs_to_the_copy(tmp_path: Path) -> None:
    root = tmp_path / "cursor"
    GENERATIONS["g4-header-table"].write(root)
    with History(roots=[NamedRoot("cursor", root)], home=tmp_path / "archive") as history:
        history.sync()
        original = next(
            one
            for one in history.all_sessions()
            if one.workspace_path == "/home/dev/shop" and one.interaction_count
        )
        copied = copy(history, original, tmp_path / "target")
        with closing(sqlite3.connect(root / "User" / "globalStorage" / "state.vscdb")) as db, db:
            key = f"composerData:{copied.id}"
            now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.999Z}"
            bubble_id = "11111111-0000-4000-8000-000000000001"
            db.execute(
                "update cursorDiskKV set value = json_insert(value, '$.fullConversationHeadersOnly[#]',"
                " json_object('bubbleId', ?, 'type', 1)) where key = ?",
                [bubble_id, key],
            )
            db.execute(
                "insert into cursorDiskKV values (?, ?)",
                [
                    f"bubbleId:{copied.id}:{bubble_id}",
                    f'{{"_v":3,"type":1,"text":"And now?","createdAt":"{now}"}}',
                ],
            )
        history.sync()
        new = [one for one in history.get_session(copied.ref).messages if one.content == "And now?"]
        assert [one.copied_from for one in new] == [None]
        assert history.find(copied.ref).interaction_count == 1

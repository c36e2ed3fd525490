"""Records of Cursor that lose their value after they were read: sessions and messages."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.index.store import Index
from backscroll.ingest.originals import rebuild
from backscroll.model.session import Filter
from backscroll.testing import cursor
from tests.archive.cursor_rows import ONE, execute
from tests.archive.synced_archive import SyncedArchive

TOKENS = {"inputTokens": 100, "outputTokens": 20}


@pytest.fixture
def home(tmp_path: Path) -> cursor.Home:
    return cursor.Home(tmp_path / "root")


@pytest.fixture
def composer(home: cursor.Home) -> cursor.Composer:
    """Session whose messages are not in the order of their times, with one that was rewound."""
    edit = cursor.tool(
        "search_replace",
        {"file_path": "/home/dev/shop/cart.py", "old_string": "a", "new_string": "b"},
        {"diff": {"chunks": [{"diffString": "-a\n+b", "linesAdded": 1, "linesRemoved": 1}]}},
    )
    messages = [
        cursor.user("Totals are off", at=1_790_000_400_000),
        cursor.assistant("Rounding now happens once.", thinking="Which rounding?", tokenCount=TOKENS),
        edit,
        cursor.orphaned(cursor.assistant("Words that were rewound.")),
        cursor.user("Thanks", at=1_790_000_000_000),
    ]
    return home.composer(messages, id=ONE, name="Basket", has_graph=False)


@pytest.fixture
def synced(home: cursor.Home, composer: cursor.Composer, tmp_path: Path) -> SyncedArchive:
    home.write()
    synced = SyncedArchive("cursor", home.root, tmp_path / "home")
    synced.sync()
    return synced


def empty(home: cursor.Home, key: str) -> str:
    """Set the value of a row to NULL, and return it."""
    with closing(sqlite3.connect(home.database)) as db, db:
        (value,) = db.execute("select value from cursorDiskKV where key = ?", [key]).fetchone()
        db.execute("insert into cursorDiskKV values (?, null)", [key])
    return str(value)


def put(home: cursor.Home, key: str, value: str) -> None:
    execute(home, "insert into cursorDiskKV values (?, ?)", key, value)


def listed_ids(synced: SyncedArchive, *, with_unlisted: bool = False) -> list[str]:
    selected = Filter(with_unlisted=with_unlisted)
    return [one.id for one in synced.archive.sessions.page(selected, limit=10, offset=0)]


def test_a_session_whose_record_is_emptied_stays_listed_as_gone(
    home: cursor.Home, composer: cursor.Composer, synced: SyncedArchive
) -> None:
    before = synced.content()
    record = empty(home, composer.key)
    for _ in range(2):
        assert synced.sync().rewritten
        assert synced.content() == before
        assert listed_ids(synced) == [ONE]
        assert synced.summaries()[0].is_gone
        put(home, f"checkpointId:{ONE}:1", "{}")
    (event,) = synced.archive.events.log(None).events
    assert (event.what, event.session_id) == ("overwritten", ONE)
    assert synced.archive.maintenance.verify() == []
    put(home, composer.key, record)
    synced.sync()
    assert synced.content() == before
    assert not synced.summaries()[0].is_gone


def test_a_rebuild_keeps_a_session_whose_record_was_emptied(
    home: cursor.Home, composer: cursor.Composer, synced: SyncedArchive, tmp_path: Path
) -> None:
    before = synced.content()
    empty(home, composer.key)
    synced.sync()
    rebuild(synced.archive, Index(tmp_path / "index"))
    assert synced.content() == before
    assert listed_ids(synced) == [ONE]
    assert synced.summaries()[0].is_gone


def test_messages_written_before_a_session_was_emptied_are_added(
    home: cursor.Home, composer: cursor.Composer, synced: SyncedArchive
) -> None:
    before = [message.content for message in synced.messages(ONE) if message.is_active]
    tokens = synced.summaries()[0].total_tokens
    empty(home, composer.key)
    bubble = {"_v": 3, "type": 1, "text": "One more", "createdAt": "2026-09-21T15:00:00.000Z"}
    put(home, f"bubbleId:{ONE}:new", json.dumps(bubble))
    for index in range(2):
        assert synced.sync().rewritten
        found = [message.content for message in synced.messages(ONE) if message.is_active]
        assert sorted(found) == sorted([*before, "One more"])
        (summary,) = synced.summaries()
        assert (summary.title, summary.is_gone, summary.total_tokens) == ("Basket", True, tokens)
        assert summary.message_count == len(before) + 1
        assert listed_ids(synced) == [ONE]
        put(home, f"checkpointId:{ONE}:{index}", "{}")


def test_a_session_that_was_emptied_before_it_was_read_is_not_listed(
    home: cursor.Home, composer: cursor.Composer, tmp_path: Path
) -> None:
    home.write()
    empty(home, composer.key)
    synced = SyncedArchive("cursor", home.root, tmp_path / "home")
    for _ in range(2):
        synced.sync()
        assert listed_ids(synced) == []
        assert listed_ids(synced, with_unlisted=True) == [ONE]
        put(home, f"checkpointId:{ONE}:1", "{}")


@pytest.mark.parametrize("loss", ["emptied", "removed", "damaged"])
def test_earlier_text_of_a_lost_message_stays_in_its_place(
    loss: str, home: cursor.Home, composer: cursor.Composer, synced: SyncedArchive
) -> None:
    before, summary = synced.messages(ONE), synced.summaries()[0]
    rollups = "select sum(message_count), sum(prompt_count), sum(lines_added) from activity_rollup"
    counted = synced.archive._db.execute(rollups).fetchone()
    values = {position: empty(home, composer.bubble_key(position)) for position in (0, 1, 2)}
    for position in values:
        if loss == "removed":
            execute(home, "delete from cursorDiskKV where key = ?", composer.bubble_key(position))
        elif loss == "damaged":
            put(home, composer.bubble_key(position), '{"type":2,"text":"Roun')
    for index in range(3):
        synced.sync()
        assert synced.messages(ONE) == before
        (now,) = synced.summaries()
        for name in ("message_count", "interaction_count", "total_tokens", "total_changes", "is_gone"):
            assert getattr(now, name) == getattr(summary, name), name
        assert synced.archive._db.execute(rollups).fetchone() == counted
        put(home, f"bubbleId:{ONE}:another", json.dumps({"type": 2, "text": "", "_v": 3, "n": index}))
    assert synced.archive.maintenance.verify() == []
    for position, value in values.items():
        put(home, composer.bubble_key(position), value)
    synced.sync()
    assert synced.messages(ONE) == before
    assert synced.archive._db.execute("select count(*) from fragment").fetchone() == (1,)


def test_only_the_last_text_of_a_lost_message_is_active(
    home: cursor.Home, composer: cursor.Composer, synced: SyncedArchive
) -> None:
    key = composer.bubble_key(0)
    value = empty(home, key)
    for text in ("Totals are wrong", "Sums are wrong"):
        put(home, key, value.replace("Totals are off", text))
        synced.sync()
    empty(home, key)
    synced.sync()
    prompts = {
        message.content: message.is_active for message in synced.messages(ONE) if message.role == "user"
    }
    assert prompts == {
        "Totals are off": False,
        "Totals are wrong": False,
        "Sums are wrong": True,
        "Thanks": True,
    }

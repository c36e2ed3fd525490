"""Interned strings: each has one id, and a rollback also removes the strings that it added."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backscroll.archive.archive import Archive
from backscroll.archive.write.exclusions import Exclusions
from backscroll.model.message import Message, Origin, ToolCall
from backscroll.model.store import Unit
from backscroll.model.stream import Closing, Item, Opening, RecordCounts
from backscroll.model.workspace import Workspace


def _unit(path: Path) -> Unit:
    return Unit(source="claude-code", root=str(path.parent), path=str(path), fingerprint="f")


def _session(id_: str, *tools: str, folder: str = "/home/zoe/ferry") -> Iterator[Item]:
    yield Opening(source="claude-code", id=id_, store="lines")
    for index, tool in enumerate(tools):
        yield Message(
            id=f"{id_}-{index}",
            role="tool",
            content="",
            origin=Origin("a", f"line {index}"),
            tool=ToolCall(f"call-{id_}-{index}", tool, result="", status="completed"),
        )
    yield Closing(workspace=Workspace(folder))


def _tool_names(archive: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(archive)) as db:
        return db.execute(
            "select f.external_id, s.text from message m join fragment f on f.id = m.fragment_id"
            " join string s on s.id = m.tool_string_id order by 1, position"
        ).fetchall()


@pytest.mark.parametrize("is_shard", [True, False])
def test_a_string_of_an_unreadable_unit_is_interned_again(tmp_path: Path, *, is_shard: bool) -> None:
    def fail_after_messages() -> Iterator[Item]:
        yield from _session("one", "Read", "Grep")
        raise OSError

    archive = Archive(tmp_path / "archive.db", is_shard=is_shard)
    assert not archive.units.put(
        _unit(tmp_path / "one"), "claude_code", fail_after_messages(), event="created"
    )
    whole = [*_session("two", "Write", "Read"), RecordCounts()]
    assert archive.units.put(_unit(tmp_path / "two"), "claude_code", whole, event="created")
    archive.close()
    assert _tool_names(tmp_path / "archive.db") == [("two", "Write"), ("two", "Read")]


@pytest.mark.parametrize("is_shard", [True, False])
def test_a_string_of_an_excluded_session_is_interned_again(tmp_path: Path, *, is_shard: bool) -> None:
    exclusions = Exclusions(patterns=("/home/zoe/private",))
    archive = Archive(tmp_path / "archive.db", exclusions=exclusions, is_shard=is_shard)
    items = [
        *_session("one", "Read", "Grep", folder="/home/zoe/private"),
        *_session("two", "Write", "Read"),
        RecordCounts(),
    ]
    assert archive.units.put(_unit(tmp_path / "both"), "claude_code", items, event="created")
    archive.close()
    assert _tool_names(tmp_path / "archive.db") == [("two", "Write"), ("two", "Read")]


def test_units_of_a_shard_share_the_id_of_a_string(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive.db", is_shard=True)
    for id_ in ("one", "two"):
        items = [*_session(id_, "Read", "Write"), RecordCounts()]
        assert archive.units.put(_unit(tmp_path / id_), "claude_code", items, event="created")
    archive.close()
    expected = [("one", "Read"), ("one", "Write"), ("two", "Read"), ("two", "Write")]
    assert _tool_names(tmp_path / "archive.db") == expected

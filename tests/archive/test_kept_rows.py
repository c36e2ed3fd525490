"""Rows of databases: kept, written back, told anew, and never with a secret in them."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from backscroll.index import Index
from backscroll.ingest.originals import extract
from backscroll.ingest.upkeep import rebuild
from backscroll.model import Reading, fold
from backscroll.sources import named
from tests.archive.keeping import Kept
from tests.histories import HISTORIES, History

DATABASES = [one for one in HISTORIES if one.source_name != "claude-code"]


def _readings(source: str, root: Path) -> dict[tuple[str, str | None], Reading]:
    reader = named(source)
    found: dict[tuple[str, str | None], Reading] = {}
    for unit in reader.units(root):
        for reading in fold(reader.read(unit)).readings:
            found.setdefault((reading.opening.id, reading.opening.parent_id), reading)
    reader.close()
    return found


@pytest.mark.parametrize("history", DATABASES, ids=repr)
def test_a_session_written_back_reads_as_it_did(history: History, tmp_path: Path) -> None:
    root = history.write(tmp_path / "root")
    kept = Kept(history.source_name, root, tmp_path / "home")
    kept.sync()
    before = _readings(history.source_name, root)
    shutil.move(root, tmp_path / "aside")
    for number, ((id_, parent), reading) in enumerate(before.items()):
        if parent is not None or reading.opening.agent_id is not None or _is_told_by_others(id_, reading):
            continue
        out = tmp_path / f"out{number}"
        done = extract(kept.archive, id_, out)
        if reading.opening.store == "transcript":
            continue
        assert done.rows, id_
        again = _readings(history.source_name, out)[id_, parent]
        assert again.opening == reading.opening
        assert [_told(m) for m in again.messages] == [_told(m) for m in reading.messages]
        assert again.closing == reading.closing


def _is_told_by_others(id_: str, reading: Reading) -> bool:
    """Whether it takes other sessions to tell what a session is: a circle of parents, one name in two places,
    a name on an old list that nothing is left of."""
    return id_.startswith("c14c") or id_.endswith("-shared-tab") or reading.closing.visibility == "ghost"


def _told(message: Any) -> Any:
    return [
        getattr(message, name) if name != "origin" else message.origin.place
        for name in message.__struct_fields__
    ]


@pytest.mark.parametrize("history", DATABASES, ids=repr)
@pytest.mark.parametrize("is_gone", [False, True])
def test_an_archive_made_anew_from_rows_tells_the_same(
    history: History, is_gone: bool, tmp_path: Path
) -> None:
    root = history.write(tmp_path / "root")
    kept = Kept(history.source_name, root, tmp_path / "home")
    kept.sync()
    if is_gone:
        shutil.rmtree(root)
        root.mkdir()
        kept.sync()
    before = kept.told()
    done = rebuild(kept.archive, Index(tmp_path / "index"))
    assert kept.told() == before
    assert not done.kept
    assert kept.archive.verify() == []
    assert kept.sync().changed == 0

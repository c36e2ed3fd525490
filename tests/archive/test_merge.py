"""The archive of a backup is merged: what is missing is added, nothing is changed."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript
from tests.histories import HISTORIES
from tests.histories import History as SampleHistory


def state(history: History) -> list[Any]:
    """Return everything that is shown of all sessions, without their numbers."""
    found = []
    for one in history.all_sessions():
        document = msgspec.to_builtins(history.get_session(one.ref))
        document["summary"].pop("index")
        found.append(document)
    return sorted(found, key=lambda one: one["summary"]["ref"])


def merged(history: History, other: Path, scratch: Path) -> int:
    shutil.copyfile(other, scratch)
    return len(history._stores.archive.maintenance.merge(scratch))


@pytest.mark.soak  # the next test merges the same archives
@pytest.mark.parametrize("sample", HISTORIES, ids=str)
def test_an_archive_merged_into_an_empty_one_shows_the_same(sample: SampleHistory, tmp_path: Path) -> None:
    roots = [NamedRoot(sample.source_name, sample.write(tmp_path / "root"))]
    with History(roots=roots, home=tmp_path / "one") as one:
        one.sync()
        one._stores.archive.maintenance.copy(tmp_path / "copy.db")
        with History(roots=[], home=tmp_path / "two") as two:
            two.sync()
            merged(two, tmp_path / "copy.db", tmp_path / "scratch.db")
            assert state(two) == state(one)
            assert two._stores.archive.maintenance.verify() == []
            assert merged(two, tmp_path / "copy.db", tmp_path / "again.db") == 0
            assert state(two) == state(one)


@pytest.mark.parametrize("sample", HISTORIES, ids=str)
def test_an_archive_merged_into_a_used_one_shows_the_same(sample: SampleHistory, tmp_path: Path) -> None:
    """The ids of its fragments change, and the bodies of resumed sessions name those of their bases."""
    Transcript(seed=77).user("used before").assistant("Yes.").write(tmp_path / "used")
    roots = [NamedRoot(sample.source_name, sample.write(tmp_path / "root"))]
    used = [NamedRoot("claude-code", tmp_path / "used")]
    with (
        History(roots=roots, home=tmp_path / "one") as one,
        History(roots=used, home=tmp_path / "two") as two,
    ):
        one.sync()
        two.sync()
        before = state(two)
        one._stores.archive.maintenance.copy(tmp_path / "copy.db")
        merged(two, tmp_path / "copy.db", tmp_path / "scratch.db")
        assert [found for found in state(two) if found not in before] == state(one)
        assert [found for found in state(two) if found in before] == before
        assert two._stores.archive.maintenance.verify() == []


def test_every_original_survives_a_merge(tmp_path: Path) -> None:
    write = HISTORIES[0].write(tmp_path / "root")
    roots = [NamedRoot(HISTORIES[0].source_name, write)]
    with History(roots=roots, home=tmp_path / "one") as one, History(roots=[], home=tmp_path / "two") as two:
        one.sync()
        two.sync()
        one._stores.archive.maintenance.copy(tmp_path / "copy.db")
        merged(two, tmp_path / "copy.db", tmp_path / "scratch.db")
        for original in one._stores.archive.originals.units_with_file():
            (found,) = [
                other
                for other in two._stores.archive.originals.units_with_file()
                if other.path == original.path
            ]
            assert b"".join(two._stores.archive.originals.read_file(found)) == b"".join(
                one._stores.archive.originals.read_file(original)
            )


def test_what_both_have_stays_and_annotations_are_united(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for seed, text in ((1, "find the ferry"), (2, "mend the basket"), (3, "rename the harbor")):
        Transcript(seed=seed).user(text).assistant("Done.").write(root)
    roots = [NamedRoot("claude-code", root)]
    with History(roots=roots, home=tmp_path / "one") as one:
        one.sync()
        ids = {one_.title: one_.id for one_ in one.all_sessions()}
        for title in ids:
            one.annotations.tag(ids[title], ["backup"])
            one.annotations.add_note(ids[title], f"about {title}")
            one.annotations.star(ids[title])
        one.annotations.rename(ids["find the ferry"], "Ferry of the backup")
        one.annotations.rename(ids["mend the basket"], "Basket of the backup")
        one._stores.archive.maintenance.copy(tmp_path / "copy.db")
    next(path for path in root.rglob(f"{ids['rename the harbor']}.jsonl")).unlink()
    with History(roots=roots, home=tmp_path / "two") as two:
        two.sync()
        two.annotations.tag(ids["find the ferry"], ["machine"])
        two.annotations.add_note(ids["find the ferry"], "mine")
        two.annotations.rename(ids["find the ferry"], "Ferry of the machine")
        before = {one_["summary"]["id"]: one_["messages"] for one_ in state(two)}
        assert merged(two, tmp_path / "copy.db", tmp_path / "scratch.db") == 1
        after = {one_["summary"]["id"]: one_["messages"] for one_ in state(two)}
        assert {id_: after[id_] for id_ in before} == before
        two.sync()
        found = {one_.id: one_ for one_ in two.all_sessions()}
        ferry = found[ids["find the ferry"]]
        assert (ferry.title, ferry.tags, ferry.is_starred) == (
            "Ferry of the machine",
            ("backup", "machine"),
            True,
        )
        assert [note.text for note in ferry.notes] == ["mine", "about find the ferry"]
        assert found[ids["mend the basket"]].title == "Basket of the backup"
        assert found[ids["rename the harbor"]].tags == ("backup",)
        assert [one_.session_id for one_ in two.search_sessions("harbor").data] == [ids["rename the harbor"]]


def test_a_session_that_was_forgotten_here_is_not_added(tmp_path: Path) -> None:
    root = tmp_path / "root"
    Transcript(seed=1).user("find the ferry").assistant("Done.").write(root)
    with History(roots=[NamedRoot("claude-code", root)], home=tmp_path / "one") as one:
        one.sync()
        (session,) = one.all_sessions()
        one.annotations.tag(session.ref, ["secret"])
        one._stores.archive.maintenance.copy(tmp_path / "copy.db")
        one._stores.archive.maintenance.forget(session)
        assert merged(one, tmp_path / "copy.db", tmp_path / "scratch.db") == 0
        assert one.all_sessions() == []
        assert one.annotations.tags() == {}

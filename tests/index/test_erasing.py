"""What was forgotten is gone from the index's files, and everything else is found as before."""

import pytest

from backscroll.index import Index, parse
from backscroll.index.engine import purge
from backscroll.index.engine.schema import open_index
from tests.index.making import found, message

SECRET = "zwiebelturmuhr"


def _ever_met(index: Index, word: str) -> int:
    """In how many messages a word stands, those included that are forgotten and still in the files."""
    searchers = [open_index(str(path)).searcher() for path in index.folder.iterdir() if path.is_dir()]
    return sum(searcher.doc_freq("said", word) for searcher in searchers)


def _fill(index: Index) -> None:
    index.write((message(f"steady {n}", session=n) for n in range(40)), watermark="mine")
    index.write([message(f"once {SECRET}", session=50), message("steady", session=51)])
    index.write([message(f"twice {SECRET}", session=50)], delete=[50])
    index.write([message("steady", session=52)], delete=[50])


def test_no_word_of_what_was_forgotten_is_left(index: Index) -> None:
    _fill(index)
    assert _ever_met(index, SECRET)
    assert index.purge_deleted()
    assert not _ever_met(index, SECRET)
    assert not any(
        SECRET[4:].encode() in file.read_bytes() for file in index.folder.rglob("*") if file.is_file()
    )


def test_everything_else_is_found_as_before(index: Index) -> None:
    _fill(index)
    before = index.search(parse("steady"), limit=100)
    assert index.purge_deleted()
    after = index.search(parse("steady"), limit=100)
    assert sorted(hit.session for hit in after.hits) == sorted(hit.session for hit in before.hits)
    assert after.total == before.total == 42
    assert index.is_usable()
    assert index.watermark == "mine"
    index.write([message("new words", session=60)], delete=[3])
    assert found(index, "new words") == [60]
    assert index.search(parse("steady"), limit=1).total == 41


def test_of_the_files_only_those_in_use_are_left(index: Index) -> None:
    _fill(index)
    assert index.purge_deleted()
    (generation,) = (path for path in index.folder.iterdir() if path.is_dir())
    segments = {path.name.partition(".")[0] for path in generation.iterdir() if not path.name.startswith(".")}
    assert len(segments - {"meta"}) == open_index(str(generation)).searcher().num_segments


def test_whoever_is_reading_may_go_on(index: Index) -> None:
    _fill(index)
    other = Index(index.folder)
    assert other.search(parse("steady"), limit=1).total == 42
    assert index.purge_deleted()
    assert other.search(parse("steady"), limit=1).total == 42


def test_it_is_not_done_while_another_process_writes(index: Index) -> None:
    _fill(index)
    with Index(index.folder).writer() as writer:
        assert writer is not None
        assert not index.purge_deleted()
    assert index.purge_deleted()


def test_an_engine_that_does_something_else_is_noticed(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    _fill(index)
    monkeypatch.setattr(purge, "_merge", lambda copy: None)
    assert not index.purge_deleted()
    assert index.search(parse("steady"), limit=1).total == 42
    assert not (index.folder / "copy").exists()


@pytest.mark.parametrize("again", [Index.purge_deleted, Index.rebuild])
def test_what_a_killed_process_left_is_removed(index: Index, again: object) -> None:
    _fill(index)
    left = index.folder / "copy"
    left.mkdir()
    (left / "secret.term").write_text(SECRET)
    assert callable(again)
    again(index)
    assert not left.exists()


def test_an_index_in_which_nothing_was_forgotten_stays_whole(index: Index) -> None:
    index.write([message("steady", session=1)], watermark="mine")
    assert index.purge_deleted()
    assert found(index, "steady") == [1]


def test_files_are_copied_where_they_cannot_be_linked(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    _fill(index)
    monkeypatch.setattr(purge.os, "link", refuse)
    assert index.purge_deleted()
    assert not _ever_met(index, SECRET)
    assert index.search(parse("steady"), limit=1).total == 42

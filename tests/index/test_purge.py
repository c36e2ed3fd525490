"""A purge removes deleted messages from the index files and changes nothing else."""

import json

import pytest
import tantivy

from backscroll.index import writer as purge
from backscroll.index.query import parse
from backscroll.index.schema import open_index
from backscroll.index.store import Index
from tests.index.documents import found, message, write

SECRET = "zwiebelturmuhr"


def _count_in_files(index: Index, word: str) -> int:
    """Return the number of messages with a word, including deleted ones that are still in the files."""
    searchers = [open_index(str(path)).searcher() for path in index.folder.iterdir() if path.is_dir()]
    return sum(searcher.doc_freq("prose", word) for searcher in searchers)


def _fill(index: Index) -> None:
    write(index, (message(f"steady {n}", session=n) for n in range(40)), watermark="mine")
    write(index, [message(f"once {SECRET}", session=50), message("steady", session=51)])
    write(index, [message(f"twice {SECRET}", session=50)], delete=[50])
    write(index, [message("steady", session=52)], delete=[50])


def test_no_word_of_a_deleted_message_remains(index: Index) -> None:
    _fill(index)
    assert _count_in_files(index, SECRET)
    assert index.purge_deleted()
    assert not _count_in_files(index, SECRET)
    assert not any(
        SECRET[4:].encode() in file.read_bytes() for file in index.folder.rglob("*") if file.is_file()
    )


def test_a_purge_keeps_all_other_messages(index: Index) -> None:
    _fill(index)
    before = index.search(parse("steady"), limit=100)
    assert index.purge_deleted()
    after = index.search(parse("steady"), limit=100)
    assert sorted(hit.session for hit in after.hits) == sorted(hit.session for hit in before.hits)
    assert after.total == before.total == 42
    assert index.is_usable()
    assert index.watermark == "mine"
    write(index, [message("new words", session=60)], delete=[3])
    assert found(index, "new words") == [60]
    assert index.search(parse("steady"), limit=1).total == 41


def test_a_purge_leaves_no_unused_files(index: Index) -> None:
    _fill(index)
    assert index.purge_deleted()
    (generation,) = (path for path in index.folder.iterdir() if path.is_dir())
    segments = {path.name.partition(".")[0] for path in generation.iterdir() if not path.name.startswith(".")}
    assert len(segments - {"meta"}) == open_index(str(generation)).searcher().num_segments


def test_readers_continue_during_a_purge(index: Index) -> None:
    _fill(index)
    other = Index(index.folder)
    assert other.search(parse("steady"), limit=1).total == 42
    assert index.purge_deleted()
    assert other.search(parse("steady"), limit=1).total == 42


def test_a_purge_fails_while_another_process_writes(index: Index) -> None:
    _fill(index)
    with Index(index.folder).writer() as writer:
        assert writer is not None
        assert not index.purge_deleted()
    assert index.purge_deleted()


def test_a_purge_without_a_merge_fails_and_changes_nothing(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(index)
    monkeypatch.setattr(purge, "_merge", lambda copy: None)
    assert not index.purge_deleted()
    assert index.search(parse("steady"), limit=1).total == 42
    assert not (index.folder / "copy").exists()


@pytest.mark.parametrize("again", [Index.purge_deleted, Index.rebuild])
def test_the_copy_of_a_killed_process_is_removed(index: Index, again: object) -> None:
    _fill(index)
    copy = index.folder / "copy"
    copy.mkdir()
    (copy / "secret.term").write_text(SECRET)
    assert callable(again)
    again(index)
    assert not copy.exists()


def test_a_purge_without_deletions_keeps_everything(index: Index) -> None:
    write(index, [message("steady", session=1)], watermark="mine")
    assert index.purge_deleted()
    assert found(index, "steady") == [1]


def test_files_are_copied_if_hard_links_are_not_supported(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no hard links")

    _fill(index)
    monkeypatch.setattr(purge.os, "link", refuse)
    assert index.purge_deleted()
    assert not _count_in_files(index, SECRET)
    assert index.search(parse("steady"), limit=1).total == 42


def test_the_installed_tantivy_is_supported() -> None:
    """A new version of Tantivy fails here: check the metadata format and the merge policy, then add it."""
    assert tantivy.__version__ in purge.SUPPORTED_ENGINES


def test_the_metadata_of_tantivy_has_the_format_that_the_purge_edits(index: Index) -> None:
    write(index, [message("steady", session=1), message("steady", session=2)])
    write(index, [], delete=[1])
    (generation,) = (path for path in index.folder.iterdir() if path.is_dir())
    meta = json.loads((generation / "meta.json").read_text())
    assert meta.keys() == {"index_settings", "segments", "schema", "opstamp"}
    assert {frozenset(segment) for segment in meta["segments"]} == {
        frozenset({"segment_id", "max_doc", "deletes"})
    }
    deletes = [segment["deletes"] for segment in meta["segments"] if segment["deletes"] is not None]
    assert {frozenset(each) for each in deletes} == {frozenset({"num_deleted_docs", "opstamp"})}
    managed = json.loads((generation / ".managed.json").read_text())
    assert all(isinstance(name, str) for name in managed)


def test_a_purge_with_an_unknown_tantivy_fails_and_changes_nothing(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(index)
    monkeypatch.setattr(purge, "SUPPORTED_ENGINES", ("tantivy v9.9.9, index_format v99",))
    assert not index.purge_deleted()
    assert index.search(parse("steady"), limit=1).total == 42
    assert not (index.folder / "copy").exists()

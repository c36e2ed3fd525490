"""The index files: commits, concurrency, damage, rebuild."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backscroll.index.query import parse
from backscroll.index.store import Index, IndexDamagedError
from backscroll.index.writer import Writer
from tests.index.documents import add, found, message, write

WRITE_FOREVER = """
import sys
from itertools import count
from pathlib import Path
from backscroll.index.store import Index
from tests.index.documents import Document, write
index = Index(Path(sys.argv[1]))
for batch in count():
    texts = [f"batch{batch} steady" for _ in range(20)]
    assert write(index,
        (Document(session=batch, position=n, role="user", source="s", workspace_hash="h", text=text)
         for n, text in enumerate(texts)),
        delete=[batch - 50] if batch >= 50 else [], watermark=str(batch),
    )
    print(batch, flush=True)
"""


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_tantivy_is_loaded_with_the_index_only() -> None:
    code = (
        "from backscroll.index.pattern import exact\n"
        "from backscroll.index.query import parse\n"
        "parse('a'), exact('a')"
    )
    assert not {"tantivy", "re2"} & modules_after(code)


def test_a_missing_index_is_not_usable(tmp_path: Path) -> None:
    index = Index(tmp_path / "none")
    assert not index.is_usable()
    assert index.watermark is None
    assert not (tmp_path / "none").exists()
    with pytest.raises(IndexDamagedError):
        index.search(parse("x"), limit=1)


def test_a_new_index_is_empty_and_usable(index: Index) -> None:
    assert index.is_usable()
    assert index.watermark is None
    assert index.search(parse("role:user OR -role:tool"), limit=5).total == 0


def test_only_the_owner_can_read_the_folder(index: Index) -> None:
    if os.name == "posix":
        assert index.folder.stat().st_mode & 0o077 == 0


def test_a_commit_is_visible_to_other_readers(index: Index) -> None:
    other = Index(index.folder)
    assert found(other, "cache") == []
    write(index, [message("cache")])
    assert found(index, "cache") == found(other, "cache") == [1]


def test_a_session_can_be_replaced_in_one_commit(index: Index) -> None:
    write(index, [message("old cache", 1), message("cache", 2)])
    write(index, [message("new cache", 1)], delete=[1])
    assert sorted(found(index, "cache")) == [1, 2]
    assert found(index, "old") == []


def test_deleting_sessions_deletes_all_their_messages(index: Index) -> None:
    write(index, (message("cache", session, n) for session in range(40) for n in range(10)))
    write(index, [], delete=range(39))
    assert index.search(parse("cache"), limit=1, by="message").total == 10


def test_the_watermark_is_the_one_of_the_last_commit(index: Index) -> None:
    write(index, [message("a")], watermark="first")
    write(index, [message("b")])
    assert Index(index.folder).watermark == "first"
    write(index, [], watermark="second")
    assert Index(index.folder).watermark == "second"


def test_a_second_writer_fails_at_once(index: Index) -> None:
    other = Index(index.folder)
    with index.writer() as writer:
        assert writer is not None
        before = time.perf_counter()
        assert write(other, [message("cache")]) is False
        assert time.perf_counter() - before < 1
    assert write(other, [message("cache")]) is True


def test_one_writer_can_commit_several_times(index: Index) -> None:
    with index.writer() as writer:
        assert writer is not None
        add(writer, [message("one", 1)])
        writer.commit("1")
        assert found(index, "one") == [1]
        add(writer, [message("two", 2)])
        writer.commit("2")
    assert found(index, "two") == [2]


def test_uncommitted_changes_are_dropped(index: Index) -> None:
    def documents() -> object:
        yield message("cache")
        raise KeyError("no archive")

    with pytest.raises(KeyError):
        write(index, documents())  # type: ignore[arg-type]
    assert found(index, "cache") == []
    assert write(index, [message("cache")])


def test_many_small_commits_are_merged_into_few_segments(index: Index) -> None:
    for number in range(40):
        write(index, [message("cache", number)])
    segments = list(next(path for path in index.folder.iterdir() if path.is_dir()).glob("*.term"))
    assert len(segments) < 20
    assert index.search(parse("cache"), limit=1).total == 40


def test_lone_surrogates_are_accepted_in_every_field(index: Index) -> None:
    surrogate = "a\ud800b"
    more = {
        "tool": surrogate,
        "model": surrogate,
        "branch": surrogate,
        "workspace_name": surrogate,
        "paths": (surrogate,),
        "title": surrogate,
    }
    assert write(index, [message(f"cache {surrogate}", **more)])
    assert found(index, f'cache "{surrogate}" tool:{surrogate}') == [1]


def test_a_rebuild_starts_empty_and_keeps_readers_working(index: Index) -> None:
    write(index, [message("cache")], watermark="7")
    other = Index(index.folder)
    assert found(other, "cache") == [1]
    index.rebuild()
    assert index.is_usable()
    assert index.watermark is None
    assert found(other, "cache") == []
    assert len([path for path in index.folder.iterdir() if path.is_dir()]) == 1


def test_an_index_of_another_version_is_not_used(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    write(index, [message("cache")])
    monkeypatch.setattr("backscroll.index.store.VERSION", 99)
    assert not Index(index.folder).is_usable()


def files(index: Index) -> list[Path]:
    return sorted(path for path in index.folder.rglob("*") if path.is_file() and path.name[0] != ".")


def damage(index: Index, path: Path, kind: str) -> None:
    match kind:
        case "gone":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "cut":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        case "noise":
            path.write_bytes(random.Random(1).randbytes(path.stat().st_size))


@pytest.mark.parametrize("kind", ["gone", "empty", "cut", "noise"])
def test_any_damaged_file_is_detected_and_can_be_rebuilt(tmp_path: Path, kind: str) -> None:
    first = Index(tmp_path / "index")
    first.rebuild()
    for number in range(len(files(first)) + 12):
        first.rebuild()
        write(first, [message("the cache of E1234", n, paths=("a/b.py",)) for n in range(30)])
        paths = files(first)
        if number >= len(paths):
            break
        first.close()
        damage(first, paths[number], kind)
        second = Index(tmp_path / "index")
        try:
            is_whole = second.is_usable() and second.search(parse("cache"), limit=50).total == 30
        except IndexDamagedError:
            is_whole = False
        second.rebuild()
        assert second.is_usable()
        assert is_whole or second.search(parse("cache"), limit=5).total == 0


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that cannot be caught")
def test_a_killed_writer_leaves_the_last_commit(index: Index) -> None:
    rng = random.Random(5)
    for _ in range(4):
        index.rebuild()
        process = subprocess.Popen(
            [sys.executable, "-c", WRITE_FOREVER, str(index.folder)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.random() * 0.4)
        process.kill()
        output = process.stdout.read().split()
        process.wait()
        process.stdout.close()
        after = Index(index.folder)
        assert after.is_usable()
        last = int(after.watermark or -1)
        assert last >= int(output[-1] if output else 0)
        kept = range(max(0, last - 49), last + 1)
        assert after.search(parse("steady"), limit=1).total == len(kept)
        assert after.search(parse(f"batch{last}"), limit=1, by="message").total == 20
        assert write(after, [message("cache")]), "the lock of a dead process is released"


def test_a_full_disk_raises_an_os_error(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def commit(self) -> None:
            raise ValueError("No space left on device")

        def __getattr__(self, name: str) -> object:
            return lambda *_: None

    writer = Writer.__new__(Writer)
    monkeypatch.setattr(writer, "_writer", Full(), raising=False)
    with pytest.raises(OSError, match="No space left"):
        writer.commit("1")

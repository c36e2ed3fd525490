"""An index after a writer was killed during a commit."""

import shutil
from pathlib import Path

from backscroll.index.query import parse
from backscroll.index.store import Index
from tests.index.documents import message, write


def _files(index: Index) -> Path:
    (meta,) = index.folder.rglob("meta.json")
    return meta.parent


def test_files_of_a_killed_commit_do_not_stop_the_next_one(index: Index, tmp_path: Path) -> None:
    """A commit writes its files before it is recorded. The next commit may choose the same names."""
    write(index, [message("ferry", number) for number in range(1, 9)])
    folder = _files(index)
    before = tmp_path / "before"
    shutil.copytree(folder, before)
    write(index, [message("harbor", 3)], delete=[3])
    for file in before.iterdir():
        if file.name != ".managed.json":
            shutil.copy(file, folder / file.name)
    again = Index(index.folder)
    write(again, [message("harbor", 3)], delete=[3])
    assert again.search(parse("ferry"), limit=20).total == 7
    assert again.search(parse("harbor"), limit=20).total == 1

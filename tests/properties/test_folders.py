"""Whatever happens to files between two syncs, afterwards the archive has as current just what lies there."""

import os
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.archive.synced_archive import SyncedArchive

from backscroll.sources import named
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.side_files import write_prompts


class Tree:
    """A small history, and what may happen to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "claude"
        self._numbers = count(1)
        self._away: list[tuple[Path, Path]] = []
        for _ in range(3):
            self.begin(0)

    def files(self) -> list[Path]:
        return sorted(path for path in self.root.rglob("*") if path.is_file())

    def _file(self, which: int) -> Path:
        files = self.files()
        return files[which % len(files)] if files else self.begin(which)

    def begin(self, which: int) -> Path:
        number = next(self._numbers)
        session = Transcript(seed=number, cwd=f"/home/zoe/{'abc'[which % 3]}").user(f"question {number}")
        if which % 2:
            session.delegate("look for it", "found it")
        return session.write(self.root)

    def append(self, which: int) -> None:
        with self._file(which).open("ab") as file:
            file.write(b"{}\n")

    def cut(self, which: int) -> None:
        path = self._file(which)
        os.truncate(path, path.stat().st_size // 2)

    def delete(self, which: int) -> None:
        self._file(which).unlink()

    def take_away(self, which: int) -> None:
        path = self._file(which)
        if which % 3 == 0:
            path = path.parent
        if path == self.root:
            return
        place = self.folder / f"away-{next(self._numbers)}"
        path.rename(place)
        self._away.append((place, path))

    def put_back(self, which: int) -> None:
        if self._away:
            place, path = self._away.pop(which % len(self._away))
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                place.rename(path)

    def rename(self, which: int) -> None:
        path = self._file(which)
        path.rename(path.with_name(f"{next(self._numbers):08}-0000-4000-8000-000000000000.jsonl"))

    def replace(self, which: int) -> None:
        """By one of the same size and time."""
        path = self._file(which)
        before = path.stat()
        other = path.with_name("other")
        other.write_bytes(path.read_bytes().swapcase())
        os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
        other.replace(path)

    def write_beside(self, which: int) -> None:
        self._file(which).with_suffix(".meta.json").write_text("{}")

    def prompt(self, which: int) -> None:
        write_prompts(self.root, [])

    def link(self, which: int) -> None:
        """A link to a file counts as one, a link to a folder does not."""
        path = self._file(which)
        target = path if which % 2 else path.parent
        name = path.with_name(f"{next(self._numbers):08}-0000-4000-8000-000000000001")
        (name.with_suffix(".jsonl") if target is path else name).symlink_to(target)

    def remove(self, which: int) -> None:
        folder = self._file(which).parent
        if folder != self.root:
            shutil.rmtree(folder)


_STEPS: dict[str, Callable[[Tree, int], object]] = {
    name: step
    for name, step in vars(Tree).items()
    if not name.startswith("_") and name != "files" and callable(step)
}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.sampled_from(sorted(_STEPS)), st.integers(0, 11)), max_size=3), max_size=6)
)
def test_after_every_sync_what_is_current_is_what_lies_there(
    rounds: list[list[tuple[str, int]]],
) -> None:
    with TemporaryDirectory() as folder:
        tree = Tree(Path(folder))
        kept = SyncedArchive("claude-code", tree.root, Path(folder))
        try:
            for steps in rounds:
                for name, which in steps:
                    _STEPS[name](tree, which)
                report = kept.sync()
                there = {unit.path: unit.fingerprint for unit in named("claude-code").units(tree.root)}
                assert kept.archive.fingerprints.units("claude-code", tree.root) == there
                assert report.units == len(there)
        finally:
            kept.archive.close()

"""After a sync, the archive contains the current state of the files, for any sequence of file changes."""

import os
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from tests.archive.synced_archive import SyncedArchive

from backscroll.sources import named
from backscroll.testing.claude_code import Transcript
from backscroll.testing.claude_code.side_files import write_prompts


class ChangingFolder:
    """Small history and the changes that can happen to it. Each public method is one change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "claude"
        self._counter = count(1)
        self._moved_away: list[tuple[Path, Path]] = []
        for _ in range(3):
            self.start_session(0)

    def files(self) -> list[Path]:
        return sorted(path for path in self.root.rglob("*") if path.is_file())

    def _file(self, index: int) -> Path:
        files = self.files()
        return files[index % len(files)] if files else self.start_session(index)

    def start_session(self, index: int) -> Path:
        seed = next(self._counter)
        session = Transcript(seed=seed, cwd=f"/home/zoe/{'abc'[index % 3]}").user(f"question {seed}")
        if index % 2:
            session.delegate("look for it", "found it")
        return session.write(self.root)

    def append(self, index: int) -> None:
        with self._file(index).open("ab") as file:
            file.write(b"{}\n")

    def truncate(self, index: int) -> None:
        path = self._file(index)
        os.truncate(path, path.stat().st_size // 2)

    def delete(self, index: int) -> None:
        self._file(index).unlink()

    def move_away(self, index: int) -> None:
        path = self._file(index)
        if index % 3 == 0:
            path = path.parent
        if path == self.root:
            return
        target = self.folder / f"away-{next(self._counter)}"
        path.rename(target)
        self._moved_away.append((target, path))

    def move_back(self, index: int) -> None:
        if self._moved_away:
            current, path = self._moved_away.pop(index % len(self._moved_away))
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                current.rename(path)

    def rename(self, index: int) -> None:
        path = self._file(index)
        path.rename(path.with_name(f"{next(self._counter):08}-0000-4000-8000-000000000000.jsonl"))

    def replace(self, index: int) -> None:
        """Replace a file by one of the same size and time."""
        path = self._file(index)
        before = path.stat()
        other = path.with_name("other")
        other.write_bytes(path.read_bytes().swapcase())
        os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
        other.replace(path)

    def write_sidecar(self, index: int) -> None:
        self._file(index).with_suffix(".meta.json").write_text("{}")

    def write_prompt_log(self, index: int) -> None:
        write_prompts(self.root, [])

    def link(self, index: int) -> None:
        """Link to a file, index is read, or to a folder, index is not."""
        path = self._file(index)
        target = path if index % 2 else path.parent
        name = path.with_name(f"{next(self._counter):08}-0000-4000-8000-000000000001")
        (name.with_suffix(".jsonl") if target is path else name).symlink_to(target)

    def delete_folder(self, index: int) -> None:
        folder = self._file(index).parent
        if folder != self.root:
            shutil.rmtree(folder)


_STEPS: dict[str, Callable[[ChangingFolder, int], object]] = {
    name: step
    for name, step in vars(ChangingFolder).items()
    if not name.startswith("_") and name != "files" and callable(step)
}


@given(
    st.lists(st.lists(st.tuples(st.sampled_from(sorted(_STEPS)), st.integers(0, 11)), max_size=3), max_size=6)
)
def test_after_every_sync_the_stored_fingerprints_equal_those_of_the_files(
    rounds: list[list[tuple[str, int]]],
) -> None:
    with TemporaryDirectory() as folder:
        history = ChangingFolder(Path(folder))
        synced = SyncedArchive("claude-code", history.root, Path(folder))
        try:
            for steps in rounds:
                for name, index in steps:
                    _STEPS[name](history, index)
                report = synced.sync()
                expected = {unit.path: unit.fingerprint for unit in named("claude-code").units(history.root)}
                assert synced.archive.fingerprints.units("claude-code", history.root) == expected
                assert report.units == len(expected)
        finally:
            synced.archive.close()

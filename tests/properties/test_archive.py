"""Messages that a sync has read stay in the archive, for any sequence of file changes."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from tests.archive.synced_archive import SyncedArchive
from tests.example_counts import fewer_examples

from backscroll.index.store import Index
from backscroll.ingest.originals import rebuild
from backscroll.testing.claude_code import Transcript, fork, resume, tool_calls


class ChangingHistory:
    """Sessions and the changes that can happen to their files. Each public method is one change."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "claude"
        self._folder = folder
        self._counter = count(1)
        self._sessions: list[Transcript] = []
        self._earlier_states: list[tuple[Path, bytes]] = []
        self.start_session(0)

    def _session(self, index: int) -> Transcript:
        return self._sessions[index % len(self._sessions)]

    def _file(self, index: int) -> Path | None:
        files = sorted(self.root.glob("projects/*/*.jsonl"))
        return files[index % len(files)] if files else None

    def _word(self) -> str:
        return f"word{next(self._counter):04}"

    def start_session(self, index: int) -> None:
        session = Transcript(seed=next(self._counter), version=("1.0.60", "2.0.30", "2.1.288")[index % 3])
        self._sessions.append(session.user(self._word()).assistant(self._word()))
        session.write(self.root)

    def extend_session(self, index: int) -> None:
        session = self._session(index)
        match index % 4:
            case 0:
                session.user(self._word()).assistant(self._word())
            case 1:
                session.assistant(tools=[tool_calls.bash(self._word())])
            case 2 if session.tool_ids and not _has_result(session, session.tool_ids[-1]):
                session.result(session.tool_ids[-1], self._word())
            case _:
                session.delegate(self._word(), self._word())
        session.write(self.root)

    def copy_session(self, index: int) -> None:
        copied = (resume, fork)[index % 2](self._session(index), seed=next(self._counter))
        self._sessions.append(copied)
        self.extend_session(len(self._sessions) - 1)

    def truncate_file(self, index: int) -> None:
        if (path := self._file(index)) is not None:
            whole = path.read_bytes()
            self._earlier_states.append((path, whole))
            path.write_bytes(whole[: len(whole) * (index % 4) // 4])

    def drop_lines(self, index: int) -> None:
        if (path := self._file(index)) is not None:
            lines = path.read_bytes().splitlines(keepends=True)
            self._earlier_states.append((path, path.read_bytes()))
            path.write_bytes(b"".join(line for number, line in enumerate(lines) if number % 5 != index % 5))

    def delete_file(self, index: int) -> None:
        if (path := self._file(index)) is not None:
            self._earlier_states.append((path, path.read_bytes()))
            path.unlink()

    def restore_file(self, index: int) -> None:
        if self._earlier_states:
            path, whole = self._earlier_states[index % len(self._earlier_states)]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(whole)

    def move_file(self, index: int) -> None:
        if (path := self._file(index)) is not None:
            target = path.parent.with_name(f"-home-zoe-{'ab'[index % 2]}") / path.name
            target.parent.mkdir(exist_ok=True)
            if not target.exists():
                path.rename(target)


_STEPS: dict[str, Callable[[ChangingHistory, int], object]] = {
    name: step for name, step in vars(ChangingHistory).items() if not name.startswith("_") and callable(step)
}


def _has_result(session: Transcript, call: str) -> bool:
    """Return whether a call has a result. A second result would replace the first."""
    return f'"tool_use_id":"{call}"'.encode() in session.lines()


def _texts(synced: SyncedArchive) -> set[tuple[str, str]]:
    """Return the texts of each session and its subagents."""
    return {
        (summary.parent_ref or summary.ref, text)
        for summary in synced.summaries()
        for message in synced.archive.messages.of_session(summary)
        for text in (message.content, (message.tool and message.tool.result) or "")
        if text.strip()
    }


@fewer_examples(3)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(sorted(_STEPS)), st.integers(0, 11)), min_size=1, max_size=3),
        max_size=6,
    )
)
def test_every_message_that_was_read_stays_in_the_archive_and_in_a_rebuild(
    rounds: list[list[tuple[str, int]]],
) -> None:
    with TemporaryDirectory() as folder:
        history = ChangingHistory(Path(folder))
        synced = SyncedArchive("claude-code", history.root, Path(folder) / "home")
        expected: set[tuple[str, str]] = set()
        try:
            for number, steps in enumerate(rounds):
                for name, index in steps:
                    _STEPS[name](history, index)
                synced.sync()
                fresh = SyncedArchive("claude-code", history.root, Path(folder) / f"fresh-{number}")
                fresh.sync()
                expected |= _texts(fresh)
                fresh.archive.close()
                assert expected <= _texts(synced)
            content = synced.content()
            synced.archive.invalidate_derived()
            synced.archive.derive()
            assert synced.content() == content
            rebuild(synced.archive, Index(Path(folder) / "home" / "index"))
            assert synced.content() == content
            assert synced.archive.maintenance.verify() == []
        finally:
            synced.archive.close()

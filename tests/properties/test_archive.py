"""Whatever becomes of files between two syncs, nothing that a sync saw is lost or told otherwise later."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.archive.synced_archive import SyncedArchive

from backscroll.index import Index
from backscroll.ingest.rebuild import rebuild
from backscroll.testing.claude_code import Transcript, fork, resume, tool_calls


class Desk:
    """Sessions that go on, are copied, cut, moved and taken away."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "claude"
        self._folder = folder
        self._numbers = count(1)
        self._sessions: list[Transcript] = []
        self._saved: list[tuple[Path, bytes]] = []
        self.begin(0)

    def _session(self, which: int) -> Transcript:
        return self._sessions[which % len(self._sessions)]

    def _file(self, which: int) -> Path | None:
        files = sorted(self.root.glob("projects/*/*.jsonl"))
        return files[which % len(files)] if files else None

    def _word(self) -> str:
        return f"word{next(self._numbers):04}"

    def begin(self, which: int) -> None:
        session = Transcript(seed=next(self._numbers), version=("1.0.60", "2.0.30", "2.1.288")[which % 3])
        self._sessions.append(session.user(self._word()).assistant(self._word()))
        session.write(self.root)

    def say(self, which: int) -> None:
        session = self._session(which)
        match which % 4:
            case 0:
                session.user(self._word()).assistant(self._word())
            case 1:
                session.assistant(tools=[tool_calls.bash(self._word())])
            case 2 if session.tool_ids and not _is_answered(session, session.tool_ids[-1]):
                session.result(session.tool_ids[-1], self._word())
            case _:
                session.delegate(self._word(), self._word())
        session.write(self.root)

    def copy(self, which: int) -> None:
        copied = (resume, fork)[which % 2](self._session(which), seed=next(self._numbers))
        self._sessions.append(copied)
        self.say(len(self._sessions) - 1)

    def cut(self, which: int) -> None:
        if (path := self._file(which)) is not None:
            whole = path.read_bytes()
            self._saved.append((path, whole))
            path.write_bytes(whole[: len(whole) * (which % 4) // 4])

    def drop(self, which: int) -> None:
        if (path := self._file(which)) is not None:
            lines = path.read_bytes().splitlines(keepends=True)
            self._saved.append((path, path.read_bytes()))
            path.write_bytes(b"".join(line for place, line in enumerate(lines) if place % 5 != which % 5))

    def take_away(self, which: int) -> None:
        if (path := self._file(which)) is not None:
            self._saved.append((path, path.read_bytes()))
            path.unlink()

    def put_back(self, which: int) -> None:
        if self._saved:
            path, whole = self._saved[which % len(self._saved)]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(whole)

    def move(self, which: int) -> None:
        if (path := self._file(which)) is not None:
            place = path.parent.with_name(f"-home-zoe-{'ab'[which % 2]}") / path.name
            place.parent.mkdir(exist_ok=True)
            if not place.exists():
                path.rename(place)


_STEPS: dict[str, Callable[[Desk, int], object]] = {
    name: step for name, step in vars(Desk).items() if not name.startswith("_") and callable(step)
}


def _is_answered(session: Transcript, call: str) -> bool:
    """Of several answers to one call, the last is told."""
    return f'"tool_use_id":"{call}"'.encode() in session.lines()


def _texts(kept: SyncedArchive) -> set[tuple[str, str]]:
    """What is said in each session, its subagents included."""
    return {
        (summary.parent_ref or summary.ref, text)
        for summary in kept.summaries()
        for message in kept.archive.messages.of_session(summary)
        for text in (message.content, (message.tool and message.tool.result) or "")
        if text.strip()
    }


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(sorted(_STEPS)), st.integers(0, 11)), min_size=1, max_size=3),
        max_size=6,
    )
)
def test_all_that_a_sync_saw_is_told_and_told_the_same_when_it_is_made_anew(
    rounds: list[list[tuple[str, int]]],
) -> None:
    with TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        kept = SyncedArchive("claude-code", desk.root, Path(folder) / "home")
        seen: set[tuple[str, str]] = set()
        try:
            for number, steps in enumerate(rounds):
                for name, which in steps:
                    _STEPS[name](desk, which)
                kept.sync()
                now = SyncedArchive("claude-code", desk.root, Path(folder) / f"now-{number}")
                now.sync()
                seen |= _texts(now)
                now.archive.close()
                assert seen <= _texts(kept)
            told = kept.content()
            kept.archive.invalidate_derived()
            kept.archive.derive()
            assert kept.content() == told
            rebuild(kept.archive, Index(Path(folder) / "home" / "index"))
            assert kept.content() == told
            assert kept.archive.maintenance.verify() == []
        finally:
            kept.archive.close()

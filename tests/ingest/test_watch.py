"""What the tools write is noticed while they write it, whoever else is reading."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from queue import Queue
from threading import Event
from typing import Any, Self

import pytest
import watchfiles

from backscroll.archive.query.messages import MessageQueries
from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.model import Message, SessionSummary
from backscroll.model.live import FollowedMessage, SessionChange
from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript, tool_calls
from backscroll.testing.database import open_writer

_LONG = 20.0  # seconds; nothing here should take so long
ONE = "10000000-0000-4000-8000-000000000000"
TWO = "20000000-0000-4000-8000-000000000000"


class Watching:
    """Something that goes on in a thread of its own, and what it tells."""

    def __init__(
        self, history: Callable[[], History], tell: Callable[[History, Event], Iterator[Any]]
    ) -> None:
        self._history = history
        self._tell = tell
        self._stop = Event()
        self._told: Queue[Any] = Queue()
        self._ready = Event()
        self._pool = ThreadPoolExecutor(1)
        self._end: Future[None] | None = None

    def _run(self) -> None:
        try:
            with self._history() as history:
                history.sync()
                told = self._tell(history, self._stop)
                self._ready.set()
                for one in told:
                    self._told.put(one)
        finally:
            self._ready.set()

    def __enter__(self) -> Self:
        self._end = self._pool.submit(self._run)
        assert self._ready.wait(_LONG)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._end is not None
        self._end.result(_LONG)
        self._pool.shutdown()

    def next(self) -> Any:
        return self._told.get(timeout=_LONG)

    def rest(self) -> list[Any]:
        return [self._told.get() for _ in range(self._told.qsize())]


class Place:
    """An archive beside the folders that tools write to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.claude = folder / "claude"
        self.cursor = folder / "cursor"

    def history(self) -> History:
        roots = [NamedRoot("claude-code", self.claude), NamedRoot("cursor", self.cursor)]
        return History(roots=roots, home=self.folder / "home")

    def watch(self) -> Watching:
        return Watching(self.history, lambda history, stop: history.live.watch(stop))

    def follow(self, ref: str | None = None, **options: Any) -> Watching:
        return Watching(self.history, lambda history, stop: history.live.follow(ref, stop=stop, **options))

    def append(self, session: Transcript) -> Path:
        """Write what was said since the last time, at the end of the file, as the tool does."""
        path = next(self.claude.rglob(f"{session.session_id}.jsonl"))
        size = path.stat().st_size
        with path.open("ab") as file:
            file.write(session.lines()[size:])
        return path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def session(place: Place) -> Transcript:
    session = Transcript(ONE, seed=1, cwd="/home/zoe/ferry").user("Why is it late?").assistant("Let me see.")
    session.write(place.claude)
    return session


def test_a_message_is_told_and_found_as_soon_as_it_is_written(place: Place, session: Transcript) -> None:
    with place.watch() as watching:
        place.append(session.user("the zeppelin timetable"))
        change: SessionChange = watching.next()
        with place.history() as other:
            found = other.search_sessions("zeppelin")
    assert (change.session.id, change.added, change.is_new) == (ONE, 1, False)
    assert [match.session_id for match in found.data] == [ONE]


def test_a_session_in_a_new_folder_is_told_as_new(place: Place, session: Transcript) -> None:
    with place.watch() as watching:
        Transcript(TWO, seed=2, cwd="/home/zoe/other").user("Hello").assistant("Hi").write(place.claude)
        change: SessionChange = watching.next()
        total = change.added + sum(more.added for more in watching.rest())
    assert (change.session.id, change.is_new) == (TWO, True)
    assert total == 2


def test_what_a_subagent_says_counts_for_its_session(place: Place, session: Transcript) -> None:
    with place.watch() as watching:
        session.subagent("Look it up", agent_id="abc1234").assistant("Found it.")
        session.agents[0].write(place.claude)
        change: SessionChange = watching.next()
    assert (change.session.id, change.added) == (ONE, 2)


def test_a_tool_that_is_installed_later_is_noticed(place: Place) -> None:
    with place.watch() as watching:
        Transcript(ONE, seed=1).user("First words").write(place.claude)
        assert watching.next().session.id == ONE


def test_a_session_of_a_running_editor_is_told_from_its_log(place: Place) -> None:
    home = cursor.Home(place.cursor)
    home.composer([cursor.user("Hello")], name="Old one")
    home.write()
    later = cursor.Home(place.folder / "later", seed=9)
    new = later.composer([cursor.user("Count the gulls"), cursor.assistant("Seven.")], name="Gulls")
    later.write()
    with place.watch() as watching, open_writer(home.database) as database:
        before = home.database.read_bytes()
        database.execute("attach ? as later", [str(later.database)])
        database.execute("begin")
        for table in ("cursorDiskKV", "composerHeaders"):
            database.execute(f"insert or replace into main.{table} select * from later.{table}")  # noqa: S608
        database.execute("commit")
        assert home.database.read_bytes() == before
        change: SessionChange = watching.next()
    assert (change.session.id, change.session.title, change.added) == (new.id, "Gulls", 2)


def test_a_session_that_vanishes_is_told_as_kept(place: Place, session: Transcript) -> None:
    with place.watch() as watching:
        next(place.claude.rglob("*.jsonl")).unlink()
        change: SessionChange = watching.next()
    assert (change.session.id, change.has_vanished, change.added) == (ONE, True, 0)
    with place.history() as history:
        assert [message.role for message in history.get_session(ONE).messages] == ["user", "assistant"]


def test_a_project_that_is_moved_away_is_told_as_vanished(place: Place, session: Transcript) -> None:
    project = next(place.claude.rglob("*.jsonl")).parent
    with place.watch() as watching:
        project.rename(place.folder / "elsewhere")
        change: SessionChange = watching.next()
        assert (change.session.id, change.has_vanished) == (ONE, True)
        (place.folder / "elsewhere").rename(project)
        assert watching.next().session.is_gone is False


def test_many_sessions_in_a_new_folder_are_all_told(place: Place, session: Transcript) -> None:
    ids = {f"{number:08d}-0000-4000-8000-000000000000" for number in range(40)}
    with place.watch() as watching:
        for number, id_ in enumerate(sorted(ids)):
            Transcript(id_, seed=number, cwd="/home/zoe/new").user("Hello").write(place.claude)
        told: set[str] = set()
        while told != ids:
            told.add(watching.next().session.id)


def test_what_another_process_reads_first_is_told_once(place: Place, session: Transcript) -> None:
    with place.watch() as watching, place.history() as other:
        for number in range(5):
            place.append(session.user(f"word {number}"))
            other.sync()
        added = 0
        while added < 5:
            added += watching.next().added
    assert added == 5


def test_many_at_once_tell_the_same(place: Place, session: Transcript) -> None:
    with place.watch() as one, place.watch() as two:
        for number in range(5):
            place.append(session.user(f"word {number}").assistant(f"answer {number}"))
        for watching in (one, two):
            added = 0
            while added < 10:
                added += watching.next().added
            assert added == 10
    with place.history() as history:
        assert len(history.get_session(ONE).messages) == 12
        assert history.archive_admin.verify() == []


def test_where_nothing_can_be_watched_it_is_looked_at_time_and_again(
    place: Place, session: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> Iterator[Any]:
        raise OSError("no more watches")

    monkeypatch.setattr(watchfiles, "watch", refuse)
    with place.watch() as watching:
        place.append(session.user("anybody?"))
        assert watching.next().added == 1


def test_a_place_that_was_moved_away_and_back_is_still_watched(place: Place, session: Transcript) -> None:
    with place.watch() as watching:
        shutil.copytree(place.claude / "projects", place.claude / "copy")
        shutil.rmtree(place.claude / "projects")
        assert watching.next().has_vanished
        (place.claude / "copy").rename(place.claude / "projects")
        assert watching.next().session.is_gone is False
        place.append(session.user("back again"))
        assert watching.next().added == 1


def test_a_followed_session_tells_a_call_and_then_its_answer(place: Place, session: Transcript) -> None:
    with place.follow(ONE, last=1) as following:
        assert following.next().message.content == "Let me see."
        place.append(session.assistant(tools=[tool_calls.bash("ls")]))
        asked: FollowedMessage = following.next()
        assert asked.message.tool is not None
        assert (asked.position, asked.message.tool.status, asked.before) == (2, "pending", None)
        place.append(session.result(session.tool_ids[-1], "a.py"))
        answered: FollowedMessage = following.next()
    assert answered.message.tool is not None
    assert (answered.position, answered.message.tool.status) == (2, "completed")
    assert answered.message.tool.result == "a.py"
    assert answered.before == asked.message


def test_other_sessions_are_not_followed(place: Place, session: Transcript) -> None:
    other = Transcript(TWO, seed=2).user("Elsewhere")
    other.write(place.claude)
    with place.follow(ONE, last=0) as following:
        place.append(other.user("not this"))
        place.append(session.user("but this"))
        assert following.next().message.content == "but this"
        assert following.rest() == []


def test_what_people_do_not_read_is_followed_only_on_request(place: Place, session: Transcript) -> None:
    place.append(session.meta("<system-reminder>injected</system-reminder>"))
    with place.follow(ONE) as following:
        place.append(session.user("last"))
        told = [following.next().message.role for _ in range(3)]
    assert told == ["user", "assistant", "user"]
    with place.follow(ONE, everything=True) as following:
        told = [following.next().message.role for _ in range(4)]
    assert told == ["user", "assistant", "system", "user"]


def test_without_a_ref_the_newest_session_is_followed(place: Place, session: Transcript) -> None:
    Transcript(TWO, seed=2, start=session.now + timedelta(hours=1)).user("newer").write(place.claude)
    with place.follow() as following:
        assert following.next().message.content == "newer"


def test_a_long_session_is_followed_without_reading_what_was_told(
    place: Place, session: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(600):
        session.user(f"question {number}").assistant(f"answer {number}")
    place.append(session)
    starts: list[int] = []
    messages_of = MessageQueries.of_session

    def noted(self: MessageQueries, summary: SessionSummary, *start: int) -> Iterator[Message]:
        starts.extend(start)  # who follows says where to begin
        return messages_of(self, summary, *start)

    monkeypatch.setattr(MessageQueries, "of_session", noted)
    with place.follow(ONE, last=2) as following:
        assert [following.next().position for _ in range(2)] == [1200, 1201]
        place.append(session.user("and one more"))
        said: FollowedMessage = following.next()
        place.append(session.assistant(tools=[tool_calls.bash("ls")]))
        asked: FollowedMessage = following.next()
        place.append(session.result(session.tool_ids[-1], "a.py").user("thanks"))
        more = [following.next() for _ in range(2)]
    assert (said.position, said.message.content) == (1202, "and one more")
    assert (asked.position, [one.position for one in more]) == (1203, [1203, 1204])
    assert min(starts) > 1100


def test_a_session_told_anew_tells_only_what_is_new(place: Place) -> None:
    home = cursor.Home(place.cursor, seed=4)
    said = [cursor.user("Count the gulls"), cursor.assistant("Seven."), cursor.user("Again")]
    id_ = home.composer(said[:2], name="Gulls").id
    home.write()
    with place.follow(id_, last=1) as following:
        assert following.next().message.content == "Seven."
        later = cursor.Home(place.cursor, seed=4)
        later.composer(said, name="Gulls")
        later.write()
        news: FollowedMessage = following.next()
        assert (news.position, news.message.content) == (2, "Again")
        assert following.rest() == []


def test_a_subagent_is_followed_by_its_own_id(place: Place, session: Transcript) -> None:
    session.subagent("Look it up", agent_id="abc1234").assistant("Found it.")
    agent = session.agents[0]
    path = agent.write(place.claude)
    with place.follow("abc1234", last=5) as following:
        assert [following.next().message.content for _ in range(2)] == ["Look it up", "Found it."]
        size = path.stat().st_size
        agent.assistant("And more.")
        with path.open("ab") as file:
            file.write(agent.lines()[size:])
        assert following.next().message.content == "And more."

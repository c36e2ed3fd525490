"""BackgroundEvents and following sessions while tools write them and other processes read them."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from queue import Queue
from threading import Event, Timer
from typing import Any, Self

import pytest
import watchfiles

from backscroll.archive.query.messages import MessageQueries
from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.message import Message
from backscroll.model.session import FollowedMessage, SessionChange, SessionSummary
from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript, tool_calls
from backscroll.testing.database import open_writer

TIMEOUT_SECONDS = 20.0
ONE = "10000000-0000-4000-8000-000000000000"
TWO = "20000000-0000-4000-8000-000000000000"


class BackgroundEvents:
    """Runs an iterator of events in a thread and collects the events."""

    def __init__(
        self,
        open_history: Callable[[], History],
        iterate: Callable[[History, Event], Iterator[Any]],
    ) -> None:
        self._open_history = open_history
        self._iterate = iterate
        self._stop = Event()
        self._events: Queue[Any] = Queue()
        self._ready = Event()
        self._pool = ThreadPoolExecutor(1)
        self._end: Future[None] | None = None

    def _run(self) -> None:
        try:
            with self._open_history() as history:
                history.sync()
                events = self._iterate(history, self._stop)
                self._ready.set()
                for event in events:
                    self._events.put(event)
        finally:
            self._ready.set()

    def __enter__(self) -> Self:
        self._end = self._pool.submit(self._run)
        assert self._ready.wait(TIMEOUT_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._end is not None
        self._end.result(TIMEOUT_SECONDS)
        self._pool.shutdown()

    def next(self) -> Any:
        return self._events.get(timeout=TIMEOUT_SECONDS)

    def rest(self) -> list[Any]:
        return [self._events.get() for _ in range(self._events.qsize())]


class Setup:
    """Source folders and the home folder of an archive."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.claude = folder / "claude"
        self.cursor = folder / "cursor"

    def open_history(self) -> History:
        roots = [NamedRoot("claude-code", self.claude), NamedRoot("cursor", self.cursor)]
        return History(roots=roots, home=self.folder / "home")

    def watch(self) -> BackgroundEvents:
        return BackgroundEvents(self.open_history, lambda history, stop: history.live.watch(stop))

    def follow(self, ref: str | None = None, **options: Any) -> BackgroundEvents:
        return BackgroundEvents(
            self.open_history, lambda history, stop: history.live.follow(ref, stop=stop, **options)
        )

    def append(self, session: Transcript) -> Path:
        """Append the new messages to the file, as the tool does."""
        path = next(self.claude.rglob(f"{session.session_id}.jsonl"))
        size = path.stat().st_size
        with path.open("ab") as file:
            file.write(session.lines()[size:])
        return path


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


@pytest.fixture
def session(setup: Setup) -> Transcript:
    session = Transcript(ONE, seed=1, cwd="/home/zoe/ferry").user("Why is it late?").assistant("Let me see.")
    session.write(setup.claude)
    return session


def test_a_change_that_another_process_syncs_before_the_first_event_is_reported(
    setup: Setup, session: Transcript
) -> None:
    stop = Event()
    timeout = Timer(TIMEOUT_SECONDS, stop.set)
    with setup.open_history() as history, setup.open_history() as other:
        history.sync()
        changes = history.live.watch(stop)
        setup.append(session.user("And now?"))
        other.sync()
        timeout.start()
        first = next(changes, None)
        timeout.cancel()
        stop.set()
        assert list(changes) == []
    assert first is not None
    assert first.added == 1


def test_a_written_message_is_reported_and_found(setup: Setup, session: Transcript) -> None:
    with setup.watch() as watching:
        setup.append(session.user("the zeppelin timetable"))
        change: SessionChange = watching.next()
        with setup.open_history() as other:
            found = other.search_sessions("zeppelin")
    assert (change.session.id, change.added, change.is_new) == (ONE, 1, False)
    assert [match.session_id for match in found.data] == [ONE]


def test_a_session_in_a_new_folder_is_reported_as_new(setup: Setup, session: Transcript) -> None:
    with setup.watch() as watching:
        Transcript(TWO, seed=2, cwd="/home/zoe/other").user("Hello").assistant("Hi").write(setup.claude)
        change: SessionChange = watching.next()
        total = change.added + sum(more.added for more in watching.rest())
    assert (change.session.id, change.is_new) == (TWO, True)
    assert total == 2


def test_messages_of_a_subagent_count_for_its_session(setup: Setup, session: Transcript) -> None:
    with setup.watch() as watching:
        session.subagent("Look it up", agent_id="abc1234").assistant("Found it.")
        session.agents[0].write(setup.claude)
        change: SessionChange = watching.next()
    assert (change.session.id, change.added) == (ONE, 2)


def test_a_tool_installed_later_is_detected(setup: Setup) -> None:
    with setup.watch() as watching:
        Transcript(ONE, seed=1).user("First words").write(setup.claude)
        assert watching.next().session.id == ONE


def test_a_session_of_a_running_cursor_is_read_from_the_write_ahead_log(setup: Setup) -> None:
    home = cursor.Home(setup.cursor)
    home.composer([cursor.user("Hello")], name="Old one")
    home.write()
    later = cursor.Home(setup.folder / "later", seed=9)
    new = later.composer([cursor.user("Count the gulls"), cursor.assistant("Seven.")], name="Gulls")
    later.write()
    with setup.watch() as watching, open_writer(home.database) as database:
        before = home.database.read_bytes()
        database.execute("attach ? as later", [str(later.database)])
        database.execute("begin")
        for table in ("cursorDiskKV", "composerHeaders"):
            database.execute(f"insert or replace into main.{table} select * from later.{table}")  # noqa: S608
        database.execute("commit")
        assert home.database.read_bytes() == before
        change: SessionChange = watching.next()
    assert (change.session.id, change.session.title, change.added) == (new.id, "Gulls", 2)


def test_a_deleted_session_is_reported_and_stays_in_the_archive(setup: Setup, session: Transcript) -> None:
    with setup.watch() as watching:
        next(setup.claude.rglob("*.jsonl")).unlink()
        change: SessionChange = watching.next()
    assert (change.session.id, change.has_vanished, change.added) == (ONE, True, 0)
    with setup.open_history() as history:
        assert [message.role for message in history.get_session(ONE).messages] == ["user", "assistant"]


def test_a_project_that_is_moved_away_is_reported_as_vanished(setup: Setup, session: Transcript) -> None:
    project = next(setup.claude.rglob("*.jsonl")).parent
    with setup.watch() as watching:
        project.rename(setup.folder / "elsewhere")
        change: SessionChange = watching.next()
        assert (change.session.id, change.has_vanished) == (ONE, True)
        (setup.folder / "elsewhere").rename(project)
        assert watching.next().session.is_gone is False


def test_all_sessions_in_a_new_folder_are_reported(setup: Setup, session: Transcript) -> None:
    ids = {f"{index:08d}-0000-4000-8000-000000000000" for index in range(40)}
    with setup.watch() as watching:
        for seed, id_ in enumerate(sorted(ids)):
            Transcript(id_, seed=seed, cwd="/home/zoe/new").user("Hello").write(setup.claude)
        reported: set[str] = set()
        while reported != ids:
            reported.add(watching.next().session.id)


def test_messages_synced_by_another_process_are_reported_once(setup: Setup, session: Transcript) -> None:
    with setup.watch() as watching, setup.open_history() as other:
        for index in range(5):
            setup.append(session.user(f"word {index}"))
            other.sync()
        added = 0
        while added < 5:
            added += watching.next().added
    assert added == 5


def test_two_watchers_report_the_same_messages(setup: Setup, session: Transcript) -> None:
    with setup.watch() as one, setup.watch() as two:
        for index in range(5):
            setup.append(session.user(f"word {index}").assistant(f"answer {index}"))
        for watching in (one, two):
            added = 0
            while added < 10:
                added += watching.next().added
            assert added == 10
    with setup.open_history() as history:
        assert len(history.get_session(ONE).messages) == 12
        assert history.archive_admin.verify() == []


def test_folders_that_cannot_be_watched_are_polled(
    setup: Setup, session: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> Iterator[Any]:
        raise OSError("no more watches")

    monkeypatch.setattr(watchfiles, "watch", fail)
    with setup.watch() as watching:
        setup.append(session.user("anybody?"))
        assert watching.next().added == 1


def test_a_folder_that_was_moved_away_and_back_is_still_watched(setup: Setup, session: Transcript) -> None:
    with setup.watch() as watching:
        shutil.copytree(setup.claude / "projects", setup.claude / "copy")
        shutil.rmtree(setup.claude / "projects")
        assert watching.next().has_vanished
        (setup.claude / "copy").rename(setup.claude / "projects")
        assert watching.next().session.is_gone is False
        setup.append(session.user("back again"))
        assert watching.next().added == 1


def test_following_reports_a_tool_call_and_then_its_result(setup: Setup, session: Transcript) -> None:
    with setup.follow(ONE, last=1) as following:
        assert following.next().message.content == "Let me see."
        setup.append(session.assistant(tools=[tool_calls.bash("ls")]))
        pending: FollowedMessage = following.next()
        assert pending.message.tool is not None
        assert (pending.position, pending.message.tool.status, pending.before) == (2, "pending", None)
        setup.append(session.result(session.tool_ids[-1], "a.py"))
        completed: FollowedMessage = following.next()
    assert completed.message.tool is not None
    assert (completed.position, completed.message.tool.status) == (2, "completed")
    assert completed.message.tool.result == "a.py"
    assert completed.before == pending.message


def test_other_sessions_are_not_followed(setup: Setup, session: Transcript) -> None:
    other = Transcript(TWO, seed=2).user("Elsewhere")
    other.write(setup.claude)
    with setup.follow(ONE, last=0) as following:
        setup.append(other.user("not this"))
        setup.append(session.user("but this"))
        assert following.next().message.content == "but this"
        assert following.rest() == []


def test_system_messages_are_followed_only_on_request(setup: Setup, session: Transcript) -> None:
    setup.append(session.meta("<system-reminder>injected</system-reminder>"))
    with setup.follow(ONE) as following:
        setup.append(session.user("last"))
        roles = [following.next().message.role for _ in range(3)]
    assert roles == ["user", "assistant", "user"]
    with setup.follow(ONE, everything=True) as following:
        roles = [following.next().message.role for _ in range(4)]
    assert roles == ["user", "assistant", "system", "user"]


def test_without_a_ref_the_newest_session_is_followed(setup: Setup, session: Transcript) -> None:
    Transcript(TWO, seed=2, start=session.now + timedelta(hours=1)).user("newer").write(setup.claude)
    with setup.follow() as following:
        assert following.next().message.content == "newer"


def test_following_a_long_session_does_not_read_earlier_messages_again(
    setup: Setup, session: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in range(600):
        session.user(f"question {index}").assistant(f"answer {index}")
    setup.append(session)
    starts: list[int] = []
    messages_of = MessageQueries.of_session

    def recording(self: MessageQueries, summary: SessionSummary, *start: int) -> Iterator[Message]:
        starts.extend(start)  # only follow passes a start position
        return messages_of(self, summary, *start)

    monkeypatch.setattr(MessageQueries, "of_session", recording)
    with setup.follow(ONE, last=2) as following:
        assert [following.next().position for _ in range(2)] == [1200, 1201]
        setup.append(session.user("and one more"))
        prompt: FollowedMessage = following.next()
        setup.append(session.assistant(tools=[tool_calls.bash("ls")]))
        call: FollowedMessage = following.next()
        setup.append(session.result(session.tool_ids[-1], "a.py").user("thanks"))
        more = [following.next() for _ in range(2)]
    assert (prompt.position, prompt.message.content) == (1202, "and one more")
    assert (call.position, [event.position for event in more]) == (1203, [1203, 1204])
    assert min(starts) > 1100


def test_following_a_reparsed_session_reports_only_new_messages(setup: Setup) -> None:
    home = cursor.Home(setup.cursor, seed=4)
    messages = [cursor.user("Count the gulls"), cursor.assistant("Seven."), cursor.user("Again")]
    id_ = home.composer(messages[:2], name="Gulls").id
    home.write()
    with setup.follow(id_, last=1) as following:
        assert following.next().message.content == "Seven."
        later = cursor.Home(setup.cursor, seed=4)
        later.composer(messages, name="Gulls")
        later.write()
        added: FollowedMessage = following.next()
        assert (added.position, added.message.content) == (2, "Again")
        assert following.rest() == []


def test_a_subagent_is_followed_by_its_own_id(setup: Setup, session: Transcript) -> None:
    session.subagent("Look it up", agent_id="abc1234").assistant("Found it.")
    agent = session.agents[0]
    path = agent.write(setup.claude)
    with setup.follow("abc1234", last=5) as following:
        assert [following.next().message.content for _ in range(2)] == ["Look it up", "Found it."]
        size = path.stat().st_size
        agent.assistant("And more.")
        with path.open("ab") as file:
            file.write(agent.lines()[size:])
        assert following.next().message.content == "And more."

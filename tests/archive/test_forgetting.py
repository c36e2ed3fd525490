"""What a user wants forgotten is forgotten everywhere, and stays so."""

import signal
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backscroll.archive import Archive
from backscroll.archive.write.exclusions import Exclusions
from backscroll.config import Machine, NamedRoot
from backscroll.errors import SessionNotFoundError, UsageError
from backscroll.history import History
from backscroll.ingest.parallel import Batch, read_batches
from backscroll.sources import named
from backscroll.testing import cursor
from backscroll.testing.claude_code import Prompt, Transcript, resume
from backscroll.testing.claude_code.side_files import write_prompts

SECRET = "zanzibarquokka"
ONE = "5e551011-0000-4000-8000-0000000000aa"
TWO = "5e551011-0000-4000-8000-0000000000bb"
AT = datetime(2026, 10, 1, 12, tzinfo=UTC)


class Place:
    """A history on disk and its archive."""

    def __init__(self, folder: Path) -> None:
        self.claude = folder / "claude"
        self.cursor = folder / "cursor"
        self.home = folder / "home"
        for path in (self.claude, self.cursor, self.home):
            path.mkdir()

    def history(self) -> History:
        roots = [NamedRoot("claude-code", self.claude), NamedRoot("cursor", self.cursor)]
        return History(roots=roots, home=self.home, machine=Machine(Path("/home/zoe")))

    def files_with(self, *needles: bytes) -> list[str]:
        """The archive's and the index's files that hold one of these."""
        return [
            file.name
            for file in self.home.rglob("*")
            if file.is_file() and any(needle in file.read_bytes() for needle in needles)
        ]

    def kept_bytes(self) -> list[bytes]:
        """A piece of everything compressed in the archive."""
        db = sqlite3.connect(self.home / "archive.db")
        found = [
            body
            for table in ("message_chunk", "raw_segment", "message_update", "blob_chunk")
            for (body,) in db.execute(f"select body from {table}")  # noqa: S608 - names are ours
        ]
        db.close()
        return [body[len(body) // 2 :][:40] for body in found]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def _secret(place: Place) -> Transcript:
    session = Transcript(ONE, seed=1).user(f"about {SECRET}").assistant(f"yes, {SECRET}")
    agent = session.delegate(f"look for {SECRET}", f"found {SECRET}")
    session.write(place.claude)
    assert agent is not None
    return session


def _ids(history: History) -> set[str]:
    return {one.id for one in history.list_sessions().data}


def test_nothing_of_a_forgotten_session_is_left_in_any_file(place: Place) -> None:
    _secret(place)
    with place.history() as history:
        history.sync()
        assert "archive.db" in {name[:10] for name in place.files_with(SECRET.encode())}
        bodies = place.kept_bytes()
        assert bodies
        assert place.files_with(*bodies)
        words = {file.name for file in place.home.rglob("*.term")}
        assert words
        done = history.archive_admin.forget(ONE)
        assert (done.is_erased, done.subagents, done.shared) == (True, 1, ())
        assert place.files_with(SECRET.encode(), *bodies) == []
        # The engine does not spell its words out in its files; none of those that had them is left.
        assert words.isdisjoint(file.name for file in place.home.rglob("*.term"))
    assert place.files_with(SECRET.encode(), *bodies, ONE.encode() + b".jsonl") == []


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that cannot be caught")
@pytest.mark.parametrize("step", ["erase", "update", "Index.purge_deleted", "Maintenance.vacuum"])
def test_what_was_forgotten_by_a_process_that_was_killed_is_erased_by_the_next_sync(
    place: Place, step: str
) -> None:
    _secret(place)
    Transcript(TWO, seed=2).user("another thing").write(place.claude)
    with place.history() as history:
        history.sync()
    bodies = place.kept_bytes()
    script = (
        "import os, sys\nfrom backscroll.ingest import maintenance\n"
        "from backscroll.archive.maintenance.maintenance import Maintenance\n"
        "maintenance.Maintenance = Maintenance\n"
        f"maintenance.{step} = lambda *_: os.kill(os.getpid(), 9)\n"
        "from backscroll.cli import main; main()"
    )
    options = ["--home", place.home, "--root", f"claude-code={place.claude}"]
    done = subprocess.run([sys.executable, "-c", script, *options, "archive", "forget", ONE, "--yes"])
    assert done.returncode == -signal.SIGKILL
    with place.history() as history:
        assert _ids(history) == {TWO}
        history.sync()
        assert _ids(history) == {TWO}
        assert history.search_sessions("thing").total == 1
    assert place.files_with(SECRET.encode(), ONE.encode() + b".jsonl") == []
    with sqlite3.connect(place.home / "archive.db") as db:
        assert db.execute("pragma freelist_count").fetchone() == (0,)
    db.close()
    assert set(bodies) & set(place.kept_bytes()), "what was not forgotten is still there"
    assert not list(place.home.glob("*-erase"))


def test_a_forgotten_session_does_not_come_back(place: Place) -> None:
    session = _secret(place)
    with place.history() as history:
        history.sync()
        history.archive_admin.forget(ONE)
        assert history.sync().new == 0  # type: ignore[union-attr]
        session.user("more").write(place.claude)
        history.sync()
        with pytest.raises(SessionNotFoundError):
            history.find(ONE)
        assert history.search_sessions(SECRET).total == 0
    assert place.files_with(SECRET.encode()) == []


def test_a_forgotten_session_does_not_come_back_from_another_place(place: Place) -> None:
    session = _secret(place)
    with place.history() as history:
        history.sync()
        history.archive_admin.forget(ONE)
        path = next(place.claude.rglob(f"{ONE}.jsonl"))
        moved = place.claude / "projects" / "-elsewhere"
        moved.mkdir()
        (moved / path.name).write_bytes(path.read_bytes())
        Transcript(TWO, seed=2).user("hello").write(place.claude)
        history.sync()
        assert _ids(history) == {TWO}
        assert session.session_id == ONE
        assert history.archive_admin.verify() == []
    assert place.files_with(SECRET.encode()) == []


def test_prompts_of_a_forgotten_session_are_left_out_of_the_log(place: Place) -> None:
    prompts = [
        Prompt(f"typed {SECRET}", AT, "/home/zoe/a", ONE),
        Prompt("typed hello", AT, "/home/zoe/a", TWO),
    ]
    log = write_prompts(place.claude, prompts)
    with place.history() as history:
        history.sync()
        done = history.archive_admin.forget(ONE)
        assert done.shared == (str(log),)
        write_prompts(place.claude, [Prompt(f"again {SECRET}", AT, "/home/zoe/a", ONE), prompts[1]])
        history.sync()
        assert _ids(history) == {TWO}
        assert history.get_session(TWO).messages[0].content == "typed hello"
        write_prompts(place.claude, [Prompt("typed later", AT, "/home/zoe/a", TWO)])
        assert history.sync().grew == 1
        assert [m.content for m in history.get_session(TWO).messages][-1] == "typed later"
    assert place.files_with(SECRET.encode()) == []


def test_messages_that_another_session_repeats_stay_in_that_one(place: Place) -> None:
    first = Transcript(ONE, version="1.0.98", seed=1).user("shared words").assistant("yes")
    second = resume(first).user("own words").assistant("too")
    first.write(place.claude)
    second.write(place.claude)
    with place.history() as history:
        history.sync()
        before = history.get_session(second.session_id)
        history.archive_admin.forget(ONE)
        after = history.get_session(second.session_id)
        assert [m.content for m in after.messages] == [m.content for m in before.messages]
        assert [m.copied_from for m in before.messages][:2] == [ONE, ONE]
        assert [m.copied_from for m in after.messages][:2] == [None, None]
        assert after.summary.interaction_count == 2
        assert [one.session_id for one in history.search_sessions("shared").data] == [second.session_id]
        history.sync()
        assert history.get_session(second.session_id) == after


def test_a_session_of_a_database_is_forgotten_and_its_neighbour_stays(place: Place) -> None:
    ide = cursor.Home(place.cursor)
    for id_, words in ((ONE, SECRET), (TWO, "hello")):
        ide.composer([cursor.user(words), cursor.assistant(words)], id=id_, workspace=cursor.SHOP, name=words)
    ide.write()
    with place.history() as history:
        history.sync()
        history.archive_admin.forget(ONE)
        assert _ids(history) == {TWO}
        ide.composer([cursor.user("new")], workspace=cursor.SHOP, name="third")
        ide.write()
        history.sync()
        assert ONE not in _ids(history)
        assert len(_ids(history)) == 2
    assert place.files_with(SECRET.encode()) == []


def test_it_is_said_when_a_reader_keeps_the_bytes_from_going(place: Place) -> None:
    _secret(place)
    with place.history() as history:
        history.sync()
    archive = Archive(place.home / "archive.db")
    reader = sqlite3.connect(place.home / "archive.db", isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from message").fetchone()
    archive._db.execute("pragma busy_timeout = 50")
    archive.maintenance.forget(archive.sessions.find(ONE)[0])
    assert not archive.maintenance.vacuum()
    reader.close()
    assert archive.maintenance.vacuum()
    archive.close()


def test_the_tools_own_files_are_not_touched(place: Place) -> None:
    _secret(place)
    before = {path: path.read_bytes() for path in place.claude.rglob("*") if path.is_file()}
    with place.history() as history:
        history.sync()
        history.archive_admin.forget(ONE)
    assert {path: path.read_bytes() for path in place.claude.rglob("*") if path.is_file()} == before


def test_a_subagent_is_forgotten_with_its_session_only(place: Place) -> None:
    _secret(place)
    with place.history() as history:
        history.sync()
        (agent,) = history.find(ONE).agent_ids
        with pytest.raises(UsageError, match=ONE):
            history.archive_admin.forget(agent)
        assert history.find(agent).message_count


def test_reading_on_all_cores_passes_over_what_was_forgotten(place: Place, tmp_path: Path) -> None:
    _secret(place)
    Transcript(TWO, seed=2).user("hello").write(place.claude)
    units = tuple(named("claude-code").units(place.claude))
    archive = Archive(tmp_path / "whole.db")
    exclusions = Exclusions(frozenset({("claude_code", ONE)}))
    for shard in read_batches([Batch("claude-code", units)], exclusions, tmp_path):
        archive.units.merge_shards([shard.archive])
        assert SECRET.encode() not in shard.documents.read_bytes()
    archive.derive()
    assert archive.sessions.find(ONE) == []
    assert len(archive.sessions.find(TWO)) == 1
    assert SECRET.encode() not in (tmp_path / "whole.db").read_bytes()


# --- excluded workspaces ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("~/private/**", "/home/zoe/private", True),
        ("~/private/**", "/home/zoe/private/diary/2026", True),
        ("~/private/**", "/home/zoe/privateer", False),
        ("*/secret-project", "/srv/work/secret-project", True),
        ("*/secret-project", "/srv/work/secret-project/web", True),
        ("*/secret-project", "/srv/work/my-secret-project", False),
        ("secret-project", "/srv/secret-project", True),
        ("~/jobs/*-client", "/home/zoe/jobs/big-client", True),
        ("~/jobs/*-client", "/home/zoe/jobs", False),
        ("C:\\private", "c:/private/diary", True),
    ],
)
def test_patterns_name_folders_and_all_below(place: Place, pattern: str, path: str, fits: bool) -> None:
    (place.home / "config.toml").write_text(f"exclude = ['{pattern}']\n")
    Transcript(ONE, cwd=path).user("hello").write(place.claude)
    with place.history() as history:
        history.sync()
        assert (_ids(history) == set()) is fits


def test_an_excluded_workspace_is_neither_kept_nor_found(place: Place) -> None:
    (place.home / "config.toml").write_text('exclude = ["~/private"]\n')
    session = Transcript(ONE, cwd="/home/zoe/private").user(SECRET).assistant(SECRET)
    session.delegate(SECRET, SECRET)
    session.write(place.claude)
    Transcript(TWO, cwd="/home/zoe/open", seed=2).user("hello").write(place.claude)
    write_prompts(place.claude, [Prompt(SECRET, AT, "/home/zoe/private", ONE)])
    with place.history() as history:
        history.sync()
        assert _ids(history) == {TWO}
        session.user("more").write(place.claude)
        assert history.sync().changed == 0  # type: ignore[union-attr]
        assert history.search_sessions(SECRET).total == 0
    assert place.files_with(SECRET.encode()) == []
    (place.home / "config.toml").unlink()
    with place.history() as history:
        history.sync()
        told = [m.content for m in history.get_session(ONE).messages if m.role == "user"]
        assert told == [SECRET, "more"]
        assert len(history.find(ONE).agent_ids) == 1


def test_what_was_kept_before_it_was_excluded_stays_until_it_is_forgotten(place: Place) -> None:
    session = Transcript(ONE, cwd="/home/zoe/private").user("first").assistant("yes")
    session.write(place.claude)
    log = [Prompt("first", AT, "/home/zoe/private", TWO)]
    write_prompts(place.claude, log)
    with place.history() as history:
        history.sync()
    (place.home / "config.toml").write_text('exclude = ["~/private"]\n')
    session.user("second").write(place.claude)
    write_prompts(place.claude, [Prompt("second", AT, "/home/zoe/private", TWO)])
    with place.history() as history:
        history.sync()
        assert [(m.content, m.is_active) for m in history.get_session(ONE).messages] == [
            ("first", True),
            ("yes", True),
        ]
        assert [(m.content, m.is_active) for m in history.get_session(TWO).messages] == [("first", True)]
        assert history.archive_admin.verify() == []
        history.archive_admin.forget(ONE)
        assert _ids(history) == {TWO}


def test_of_a_log_that_tells_of_what_is_excluded_only_what_was_added_is_read(place: Place) -> None:
    (place.home / "config.toml").write_text('exclude = ["~/private"]\n')
    write_prompts(place.claude, [Prompt("open", AT, "/home/zoe/open", TWO)])
    write_prompts(place.claude, [Prompt(SECRET, AT, "/home/zoe/private", ONE)])
    with place.history() as history:
        history.sync()
        for session, words, folder in (
            (TWO, "later", "open"),
            (ONE, SECRET, "private"),
            (TWO, "last", "open"),
        ):
            write_prompts(place.claude, [Prompt(words, AT, f"/home/zoe/{folder}", session)])
            assert history.sync().grew == 1  # type: ignore[union-attr]
        assert [m.content for m in history.get_session(TWO).messages] == ["open", "later", "last"]
        assert _ids(history) == {TWO}
        assert history.archive_admin.verify() == []
    assert place.files_with(SECRET.encode()) == []
    (place.home / "config.toml").unlink()
    with place.history() as history:
        history.sync()
        assert [m.content for m in history.get_session(ONE).messages] == [SECRET, SECRET]
        assert [m.content for m in history.get_session(TWO).messages] == ["open", "later", "last"]
        assert history.archive_admin.verify() == []


@pytest.mark.parametrize("text", ["exclude = 3", "exclude = [", 'exclude = [""]'])
def test_a_settings_file_that_cannot_be_understood_is_said_to_be_so(place: Place, text: str) -> None:
    (place.home / "config.toml").write_text(text)
    with pytest.raises(UsageError, match=r"config\.toml"):
        place.history().sync()

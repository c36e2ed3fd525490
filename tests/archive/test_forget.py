"""A forgotten session is erased everywhere and does not come back; an excluded workspace is not read."""

import signal
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backscroll.archive.archive import Archive
from backscroll.archive.write.exclusions import Exclusions
from backscroll.config import Machine, NamedRoot
from backscroll.errors import SessionNotFoundError, UsageError
from backscroll.history.history import History
from backscroll.ingest.parallel import Batch, read_batches
from backscroll.sources import named
from backscroll.testing import cursor
from backscroll.testing.claude_code import Prompt, Transcript, resume
from backscroll.testing.claude_code.side_files import write_prompts

SECRET = "zanzibarquokka"
ONE = "5e551011-0000-4000-8000-0000000000aa"
TWO = "5e551011-0000-4000-8000-0000000000bb"
AT = datetime(2026, 10, 1, 12, tzinfo=UTC)


class Setup:
    """Source folders and the home folder of an archive."""

    def __init__(self, folder: Path) -> None:
        self.claude = folder / "claude"
        self.cursor = folder / "cursor"
        self.home = folder / "home"
        for path in (self.claude, self.cursor, self.home):
            path.mkdir()

    def open_history(self) -> History:
        roots = [NamedRoot("claude-code", self.claude), NamedRoot("cursor", self.cursor)]
        return History(roots=roots, home=self.home, machine=Machine(Path("/home/zoe")))

    def files_with(self, *needles: bytes) -> list[str]:
        """Return the names of the files of the archive and the index that contain one of these."""
        return [
            file.name
            for file in self.home.rglob("*")
            if file.is_file() and any(needle in file.read_bytes() for needle in needles)
        ]

    def compressed_samples(self) -> list[bytes]:
        """Return 40 bytes from the middle of every compressed value in the archive."""
        db = sqlite3.connect(self.home / "archive.db")
        bodies = [
            body
            for table in ("message_chunk", "raw_segment", "message_update", "blob_chunk")
            for (body,) in db.execute(f"select body from {table}")  # noqa: S608 - names are ours
        ]
        db.close()
        return [body[len(body) // 2 :][:40] for body in bodies]


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


def _write_secret_session(setup: Setup) -> Transcript:
    session = Transcript(ONE, seed=1).user(f"about {SECRET}").assistant(f"yes, {SECRET}")
    agent = session.delegate(f"look for {SECRET}", f"found {SECRET}")
    session.write(setup.claude)
    assert agent is not None
    return session


def _ids(history: History) -> set[str]:
    return {summary.id for summary in history.list_sessions().data}


def test_no_file_contains_a_forgotten_session(setup: Setup) -> None:
    _write_secret_session(setup)
    with setup.open_history() as history:
        history.sync()
        assert "archive.db" in {name[:10] for name in setup.files_with(SECRET.encode())}
        bodies = setup.compressed_samples()
        assert bodies
        assert setup.files_with(*bodies)
        term_files = {file.name for file in setup.home.rglob("*.term")}
        assert term_files
        result = history.archive_admin.forget(ONE)
        assert (result.is_erased, result.subagents, result.shared) == (True, 1, ())
        assert setup.files_with(SECRET.encode(), *bodies) == []
        # Term files do not contain words as plain text, so check that all of them were replaced.
        assert term_files.isdisjoint(file.name for file in setup.home.rglob("*.term"))
    assert setup.files_with(SECRET.encode(), *bodies, ONE.encode() + b".jsonl") == []


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that cannot be caught")
@pytest.mark.parametrize("step", ["erase", "update", "Index.purge_deleted", "Maintenance.vacuum"])
def test_the_next_sync_completes_the_erasure_of_a_killed_process(setup: Setup, step: str) -> None:
    _write_secret_session(setup)
    Transcript(TWO, seed=2).user("another thing").write(setup.claude)
    with setup.open_history() as history:
        history.sync()
    bodies = setup.compressed_samples()
    script = (
        "import os, sys\nfrom backscroll.stores import indexer\n"
        "from backscroll.archive.maintenance.maintenance import Maintenance\n"
        "indexer.Maintenance = Maintenance\n"
        f"indexer.{step} = lambda *_: os.kill(os.getpid(), 9)\n"
        "from backscroll.cli import main; main()"
    )
    options = ["--home", setup.home, "--root", f"claude-code={setup.claude}"]
    process = subprocess.run([sys.executable, "-c", script, *options, "archive", "forget", ONE, "--yes"])
    assert process.returncode == -signal.SIGKILL
    with setup.open_history() as history:
        assert _ids(history) == {TWO}
        history.sync()
        assert _ids(history) == {TWO}
        assert history.search_sessions("thing").total == 1
    assert setup.files_with(SECRET.encode(), ONE.encode() + b".jsonl") == []
    with sqlite3.connect(setup.home / "archive.db") as db:
        assert db.execute("pragma freelist_count").fetchone() == (0,)
    db.close()
    assert set(bodies) & set(setup.compressed_samples()), "the other session is still there"
    assert not list(setup.home.glob("*-erase"))


def test_a_forgotten_session_does_not_come_back(setup: Setup) -> None:
    session = _write_secret_session(setup)
    with setup.open_history() as history:
        history.sync()
        history.archive_admin.forget(ONE)
        assert history.sync().new == 0  # type: ignore[union-attr]
        session.user("more").write(setup.claude)
        history.sync()
        with pytest.raises(SessionNotFoundError):
            history.find(ONE)
        assert history.search_sessions(SECRET).total == 0
    assert setup.files_with(SECRET.encode()) == []


def test_a_forgotten_session_does_not_come_back_from_another_folder(setup: Setup) -> None:
    session = _write_secret_session(setup)
    with setup.open_history() as history:
        history.sync()
        history.archive_admin.forget(ONE)
        path = next(setup.claude.rglob(f"{ONE}.jsonl"))
        moved = setup.claude / "projects" / "-elsewhere"
        moved.mkdir()
        (moved / path.name).write_bytes(path.read_bytes())
        Transcript(TWO, seed=2).user("hello").write(setup.claude)
        history.sync()
        assert _ids(history) == {TWO}
        assert session.session_id == ONE
        assert history.archive_admin.verify() == []
    assert setup.files_with(SECRET.encode()) == []


def test_prompts_of_a_forgotten_session_are_removed_from_the_log(setup: Setup) -> None:
    prompts = [
        Prompt(f"typed {SECRET}", AT, "/home/zoe/a", ONE),
        Prompt("typed hello", AT, "/home/zoe/a", TWO),
    ]
    log = write_prompts(setup.claude, prompts)
    with setup.open_history() as history:
        history.sync()
        result = history.archive_admin.forget(ONE)
        assert result.shared == (str(log),)
        write_prompts(setup.claude, [Prompt(f"again {SECRET}", AT, "/home/zoe/a", ONE), prompts[1]])
        history.sync()
        assert _ids(history) == {TWO}
        assert history.get_session(TWO).messages[0].content == "typed hello"
        write_prompts(setup.claude, [Prompt("typed later", AT, "/home/zoe/a", TWO)])
        assert history.sync().grew == 1
        assert [m.content for m in history.get_session(TWO).messages][-1] == "typed later"
    assert setup.files_with(SECRET.encode()) == []


def test_copied_messages_stay_when_their_original_session_is_forgotten(setup: Setup) -> None:
    first = Transcript(ONE, version="1.0.98", seed=1).user("shared words").assistant("yes")
    second = resume(first).user("own words").assistant("too")
    first.write(setup.claude)
    second.write(setup.claude)
    with setup.open_history() as history:
        history.sync()
        before = history.get_session(second.session_id)
        history.archive_admin.forget(ONE)
        after = history.get_session(second.session_id)
        assert [m.content for m in after.messages] == [m.content for m in before.messages]
        assert [m.copied_from for m in before.messages][:2] == [ONE, ONE]
        assert [m.copied_from for m in after.messages][:2] == [None, None]
        assert after.summary.interaction_count == 2
        assert [match.session_id for match in history.search_sessions("shared").data] == [second.session_id]
        history.sync()
        assert history.get_session(second.session_id) == after


def test_forgetting_a_session_keeps_the_others_in_the_same_database(setup: Setup) -> None:
    ide = cursor.Home(setup.cursor)
    for id_, words in ((ONE, SECRET), (TWO, "hello")):
        ide.composer([cursor.user(words), cursor.assistant(words)], id=id_, workspace=cursor.SHOP, name=words)
    ide.write()
    with setup.open_history() as history:
        history.sync()
        history.archive_admin.forget(ONE)
        assert _ids(history) == {TWO}
        ide.composer([cursor.user("new")], workspace=cursor.SHOP, name="third")
        ide.write()
        history.sync()
        assert ONE not in _ids(history)
        assert len(_ids(history)) == 2
    assert setup.files_with(SECRET.encode()) == []


def test_vacuum_returns_false_while_a_reader_prevents_the_erasure(setup: Setup) -> None:
    _write_secret_session(setup)
    with setup.open_history() as history:
        history.sync()
    archive = Archive(setup.home / "archive.db")
    reader = sqlite3.connect(setup.home / "archive.db", isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from message").fetchone()
    archive._db.execute("pragma busy_timeout = 50")
    archive.maintenance.forget(archive.sessions.find(ONE)[0])
    assert not archive.maintenance.vacuum()
    reader.close()
    assert archive.maintenance.vacuum()
    archive.close()


def test_source_files_are_not_changed(setup: Setup) -> None:
    _write_secret_session(setup)
    before = {path: path.read_bytes() for path in setup.claude.rglob("*") if path.is_file()}
    with setup.open_history() as history:
        history.sync()
        history.archive_admin.forget(ONE)
    assert {path: path.read_bytes() for path in setup.claude.rglob("*") if path.is_file()} == before


def test_a_subagent_cannot_be_forgotten_without_its_session(setup: Setup) -> None:
    _write_secret_session(setup)
    with setup.open_history() as history:
        history.sync()
        (agent,) = history.find(ONE).agent_ids
        with pytest.raises(UsageError, match=ONE):
            history.archive_admin.forget(agent)
        assert history.find(agent).message_count


def test_parallel_readers_skip_forgotten_sessions(setup: Setup, tmp_path: Path) -> None:
    _write_secret_session(setup)
    Transcript(TWO, seed=2).user("hello").write(setup.claude)
    units = tuple(named("claude-code").units(setup.claude))
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
    ("pattern", "path", "is_excluded"),
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
def test_a_pattern_excludes_a_folder_and_all_folders_below(
    setup: Setup, pattern: str, path: str, is_excluded: bool
) -> None:
    (setup.home / "config.toml").write_text(f"exclude = ['{pattern}']\n")
    Transcript(ONE, cwd=path).user("hello").write(setup.claude)
    with setup.open_history() as history:
        history.sync()
        assert (_ids(history) == set()) is is_excluded


def test_an_excluded_workspace_is_neither_archived_nor_found(setup: Setup) -> None:
    (setup.home / "config.toml").write_text('exclude = ["~/private"]\n')
    session = Transcript(ONE, cwd="/home/zoe/private").user(SECRET).assistant(SECRET)
    session.delegate(SECRET, SECRET)
    session.write(setup.claude)
    Transcript(TWO, cwd="/home/zoe/open", seed=2).user("hello").write(setup.claude)
    write_prompts(setup.claude, [Prompt(SECRET, AT, "/home/zoe/private", ONE)])
    with setup.open_history() as history:
        history.sync()
        assert _ids(history) == {TWO}
        session.user("more").write(setup.claude)
        assert history.sync().changed == 0  # type: ignore[union-attr]
        assert history.search_sessions(SECRET).total == 0
    assert setup.files_with(SECRET.encode()) == []
    (setup.home / "config.toml").unlink()
    with setup.open_history() as history:
        history.sync()
        prompts = [m.content for m in history.get_session(ONE).messages if m.role == "user"]
        assert prompts == [SECRET, "more"]
        assert len(history.find(ONE).agent_ids) == 1


def test_sessions_archived_before_their_exclusion_stay_until_they_are_forgotten(setup: Setup) -> None:
    session = Transcript(ONE, cwd="/home/zoe/private").user("first").assistant("yes")
    session.write(setup.claude)
    log = [Prompt("first", AT, "/home/zoe/private", TWO)]
    write_prompts(setup.claude, log)
    with setup.open_history() as history:
        history.sync()
    (setup.home / "config.toml").write_text('exclude = ["~/private"]\n')
    session.user("second").write(setup.claude)
    write_prompts(setup.claude, [Prompt("second", AT, "/home/zoe/private", TWO)])
    with setup.open_history() as history:
        history.sync()
        assert [(m.content, m.is_active) for m in history.get_session(ONE).messages] == [
            ("first", True),
            ("yes", True),
        ]
        assert [(m.content, m.is_active) for m in history.get_session(TWO).messages] == [("first", True)]
        assert history.archive_admin.verify() == []
        history.archive_admin.forget(ONE)
        assert _ids(history) == {TWO}


def test_only_appended_lines_are_read_from_a_log_with_excluded_prompts(setup: Setup) -> None:
    (setup.home / "config.toml").write_text('exclude = ["~/private"]\n')
    write_prompts(setup.claude, [Prompt("open", AT, "/home/zoe/open", TWO)])
    write_prompts(setup.claude, [Prompt(SECRET, AT, "/home/zoe/private", ONE)])
    with setup.open_history() as history:
        history.sync()
        for session, words, folder in (
            (TWO, "later", "open"),
            (ONE, SECRET, "private"),
            (TWO, "last", "open"),
        ):
            write_prompts(setup.claude, [Prompt(words, AT, f"/home/zoe/{folder}", session)])
            assert history.sync().grew == 1  # type: ignore[union-attr]
        assert [m.content for m in history.get_session(TWO).messages] == ["open", "later", "last"]
        assert _ids(history) == {TWO}
        assert history.archive_admin.verify() == []
    assert setup.files_with(SECRET.encode()) == []
    (setup.home / "config.toml").unlink()
    with setup.open_history() as history:
        history.sync()
        assert [m.content for m in history.get_session(ONE).messages] == [SECRET, SECRET]
        assert [m.content for m in history.get_session(TWO).messages] == ["open", "later", "last"]
        assert history.archive_admin.verify() == []


@pytest.mark.parametrize("text", ["exclude = 3", "exclude = [", 'exclude = [""]'])
def test_an_invalid_configuration_file_is_named_in_the_error(setup: Setup, text: str) -> None:
    (setup.home / "config.toml").write_text(text)
    with pytest.raises(UsageError, match=r"config\.toml"):
        setup.open_history().sync()

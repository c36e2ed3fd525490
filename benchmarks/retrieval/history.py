"""Synced history with the written sessions, the demo, the generated history and the noise."""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.builders.claude_code.bulk.history import write_history as write_claude_history

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.demo.project import Repository
from backscroll.testing.demo.sample_history import SampleHistory
from backscroll.testing.demo.session import DemoSession, session_id
from backscroll.testing.demo.writer import build_history
from benchmarks.retrieval.corpus import WrittenSession, load_sessions
from benchmarks.retrieval.noise import write_noise

_HOME = "/home/robin"
_ROOTS = {"claude-code": ".claude", "cursor": ".config/Cursor", "cursor-cli": ".cursor"}
_START = datetime(2026, 1, 12, 9, tzinfo=UTC)
_DAYS_BETWEEN_SESSIONS = 1.22
_GENERATED_SESSIONS = 250
_GENERATED_BYTES = 30_000_000
_GENERATED_SEED = 14
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^a-z])|(?<=。)")
_COMMANDS = ("git status --short", "git diff --stat", "ls")
_CLAUDE_VERSIONS = ("2.0.60", "2.1.38", "2.1.97", "2.1.224")


@contextmanager
def synced_corpus(*, scale: float = 1) -> Iterator[History]:
    """Write the corpus in a temporary folder, sync it and yield the open history."""
    with tempfile.TemporaryDirectory(prefix="backscroll-retrieval-") as name:
        folder = Path(name)
        write_corpus(folder, scale=scale)
        roots = [NamedRoot(source, folder / path) for source, path in _ROOTS.items()]
        with History(roots=roots, home=folder / "archive") as history:
            history.sync()
            yield history


def write_corpus(folder: Path, *, scale: float = 1) -> None:
    """Write all files below ``folder``. ``scale`` multiplies the number of sessions without an answer."""
    sessions = load_sessions()
    history = build_history(_HOME, folder)
    for workspace in sorted({session.workspace for session in sessions}):
        history.repositories.setdefault(workspace, Repository(_HOME, workspace))
    for number, session in enumerate(_spread(sessions)):
        _add_session(history, session, number)
    history.write()
    write_noise(history.claude_root, _HOME, sessions, scale=scale)
    write_claude_history(
        history.claude_root,
        sessions=max(round(_GENERATED_SESSIONS * scale), 1),
        seed=_GENERATED_SEED,
        bytes_target=round(_GENERATED_BYTES * scale),
    )


def archived_id(session: WrittenSession) -> str:
    """Return the id that a written session has in the archive."""
    return session_id(session.name)


def _spread(sessions: list[WrittenSession]) -> list[WrittenSession]:
    """Order the sessions by a hash, so that neighbours in a file are far apart in time."""
    return sorted(sessions, key=archived_id)


def _add_session(history: SampleHistory, session: WrittenSession, number: int) -> None:
    """Add a session to the history. Two of four are in Claude Code, one in Cursor, one in its CLI."""
    at = _START + timedelta(days=number * _DAYS_BETWEEN_SESSIONS, hours=number % 8)
    written = _new_session(history, session, number, at)
    for turn in session.parse_turns():
        match turn.kind:
            case "prompt":
                written.prompt(turn.text)
            case "answer":
                _add_answer(written, turn.text)
            case "command":
                written.shell(turn.text, turn.output)


def _add_answer(written: DemoSession, text: str) -> None:
    """Add an answer as assistants write it: each sentence but the last is followed by a tool call."""
    *first, last = filter(None, _SENTENCE_END.split(text))
    for number, sentence in enumerate(first):
        written.note(sentence)
        written.shell(_COMMANDS[number % len(_COMMANDS)])
    written.reply(last)


def _new_session(history: SampleHistory, session: WrittenSession, number: int, at: datetime) -> DemoSession:
    match number % 4:
        case 2:
            return history.cursor_session(session.name, session.title, at, model="claude-opus-4-8")
        case 3:
            return history.cursor_cli_session(session.name, session.title, at, model="claude-opus-4-8")
    version = _CLAUDE_VERSIONS[number // 4 % len(_CLAUDE_VERSIONS)]
    return history.claude_session(session.name, session.title, at, version=version, model="claude-opus-4-8")

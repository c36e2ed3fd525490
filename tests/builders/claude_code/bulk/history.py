"""Write a large history with the sizes and irregularities of published ones."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path
from random import Random

from backscroll.testing.claude_code.project_key import project_key
from tests.builders.claude_code.bulk.session import SessionGenerator, new_uuid
from tests.builders.claude_code.bulk.size_distribution import SizeDistribution
from tests.builders.claude_code.bulk.text_pool import TextPools
from tests.builders.claude_code.bulk.tool_results import ToolCallGenerator

RECORD_COUNTS = SizeDistribution(
    (0, 1), (0.1, 1), (0.5, 34), (0.9, 317), (0.99, 977), (0.999, 2572), (1, 5000)
)

# Shares of all sessions.
_NO_MESSAGES_SHARE = 1 / 8
_TWO_IDS_SHARE = 1 / 7 / 0.7  # of sessions with more than 4 records
_FOREIGN_PARENT_SHARE = 1 / 30
_COPY_SHARE = 0.11  # of sessions that have an earlier one in the same project
_COMPACTED_SHARE = 257 / 2900

_MAX_SUBAGENT_FILES = 4  # per session
_SESSIONS_PER_TOPIC = 1000
_BUFFER_BYTES = 4 << 20
_COPIED_PART = 0.8  # of a copy; the rest continues the conversation
_LONGEST_TEXT_BYTES = 2_200_000

# Shares of projects whose prompts, answers and comments are not in English, in a multilingual history.
_LANGUAGE_SHARES = {
    "portuguese": 0.05,
    "french": 0.03,
    "german": 0.03,
    "russian": 0.015,
    "chinese": 0.08,
    "japanese": 0.03,
}

_START = datetime(2025, 6, 2, 8, tzinfo=UTC)
_END = datetime(2026, 10, 30, 18, tzinfo=UTC)
_VERSIONS = (
    "0.2.122",
    "1.0.64",
    "1.0.98",
    "1.0.117",
    "2.0.5",
    "2.0.31",
    "2.0.60",
    "2.1.9",
    "2.1.38",
    "2.1.97",
    "2.1.212",
)
_PROJECT_NAMES = (
    "ferry",
    "harbour",
    "ticket-office",
    "timetable",
    "lighthouse",
    "tide_tables",
    "web.site",
    "crew",
)


@dataclass(frozen=True)
class WrittenHistory:
    """Ids and totals of a written history."""

    sessions: tuple[str, ...]  # ids of the sessions with messages
    files: int
    records: int
    size: int  # bytes


def write_history(
    root: Path,
    *,
    sessions: int,
    seed: int = 0,
    bytes_target: int | None = None,
    is_multilingual: bool = False,
) -> WrittenHistory:
    """Write session files below ``root``, with the sizes and irregularities of real histories.

    The average file has about 400 KB. With ``bytes_target``, the conversations are
    longer or shorter so that the total is about this size. The first prompt of the n-th
    session contains ``ticket-<n>`` with six digits, so that a search can find it.

    A multilingual history has projects in several languages, box drawing characters in command output,
    and one text of two million characters.
    """
    return _HistoryWriter(root, sessions, seed, bytes_target, is_multilingual=is_multilingual).write()


class _HistoryWriter:
    def __init__(
        self, root: Path, sessions: int, seed: int, bytes_target: int | None, *, is_multilingual: bool
    ) -> None:
        self.is_multilingual, self.needs_long_text = is_multilingual, is_multilingual
        self.root, self.sessions, self.target = root, sessions, bytes_target
        self.rng = Random(f"history:{seed}")
        expected_bytes = (
            min(sessions, _SESSIONS_PER_TOPIC) * 400_000 if bytes_target is None else bytes_target
        )
        self.seed, self.text_size = seed, min(max(expected_bytes // 16, 1 << 20), 8 << 20)
        self.files = self.records = self.size = 0
        self.latest: dict[bytes, tuple[bytes, Path]] = {}  # id and file of the last session by project
        self.projects = [
            f"/home/zoe/{_PROJECT_NAMES[n % 8]}{n // 8 or ''}" for n in range(max(1, sessions // 15))
        ]

    def write(self) -> WrittenHistory:
        rng = self.rng
        shares = [rng.random() for _ in range(self.sessions)]
        counts = [RECORD_COUNTS.quantile(max(share, _NO_MESSAGES_SHARE)) for share in shares]
        remaining = sum(counts)
        ids: list[str] = []
        for index, (share, count) in enumerate(zip(shares, counts, strict=True)):
            if index % _SESSIONS_PER_TOPIC == 0:
                self.topic = index // _SESSIONS_PER_TOPIC
                self.tool_calls: dict[str | None, ToolCallGenerator] = {}  # by language
            budget = None if self.target is None else (self.target - self.size) * count // max(remaining, 1)
            remaining -= count
            at = _START + (_END - _START) * index / self.sessions
            version = _VERSIONS[index * len(_VERSIONS) // self.sessions]
            if share < _NO_MESSAGES_SHARE and (self.target is None or remaining > 0):
                self._write_state_file(self._new_session(version, at))
                continue
            ids.append(self._write_session(self._new_session(version, at), index, count, budget))
        return WrittenHistory(tuple(ids), self.files, self.records, self.size)

    def _new_session(self, version: str, at: datetime) -> SessionGenerator:
        rng = self.rng
        project = int(rng.random() ** 2 * len(self.projects))
        cwd = self.projects[project]
        tool_calls = self._tool_calls(_project_language(project) if self.is_multilingual else None)
        return SessionGenerator(
            rng,
            tool_calls.text,
            tool_calls,
            session_id=new_uuid(rng).decode(),
            version=version,
            cwd=cwd,
            start=at + timedelta(minutes=rng.randrange(600)),
        )

    def _tool_calls(self, language: str | None) -> ToolCallGenerator:
        """Return the generator for a language. Text that is not English is a small part of the history."""
        if language not in self.tool_calls:
            size = self.text_size if language is None else self.text_size // 8
            text = TextPools(
                self.seed, size, self.topic, is_multilingual=self.is_multilingual, language=language
            )
            self.tool_calls[language] = ToolCallGenerator(text)
        return self.tool_calls[language]

    def _write_state_file(self, session: SessionGenerator) -> None:
        """Write a session file without messages."""
        count = 1 if self.rng.random() < 0.9 else self.rng.randrange(2, 5)
        self._write_file(session, self._path(session), (session.state_line() for _ in range(count)))

    def _write_session(self, session: SessionGenerator, index: int, count: int, budget: int | None) -> str:
        """Write a session and its subagents. Return its id."""
        rng, id_ = self.rng, session.session_id.decode()
        path = self._path(session)
        copied = self._copied_lines(session, count, budget) if rng.random() < _COPY_SHARE else []
        if rng.random() < _FOREIGN_PARENT_SHARE:
            session.leaf = new_uuid(rng)
        lines = session.lines(b"ticket-%06d: " % index)
        if count > 4 and rng.random() < _TWO_IDS_SHARE:
            lines = self._with_earlier_id(session, lines, id_, rng.randrange(1, count - 2))
        if rng.random() < _COMPACTED_SHARE:
            lines = _insert_after(lines, session.compaction_lines(), rng.randrange(1, count + 1))
        if self.needs_long_text and index >= self.sessions // 2 and count > 20:
            self.needs_long_text = False
            lines = _insert_after(lines, session.pasted_text(_LONGEST_TEXT_BYTES), 3)
        if budget is None:
            lines = islice(lines, count - len(copied))
        else:
            lines = _limit_bytes(lines, budget - sum(map(len, copied)))
        self._write_file(session, path, chain(copied, lines))
        session.set_session_id(id_)
        folder = (
            path.parent if session.release.subagent_layout == "flat" else path.with_suffix("") / "subagents"
        )
        for agent, prompt in session.agents[:_MAX_SUBAGENT_FILES]:
            self._write_file(
                session, folder / f"agent-{agent.decode()}.jsonl", session.subagent_lines(agent, prompt)
            )
        return id_

    def _with_earlier_id(
        self, session: SessionGenerator, lines: Iterator[bytes], own_id: str, count: int
    ) -> Iterator[bytes]:
        """Give the first lines the id of an earlier session, as a resume does."""
        session.set_session_id(new_uuid(self.rng).decode())
        yield from islice(lines, count)
        session.set_session_id(own_id)
        yield from lines

    def _copied_lines(self, session: SessionGenerator, count: int, budget: int | None) -> list[bytes]:
        """Return lines of the last session of the project, as a resume or a fork copies them."""
        if session.cwd not in self.latest:
            return []
        earlier_id, path = self.latest[session.cwd]
        lines = path.read_bytes().splitlines()[: int(count * _COPIED_PART)]
        if budget is not None:
            lines = list(_limit_bytes(iter(lines), int(budget * _COPIED_PART)))
        old, new = b'"sessionId":"%b"' % earlier_id, b'"sessionId":"%b"' % session.session_id
        if not session.release.is_at_least("2.0.0"):
            return [line.replace(old, new) for line in lines]
        origin = b',"forkedFrom":{"sessionId":"%b"}}' % earlier_id
        return [line.replace(old, new)[:-1] + origin for line in lines]

    def _path(self, session: SessionGenerator) -> Path:
        return (
            self.root
            / "projects"
            / project_key(session.cwd.decode())
            / f"{session.session_id.decode()}.jsonl"
        )

    def _write_file(self, session: SessionGenerator, path: Path, lines: Iterator[bytes]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        buffer: list[bytes] = []
        buffered_bytes = 0
        with path.open("wb") as file:
            for line in lines:
                buffer.append(line)
                buffered_bytes += len(line) + 1
                self.records += 1
                if buffered_bytes > _BUFFER_BYTES:
                    self.size += file.write(b"\n".join((*buffer, b"")))
                    buffer, buffered_bytes = [], 0
            self.size += file.write(b"\n".join((*buffer, b"")))
        self.files += 1
        if session.leaf is not None and session.agent_id is None:
            self.latest[session.cwd] = session.session_id, path
        os.utime(path, (session.now, session.now))


def _project_language(project: int) -> str | None:
    """Return the language of a project; None for English.

    Multiples of the golden ratio spread every language evenly over the projects.
    """
    position = project * 0.618034 % 1
    for language, share in _LANGUAGE_SHARES.items():
        position -= share
        if position < 0:
            return language
    return None


def _limit_bytes(lines: Iterator[bytes], budget: int) -> Iterator[bytes]:
    """Yield lines until their size exceeds the budget, at least one."""
    for line in lines:
        yield line
        budget -= len(line) + 1
        if budget <= 0:
            return


def _insert_after(lines: Iterator[bytes], inserted: Iterator[bytes], count: int) -> Iterator[bytes]:
    """Insert lines after the first ``count`` lines."""
    yield from islice(lines, count)
    yield from inserted
    yield from lines

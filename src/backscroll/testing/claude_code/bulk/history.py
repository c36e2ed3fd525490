"""A whole history in bulk, shaped like the published ones."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path
from random import Random

from backscroll.testing.claude_code.bulk.session import Bulk, new_uuid
from backscroll.testing.claude_code.bulk.size_distribution import Curve
from backscroll.testing.claude_code.bulk.text_pool import Text
from backscroll.testing.claude_code.bulk.tool_results import Answers
from backscroll.testing.claude_code.project_key import project_key

__all__ = ["Written", "history"]

RECORDS = Curve((0, 1), (0.1, 1), (0.5, 34), (0.9, 317), (0.99, 977), (0.999, 2572), (1, 5000))

_WITHOUT_MESSAGE = 1 / 8
_TWO_IDS = 1 / 7 / 0.7  # of those that have more than a few records
_PARENT_ELSEWHERE = 1 / 30
_COPIED = 1 / 25
_COMPACTED = 257 / 2900
_AGENTS = 4  # files of subagents that a session has at most

_CHAPTER = 1000  # sessions, after which the work is about something else
_CHUNK = 4 << 20
_KEPT = 200  # lines of a session that a later one may repeat

_FIRST = datetime(2025, 6, 2, 8, tzinfo=UTC)
_LAST = datetime(2026, 10, 30, 18, tzinfo=UTC)
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
_PLACES = ("ferry", "harbour", "ticket-office", "timetable", "lighthouse", "tide_tables", "web.site", "crew")


@dataclass(frozen=True)
class Written:
    """What was written: the ids of the sessions that have messages, and how much there is."""

    sessions: tuple[str, ...]
    files: int
    records: int
    size: int


def history(root: Path, *, sessions: int, seed: int = 0, bytes_target: int | None = None) -> Written:
    """Write that many session files below ``root``, with the sizes and the mix of real histories.

    By themselves they come to some 400 KB each; ``bytes_target`` stretches or
    shrinks the conversations until their sum is about that. The first prompt of
    the n-th session names ``ticket-<n>`` in six digits, so that each can be found.
    """
    return _Writer(root, sessions, seed, bytes_target).write()


class _Writer:
    def __init__(self, root: Path, sessions: int, seed: int, bytes_target: int | None) -> None:
        self.root, self.sessions, self.target = root, sessions, bytes_target
        self.rng = Random(f"history:{seed}")
        expected = min(sessions, _CHAPTER) * 400_000 if bytes_target is None else bytes_target
        self.seed, self.text_size = seed, min(max(expected // 16, 1 << 20), 8 << 20)
        self.files = self.records = self.size = 0
        self.kept: tuple[str, list[bytes]] | None = None
        self.projects = [f"/home/zoe/{_PLACES[n % 8]}{n // 8 or ''}" for n in range(max(1, sessions // 15))]

    def write(self) -> Written:
        rng = self.rng
        shares = [rng.random() for _ in range(self.sessions)]
        counts = [RECORDS.at(max(share, _WITHOUT_MESSAGE)) for share in shares]
        left = sum(counts)
        ids: list[str] = []
        for number, (share, count) in enumerate(zip(shares, counts, strict=True)):
            if number % _CHAPTER == 0:
                self.text = Text(self.seed, self.text_size, number // _CHAPTER)
                self.answers = Answers(self.text)
            budget = None if self.target is None else (self.target - self.size) * count // max(left, 1)
            left -= count
            at = _FIRST + (_LAST - _FIRST) * number / self.sessions
            version = _VERSIONS[number * len(_VERSIONS) // self.sessions]
            if share < _WITHOUT_MESSAGE and (self.target is None or left > 0):
                self._titles(self._session(version, at))
                continue
            ids.append(self._talk(self._session(version, at), number, count, budget))
        return Written(tuple(ids), self.files, self.records, self.size)

    def _session(self, version: str, at: datetime) -> Bulk:
        rng = self.rng
        cwd = self.projects[int(rng.random() ** 2 * len(self.projects))]
        return Bulk(
            rng,
            self.text,
            self.answers,
            session_id=new_uuid(rng).decode(),
            version=version,
            cwd=cwd,
            start=at + timedelta(minutes=rng.randrange(600)),
        )

    def _titles(self, bulk: Bulk) -> None:
        """A file without a message."""
        count = 1 if self.rng.random() < 0.9 else self.rng.randrange(2, 5)
        self._store(bulk, self._path(bulk), (bulk.state() for _ in range(count)))

    def _talk(self, bulk: Bulk, number: int, count: int, budget: int | None) -> str:
        rng, id_ = self.rng, bulk.session_id.decode()
        path = self._path(bulk)
        begin = self._repeated(bulk)[: count // 2] if count > 20 and rng.random() < _COPIED else []
        if rng.random() < _PARENT_ELSEWHERE:
            bulk.leaf = new_uuid(rng)
        said = bulk.lines(b"ticket-%06d: " % number)
        if count > 4 and rng.random() < _TWO_IDS:
            said = self._renamed(bulk, said, id_, rng.randrange(1, count - 2))
        if rng.random() < _COMPACTED:
            said = _inserted(said, bulk.compaction(), rng.randrange(1, count + 1))
        if budget is None:
            said = islice(said, count - len(begin))
        else:
            said = _within(said, budget - sum(map(len, begin)))
        self._store(bulk, path, chain(begin, said))
        bulk.belong_to(id_)
        folder = path.parent if bulk.release.subagent_layout == "flat" else path.with_suffix("") / "subagents"
        for agent, prompt in bulk.agents[:_AGENTS]:
            self._store(bulk, folder / f"agent-{agent.decode()}.jsonl", bulk.work(agent, prompt))
        return id_

    def _renamed(self, bulk: Bulk, lines: Iterator[bytes], own: str, count: int) -> Iterator[bytes]:
        """The first lines under the id of an earlier session, which a resume left behind."""
        bulk.belong_to(new_uuid(self.rng).decode())
        yield from islice(lines, count)
        bulk.belong_to(own)
        yield from lines

    def _repeated(self, bulk: Bulk) -> list[bytes]:
        """Lines of an earlier session, as a resume or a fork repeats them."""
        if self.kept is None:
            return []
        earlier, lines = self.kept
        old, new = b'"sessionId":"%b"' % earlier.encode(), b'"sessionId":"%b"' % bulk.session_id
        if not bulk.release.is_at_least("2.0.0"):
            return [line.replace(old, new) for line in lines]
        origin = b',"forkedFrom":{"sessionId":"%b"}}' % earlier.encode()
        return [line.replace(old, new)[:-1] + origin for line in lines]

    def _path(self, bulk: Bulk) -> Path:
        return self.root / "projects" / project_key(bulk.cwd.decode()) / f"{bulk.session_id.decode()}.jsonl"

    def _store(self, bulk: Bulk, path: Path, lines: Iterator[bytes]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        kept: list[bytes] = []
        pending: list[bytes] = []
        held = 0
        with path.open("wb") as file:
            for line in lines:
                pending.append(line)
                held += len(line) + 1
                self.records += 1
                if len(kept) < _KEPT:
                    kept.append(line)
                if held > _CHUNK:
                    self.size += file.write(b"\n".join((*pending, b"")))
                    pending, held = [], 0
            self.size += file.write(b"\n".join((*pending, b"")))
        self.files += 1
        if len(kept) > 4 and bulk.agent_id is None:
            self.kept = bulk.session_id.decode(), kept
        os.utime(path, (bulk.now, bulk.now))


def _within(lines: Iterator[bytes], budget: int) -> Iterator[bytes]:
    """At least one line, and then as many as the bytes allow."""
    for line in lines:
        yield line
        budget -= len(line) + 1
        if budget <= 0:
            return


def _inserted(lines: Iterator[bytes], more: Iterator[bytes], after: int) -> Iterator[bytes]:
    """Some lines, more, and then the rest."""
    yield from islice(lines, after)
    yield from more
    yield from lines

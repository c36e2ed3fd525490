"""Tests for the damage that the builders do to transcripts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from backscroll.testing.claude_code import Transcript, tool_calls
from tests.builders.claude_code.damage import DAMAGE, insert_giant_line
from tests.builders.claude_code.odd_records import ODD_RECORDS

SESSION = "5e551011-0000-4000-8000-0000000000aa"
TRANSCRIPT = (
    Transcript(SESSION)
    .user("café?")
    .run(tool_calls.bash("ls", "a"))
    .assistant("yes")
    .user("more")
    .assistant("no")
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return TRANSCRIPT.write(tmp_path)


def is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def valid(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().split(b"\n") if is_record(line)]


def invalid(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().split(b"\n") if line and not is_record(line)]


LINES = TRANSCRIPT.lines().splitlines()

# For each kind of damage, a check of the damaged file.
CHECKS: dict[str, Callable[[Path], bool]] = {
    "partial last line": lambda path: valid(path) == LINES[:-1] and len(invalid(path)) == 1,
    "no newline at the end": lambda path: path.read_bytes() + b"\n" == TRANSCRIPT.lines(),
    "partial line before a record": lambda path: invalid(path)[0].startswith(
        b'{"type":"pr-link","prNu{"parentUuid"'
    ),
    "two records on one line": lambda path: b"}{" in invalid(path)[0] and len(valid(path)) == len(LINES) - 2,
    "line of NUL": lambda path: valid(path) == LINES and invalid(path) == [b"\0" * 512],
    "NUL before a record": lambda path: invalid(path)[0].lstrip(b"\0") in LINES,
    "NUL at the end": lambda path: path.read_bytes() == TRANSCRIPT.lines() + b"\0" * 3400,
    "malformed middle line": lambda path: len(invalid(path)) == 1 and valid(path)[-1] == LINES[-1],
    "lone surrogate": lambda path: b"\\ud83d here" in valid(path)[-1] and valid(path)[:-1] == LINES,
    "invalid UTF-8": lambda path: b"caf\xc3 and" in invalid(path)[0] and valid(path) == LINES,
    "giant line": lambda path: max(map(len, valid(path))) > 8_000_000,
    "empty file": lambda path: path.stat().st_size == 0,
    "blank lines": lambda path: valid(path) == LINES and [line.strip() for line in invalid(path)] == [b""],
    "byte order mark": lambda path: path.read_bytes() == b"\xef\xbb\xbf" + TRANSCRIPT.lines(),
    "CRLF": lambda path: path.read_bytes().count(b"\r\n") == len(LINES),
    "lines that are not objects": lambda path: valid(path) == LINES and b"null" in invalid(path),
    "duplicate uuid": lambda path: len(valid(path)) == len(LINES) + 1 and set(valid(path)) == set(LINES),
    "own parent": lambda path: json.loads(valid(path)[-1])["parentUuid"] == json.loads(LINES[-1])["uuid"],
    "parent cycle": lambda path: json.loads(valid(path)[0])["parentUuid"] == json.loads(LINES[-1])["uuid"],
    "child before parent": lambda path: (
        json.loads(valid(path)[0])["parentUuid"] == json.loads(valid(path)[1])["uuid"]
    ),
    "missing parent": lambda path: sum(b'"parentUuid":"dead0000' in line for line in valid(path)) == 1,
    "truncated in place": lambda path: valid(path) == LINES[:-1],
    "replaced by another": lambda path: (
        path.stat().st_size == len(TRANSCRIPT.lines()) and valid(path) != LINES
    ),
    "foreign session ids": lambda path: len({json.loads(line)["sessionId"] for line in valid(path)}) == 2,
    "invalid times": lambda path: "timestamp" not in json.loads(valid(path)[-1]),
    "only state lines": lambda path: all(b'"uuid"' not in line for line in valid(path)) and bool(valid(path)),
    "unreadable": lambda path: path.stat().st_mode & 0o777 == 0,
    "odd types and hostile text": lambda path: valid(path)[: len(LINES)] == LINES,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_each_kind_of_damage_has_its_effect(name: str, path: Path) -> None:
    inode = path.stat().st_ino
    DAMAGE[name](path)
    assert CHECKS[name](path)
    assert (path.stat().st_ino != inode) is (name == "replaced by another")


@pytest.mark.parametrize(
    ("name", "lost"),
    [("partial last line", 1), ("line of NUL", 0), ("empty file", len(LINES)), ("truncated in place", 1)],
)
def test_damage_returns_the_number_of_lost_records(name: str, lost: int, path: Path) -> None:
    assert DAMAGE[name](path) == lost


def test_a_giant_line_has_the_given_size(path: Path) -> None:
    insert_giant_line(path, 50_000)
    assert 50_000 < max(map(len, valid(path))) < 51_000


def test_all_odd_records_differ() -> None:
    records = [json.dumps(build(SESSION)) for build in ODD_RECORDS.values()]
    assert len(set(records)) == len(records) > 30


def test_a_lone_surrogate_is_written_as_an_escape(tmp_path: Path) -> None:
    path = Transcript("s").user("half \ud83d of it").write(tmp_path)
    assert b"half \\ud83d of it" in path.read_bytes()

"""The damage done to transcripts is the damage that was meant."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from backscroll.testing.claude_code import DAMAGE, ODDITIES, Transcript, tool_calls
from backscroll.testing.claude_code.damage import giant_line

SESSION = "5e551011-0000-4000-8000-0000000000aa"
WHOLE = (
    Transcript(SESSION)
    .user("café?")
    .run(tool_calls.bash("ls", "a"))
    .assistant("yes")
    .user("more")
    .assistant("no")
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return WHOLE.write(tmp_path)


def is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def good(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().split(b"\n") if is_record(line)]


def bad(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().split(b"\n") if line and not is_record(line)]


LINES = WHOLE.lines().splitlines()

# What is to be seen in the file afterwards.
SEEN: dict[str, Callable[[Path], bool]] = {
    "partial last line": lambda path: good(path) == LINES[:-1] and len(bad(path)) == 1,
    "no newline at the end": lambda path: path.read_bytes() + b"\n" == WHOLE.lines(),
    "stub glued to a record": lambda path: bad(path)[0].startswith(b'{"type":"pr-link","prNu{"parentUuid"'),
    "records glued together": lambda path: b"}{" in bad(path)[0] and len(good(path)) == len(LINES) - 2,
    "line of NUL": lambda path: good(path) == LINES and bad(path) == [b"\0" * 512],
    "NUL before a record": lambda path: bad(path)[0].lstrip(b"\0") in LINES,
    "NUL at the end": lambda path: path.read_bytes() == WHOLE.lines() + b"\0" * 3400,
    "malformed middle line": lambda path: len(bad(path)) == 1 and good(path)[-1] == LINES[-1],
    "lone surrogate": lambda path: b"\\ud83d here" in good(path)[-1] and good(path)[:-1] == LINES,
    "cut multibyte": lambda path: b"caf\xc3 and" in bad(path)[0] and good(path) == LINES,
    "giant line": lambda path: max(map(len, good(path))) > 8_000_000,
    "empty file": lambda path: path.stat().st_size == 0,
    "blank lines": lambda path: good(path) == LINES and [line.strip() for line in bad(path)] == [b""],
    "byte order mark": lambda path: path.read_bytes() == b"\xef\xbb\xbf" + WHOLE.lines(),
    "CRLF": lambda path: path.read_bytes().count(b"\r\n") == len(LINES),
    "lines that are no objects": lambda path: good(path) == LINES and b"null" in bad(path),
    "duplicate uuid": lambda path: len(good(path)) == len(LINES) + 1 and set(good(path)) == set(LINES),
    "own parent": lambda path: json.loads(good(path)[-1])["parentUuid"] == json.loads(LINES[-1])["uuid"],
    "circle of parents": lambda path: (
        json.loads(good(path)[0])["parentUuid"] == json.loads(LINES[-1])["uuid"]
    ),
    "child before parent": lambda path: (
        json.loads(good(path)[0])["parentUuid"] == json.loads(good(path)[1])["uuid"]
    ),
    "missing parent": lambda path: sum(b'"parentUuid":"dead0000' in line for line in good(path)) == 1,
    "shrunk in place": lambda path: good(path) == LINES[:-1],
    "replaced by another": lambda path: path.stat().st_size == len(WHOLE.lines()) and good(path) != LINES,
    "foreign session ids": lambda path: len({json.loads(line)["sessionId"] for line in good(path)}) == 2,
    "bad times": lambda path: "timestamp" not in json.loads(good(path)[-1]),
    "only state lines": lambda path: all(b'"uuid"' not in line for line in good(path)) and bool(good(path)),
    "unreadable": lambda path: path.stat().st_mode & 0o777 == 0,
    "odd types and hostile text": lambda path: good(path)[: len(LINES)] == LINES,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_file_is_damaged_as_said(name: str, path: Path) -> None:
    inode = path.stat().st_ino
    DAMAGE[name](path)
    assert SEEN[name](path)
    assert (path.stat().st_ino != inode) is (name == "replaced by another")


@pytest.mark.parametrize(
    ("name", "lost"),
    [("partial last line", 1), ("line of NUL", 0), ("empty file", len(LINES)), ("shrunk in place", 1)],
)
def test_damage_says_how_many_records_are_lost(name: str, lost: int, path: Path) -> None:
    assert DAMAGE[name](path) == lost


def test_a_giant_line_is_as_long_as_asked_for(path: Path) -> None:
    giant_line(path, 50_000)
    assert 50_000 < max(map(len, good(path))) < 51_000


def test_every_oddity_is_another_record() -> None:
    made = [json.dumps(odd(SESSION)) for odd in ODDITIES.values()]
    assert len(set(made)) == len(made) > 30

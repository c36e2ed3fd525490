"""Break a transcript in every way that real ones were found broken.

Each function changes the file at a path and returns how many of the records
that were in it nobody can read any more. Everything else must still be read.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from backscroll.testing.claude_code.blocks import Record, encode
from backscroll.testing.claude_code.odd_records import ODDITIES

__all__ = ["DAMAGE", "Damage", "giant_line"]

Damage = Callable[[Path], int]

_STUB = b'{"type":"pr-link","prNu'
_NOT_RECORDS = (b"null", b"[1,2]", b"42", b'"text"', b"true")


def cut_last_line(path: Path) -> int:
    """The writer was killed in the middle of the last line."""
    lines = _lines(path)
    lines[-1] = lines[-1][: len(lines[-1]) // 2]
    path.write_bytes(b"\n".join(lines))
    return 1


def drop_last_newline(path: Path) -> int:
    """The last line is whole and lacks only its end."""
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    return 0


def glue_to_stub(path: Path) -> int:
    """A line that broke off, and the next record right behind it."""
    return _at_middle(path, lambda line: [_STUB + line])


def glue_records(path: Path) -> int:
    """Two records on one line, where a restored file had no final newline."""
    lines = _lines(path)
    middle = len(lines) // 2
    lines[middle - 1 : middle + 1] = [lines[middle - 1] + lines[middle]]
    return _store(path, lines)


def insert_nul_line(path: Path) -> int:
    """A crash left a run of NUL bytes as a line of its own."""
    return _at_middle(path, lambda line: [b"\0" * 512, line])


def prefix_nuls(path: Path) -> int:
    """A crash left NUL bytes in front of a record."""
    return _at_middle(path, lambda line: [b"\0" * 300 + line])


def append_nuls(path: Path) -> int:
    """A crash left NUL bytes where the file should have grown."""
    path.write_bytes(path.read_bytes() + b"\0" * 3400)
    return 0


def break_middle_line(path: Path) -> int:
    """A line that is no JSON, with good ones before and after it."""
    return _at_middle(path, lambda line: [line[: len(line) // 2]], lost=1)


def halve_surrogate(path: Path) -> int:
    """Half of an emoji, as an escape that strict parsers refuse."""
    return _in_text(path, b"half an emoji \\ud83d here")


def cut_multibyte(path: Path) -> int:
    """A character cut in the middle of its bytes."""
    return _in_text(path, b"caf\xc3 and more \xff")


def giant_line(path: Path, size: int = 8_000_000) -> int:
    """One more record, of that many characters."""
    return _in_text(path, (b"all work and no play " * (size // 21 + 1))[:size], whole=True)


def empty(path: Path) -> int:
    """Nothing is left; the file is."""
    lost = len(_lines(path))
    path.write_bytes(b"")
    return lost


def blank_lines(path: Path) -> int:
    """Lines of nothing but white space."""
    return _at_middle(path, lambda line: [b"", b"  \t ", line, b""])


def add_bom(path: Path) -> int:
    """A byte order mark at the very beginning."""
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    return 0


def end_lines_with_crlf(path: Path) -> int:
    """Line ends of another system."""
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    return 0


def insert_non_objects(path: Path) -> int:
    """Lines that are JSON and no records."""
    return _at_middle(path, lambda line: [*_NOT_RECORDS, line])


def repeat_uuid(path: Path) -> int:
    """The same record twice."""
    return _at_middle(path, lambda line: [line, line])


def parent_itself(path: Path) -> int:
    """A line that names itself as its parent."""
    return _on_chain(path, lambda chain: chain[-1].update(parentUuid=chain[-1]["uuid"]))


def close_circle(path: Path) -> int:
    """The first line of the chain names the last one as its parent."""
    return _on_chain(path, lambda chain: chain[0].update(parentUuid=chain[-1]["uuid"]))


def put_child_first(path: Path) -> int:
    """A line stands before the one it names as its parent."""
    lines = _lines(path)
    records = [json.loads(line) for line in lines]
    child = next(n for n in range(1, len(records)) if _follows(records[n], records[n - 1]))
    lines[child - 1], lines[child] = lines[child], lines[child - 1]
    return _store(path, lines)


def lose_parent(path: Path) -> int:
    """A line names a parent that is nowhere."""
    nowhere = "dead0000-0000-4000-8000-000000000000"
    return _on_chain(path, lambda chain: chain[len(chain) // 2].update(parentUuid=nowhere))


def shrink(path: Path) -> int:
    """The last line was taken away again, in place."""
    lines = _lines(path)
    with path.open("r+b") as file:
        file.truncate(sum(len(line) + 1 for line in lines[:-1]))
    return 1


def rewrite(path: Path) -> int:
    """Another file of the same name and size took its place: the first line now says something else."""
    before = path.read_bytes()
    spot = before.index(b'"timestamp":"20') + len(b'"timestamp":"20')
    beside = path.with_suffix(".new")
    beside.write_bytes(before[:spot] + b"19" + before[spot + 2 :])
    beside.replace(path)
    return 0


def change_session_ids(path: Path) -> int:
    """Half of the lines say that they belong to another session."""
    other = "0badc0de-0000-4000-8000-000000000000"
    return _on_chain(path, lambda chain: [one.update(sessionId=other) for one in chain[: len(chain) // 2]])


def spoil_times(path: Path) -> int:
    """Times that are missing, empty, no times, or seconds since 1970."""

    def spoil(chain: list[Record]) -> None:
        for record, time in zip(
            chain, ("", "yesterday", 1_790_000_000, 1_790_000_000_000, None), strict=False
        ):
            record["timestamp"] = time
        chain[-1].pop("timestamp")

    return _on_chain(path, spoil)


def leave_only_state(path: Path) -> int:
    """Titles and snapshots remain, and no message."""
    lines = [line for line in _lines(path) if b'"uuid":' not in line]
    lost = len(_lines(path)) - len(lines)
    _store(
        path, [*lines, encode({"type": "custom-title", "customTitle": "Left over", "sessionId": path.stem})]
    )
    return lost


def forbid(path: Path) -> int:
    """Nobody may read the file (the superuser still can)."""
    lost = len(_lines(path))
    path.chmod(0)
    return lost


def add_oddities(path: Path) -> int:
    """Records whose fields have other types than they should, and text that means harm."""
    return _store(path, _lines(path) + [encode(odd(path.stem)) for odd in ODDITIES.values()])


DAMAGE: dict[str, Damage] = {
    "partial last line": cut_last_line,
    "no newline at the end": drop_last_newline,
    "stub glued to a record": glue_to_stub,
    "records glued together": glue_records,
    "line of NUL": insert_nul_line,
    "NUL before a record": prefix_nuls,
    "NUL at the end": append_nuls,
    "malformed middle line": break_middle_line,
    "lone surrogate": halve_surrogate,
    "cut multibyte": cut_multibyte,
    "giant line": giant_line,
    "empty file": empty,
    "blank lines": blank_lines,
    "byte order mark": add_bom,
    "CRLF": end_lines_with_crlf,
    "lines that are no objects": insert_non_objects,
    "duplicate uuid": repeat_uuid,
    "own parent": parent_itself,
    "circle of parents": close_circle,
    "child before parent": put_child_first,
    "missing parent": lose_parent,
    "shrunk in place": shrink,
    "replaced by another": rewrite,
    "foreign session ids": change_session_ids,
    "bad times": spoil_times,
    "only state lines": leave_only_state,
    "unreadable": forbid,
    "odd types and hostile text": add_oddities,
}


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().rstrip(b"\n").split(b"\n")


def _store(path: Path, lines: list[bytes]) -> int:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return 0


def _at_middle(path: Path, replace: Callable[[bytes], list[bytes]], *, lost: int = 0) -> int:
    lines = _lines(path)
    middle = len(lines) // 2
    lines[middle : middle + 1] = replace(lines[middle])
    _store(path, lines)
    return lost


def _in_text(path: Path, words: bytes, *, whole: bool = False) -> int:
    """Add a prompt with these bytes for text; ``whole`` puts it in the middle, else at the end."""
    lines = _lines(path)
    record = encode(ODDITIES["plain"](path.stem)).replace(b"PLAIN", words)
    lines.insert(len(lines) // 2 if whole else len(lines), record)
    return _store(path, lines)


def _on_chain(path: Path, change: Callable[[list[Record]], Any]) -> int:
    records = [json.loads(line) for line in _lines(path)]
    change([record for record in records if "uuid" in record])
    return _store(path, [encode(record) for record in records])


def _follows(child: Record, parent: Record) -> bool:
    return parent.get("uuid") is not None and child.get("parentUuid") == parent["uuid"]

"""Every kind of damage that was found in real transcripts.

Each function damages the file at a path and returns how many of its records are lost.
A reader must still read all others.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from backscroll.testing.claude_code.blocks import Record, encode
from tests.builders.claude_code.odd_records import ODD_RECORDS

Damage = Callable[[Path], int]

_PARTIAL_LINE = b'{"type":"pr-link","prNu'
_NON_OBJECTS = (b"null", b"[1,2]", b"42", b'"text"', b"true")


def cut_last_line(path: Path) -> int:
    """Cut the last line in half, as if the writer was killed."""
    lines = _lines(path)
    lines[-1] = lines[-1][: len(lines[-1]) // 2]
    path.write_bytes(b"\n".join(lines))
    return 1


def drop_last_newline(path: Path) -> int:
    """Remove the newline of the last line."""
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    return 0


def prepend_partial_line(path: Path) -> int:
    """Put a partial line directly before a record, on the same line."""
    return _replace_middle_line(path, lambda line: [_PARTIAL_LINE + line])


def join_records(path: Path) -> int:
    """Put two records on one line, as if a restored file had no final newline."""
    lines = _lines(path)
    middle = len(lines) // 2
    lines[middle - 1 : middle + 1] = [lines[middle - 1] + lines[middle]]
    return _write_lines(path, lines)


def insert_nul_line(path: Path) -> int:
    """Insert a line of NUL bytes, as a crash leaves it."""
    return _replace_middle_line(path, lambda line: [b"\0" * 512, line])


def prefix_nuls(path: Path) -> int:
    """Insert NUL bytes before a record, as a crash leaves them."""
    return _replace_middle_line(path, lambda line: [b"\0" * 300 + line])


def append_nuls(path: Path) -> int:
    """Append NUL bytes, as a crash leaves them."""
    path.write_bytes(path.read_bytes() + b"\0" * 3400)
    return 0


def break_middle_line(path: Path) -> int:
    """Cut a line in the middle of the file in half."""
    return _replace_middle_line(path, lambda line: [line[: len(line) // 2]], lost=1)


def add_lone_surrogate(path: Path) -> int:
    """Add a prompt with half of an emoji, as an escape that strict parsers reject."""
    return _add_prompt(path, b"half an emoji \\ud83d here")


def add_invalid_utf8(path: Path) -> int:
    """Add a prompt with an incomplete UTF-8 character."""
    return _add_prompt(path, b"caf\xc3 and more \xff")


def insert_giant_line(path: Path, size: int = 8_000_000) -> int:
    """Insert a prompt of ``size`` characters in the middle of the file."""
    return _add_prompt(path, (b"all work and no play " * (size // 21 + 1))[:size], in_middle=True)


def empty_file(path: Path) -> int:
    """Remove the content of the file."""
    lost = len(_lines(path))
    path.write_bytes(b"")
    return lost


def insert_blank_lines(path: Path) -> int:
    """Insert lines with nothing but white space."""
    return _replace_middle_line(path, lambda line: [b"", b"  \t ", line, b""])


def add_bom(path: Path) -> int:
    """Insert a byte order mark at the start of the file."""
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    return 0


def end_lines_with_crlf(path: Path) -> int:
    """Replace all newlines with CRLF."""
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    return 0


def insert_non_objects(path: Path) -> int:
    """Insert lines that are JSON but not objects."""
    return _replace_middle_line(path, lambda line: [*_NON_OBJECTS, line])


def repeat_uuid(path: Path) -> int:
    """Repeat a record."""
    return _replace_middle_line(path, lambda line: [line, line])


def make_own_parent(path: Path) -> int:
    """Make the last line its own parent."""
    return _change_linked(path, lambda linked: linked[-1].update(parentUuid=linked[-1]["uuid"]))


def make_parent_cycle(path: Path) -> int:
    """Make the last line the parent of the first line."""
    return _change_linked(path, lambda linked: linked[0].update(parentUuid=linked[-1]["uuid"]))


def move_child_first(path: Path) -> int:
    """Move a line before its parent."""
    lines = _lines(path)
    records = [json.loads(line) for line in lines]
    child = next(n for n in range(1, len(records)) if _is_parent(records[n - 1], records[n]))
    lines[child - 1], lines[child] = lines[child], lines[child - 1]
    return _write_lines(path, lines)


def set_missing_parent(path: Path) -> int:
    """Change a line's parent to a uuid that does not exist."""
    missing = "dead0000-0000-4000-8000-000000000000"
    return _change_linked(path, lambda linked: linked[len(linked) // 2].update(parentUuid=missing))


def truncate_in_place(path: Path) -> int:
    """Remove the last line from the same file."""
    lines = _lines(path)
    with path.open("r+b") as file:
        file.truncate(sum(len(line) + 1 for line in lines[:-1]))
    return 1


def replace_file(path: Path) -> int:
    """Replace the file with another file of the same size whose first line differs."""
    before = path.read_bytes()
    position = before.index(b'"timestamp":"20') + len(b'"timestamp":"20')
    replacement = path.with_suffix(".new")
    replacement.write_bytes(before[:position] + b"19" + before[position + 2 :])
    replacement.replace(path)
    return 0


def change_session_ids(path: Path) -> int:
    """Change the session id in half of the lines."""
    other = "0badc0de-0000-4000-8000-000000000000"
    return _change_linked(
        path, lambda linked: [record.update(sessionId=other) for record in linked[: len(linked) // 2]]
    )


def make_times_invalid(path: Path) -> int:
    """Change times to invalid text, Unix seconds or null, and remove the last time."""

    def change(linked: list[Record]) -> None:
        for record, time in zip(
            linked, ("", "yesterday", 1_790_000_000, 1_790_000_000_000, None), strict=False
        ):
            record["timestamp"] = time
        linked[-1].pop("timestamp")

    return _change_linked(path, change)


def keep_only_state(path: Path) -> int:
    """Remove all messages. Titles and snapshots remain."""
    lines = [line for line in _lines(path) if b'"uuid":' not in line]
    lost = len(_lines(path)) - len(lines)
    _write_lines(
        path, [*lines, encode({"type": "custom-title", "customTitle": "Left over", "sessionId": path.stem})]
    )
    return lost


def remove_permissions(path: Path) -> int:
    """Remove all permissions. The superuser can still read the file."""
    lost = len(_lines(path))
    path.chmod(0)
    return lost


def add_odd_records(path: Path) -> int:
    """Append records with unexpected field types and hostile text."""
    return _write_lines(path, _lines(path) + [encode(build(path.stem)) for build in ODD_RECORDS.values()])


DAMAGE: dict[str, Damage] = {
    "partial last line": cut_last_line,
    "no newline at the end": drop_last_newline,
    "partial line before a record": prepend_partial_line,
    "two records on one line": join_records,
    "line of NUL": insert_nul_line,
    "NUL before a record": prefix_nuls,
    "NUL at the end": append_nuls,
    "malformed middle line": break_middle_line,
    "lone surrogate": add_lone_surrogate,
    "invalid UTF-8": add_invalid_utf8,
    "giant line": insert_giant_line,
    "empty file": empty_file,
    "blank lines": insert_blank_lines,
    "byte order mark": add_bom,
    "CRLF": end_lines_with_crlf,
    "lines that are not objects": insert_non_objects,
    "duplicate uuid": repeat_uuid,
    "own parent": make_own_parent,
    "parent cycle": make_parent_cycle,
    "child before parent": move_child_first,
    "missing parent": set_missing_parent,
    "truncated in place": truncate_in_place,
    "replaced by another": replace_file,
    "foreign session ids": change_session_ids,
    "invalid times": make_times_invalid,
    "only state lines": keep_only_state,
    "unreadable": remove_permissions,
    "odd types and hostile text": add_odd_records,
}


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().rstrip(b"\n").split(b"\n")


def _write_lines(path: Path, lines: list[bytes]) -> int:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return 0


def _replace_middle_line(path: Path, replace: Callable[[bytes], list[bytes]], *, lost: int = 0) -> int:
    lines = _lines(path)
    middle = len(lines) // 2
    lines[middle : middle + 1] = replace(lines[middle])
    _write_lines(path, lines)
    return lost


def _add_prompt(path: Path, text: bytes, *, in_middle: bool = False) -> int:
    """Add a prompt with these bytes as its text, at the end or in the middle of the file."""
    lines = _lines(path)
    record = encode(ODD_RECORDS["plain"](path.stem)).replace(b"PLAIN", text)
    lines.insert(len(lines) // 2 if in_middle else len(lines), record)
    return _write_lines(path, lines)


def _change_linked(path: Path, change: Callable[[list[Record]], Any]) -> int:
    """Change the records that have a uuid."""
    records = [json.loads(line) for line in _lines(path)]
    change([record for record in records if "uuid" in record])
    return _write_lines(path, [encode(record) for record in records])


def _is_parent(parent: Record, child: Record) -> bool:
    return parent.get("uuid") is not None and child.get("parentUuid") == parent["uuid"]

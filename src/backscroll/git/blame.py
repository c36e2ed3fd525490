"""The commit that each line of a file comes from."""

import re
from pathlib import Path

from msgspec import Struct

from backscroll.git.process import decode, run_git
from backscroll.git.repository import Repository

__all__ = ["BlamedLine", "blame"]

_HEADER = re.compile(rb"([0-9a-f]{40}(?:[0-9a-f]{24})?) (\d+) (\d+)(?: \d+)?")


class BlamedLine(Struct, frozen=True):
    """One line of a file as it is now."""

    number: int  # from 1
    text: bytes
    sha: str | None  # None if it is not committed
    path: str  # file that contained the line in that commit


def blame(
    repository: Repository, file: Path, lines: tuple[int, int] | None = None, *, revision: str | None = None
) -> list[BlamedLine]:
    """Return the lines of a file with their commits. Follows moved and copied lines, ignores indentation.

    Without a revision, the file is read from the checkout, with changes that are not committed.
    """
    arguments = ["blame", "-M", "-C", "-w", "--line-porcelain", "--no-progress"]
    if lines is not None:
        arguments.append(f"-L{lines[0]},{lines[1]}")
    arguments += [revision] if revision is not None else []
    output = run_git(repository.folder, *arguments, "--", str(file))
    found: list[BlamedLine] = []
    sha, number, path = b"", 0, ""
    for line in output.split(b"\n"):
        if line.startswith(b"\t"):
            is_committed = bool(sha.strip(b"0"))
            found.append(BlamedLine(number, line[1:], sha.decode() if is_committed else None, path))
        elif header := _HEADER.fullmatch(line):
            sha, number = header[1], int(header[3])
        elif line.startswith(b"filename "):
            path = decode(line[9:])
    return found

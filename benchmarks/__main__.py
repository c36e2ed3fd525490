"""What reading costs: ``make bench``.

The histories are made, shaped like real ones, and kept between runs in a folder of the system's own for
temporary files; set ``BACKSCROLL_BENCH`` to another one.
"""

import os
import sys
import tempfile
from pathlib import Path

from backscroll.model import Unit
from backscroll.sources import named
from backscroll.testing import claude_code, cursor, cursor_cli
from benchmarks.measure import best, peak_private_memory

MB = 1_000_000
FOLDER = Path(os.environ.get("BACKSCROLL_BENCH") or Path(tempfile.gettempdir()) / "backscroll-bench")


def made(name: str, write: object) -> Path:
    """A history, written once."""
    root = FOLDER / name
    if not root.exists():
        unfinished = root.with_name(f"{name}.unfinished")
        unfinished.mkdir(parents=True, exist_ok=True)
        assert callable(write)
        write(unfinished)
        unfinished.rename(root)
    return root


def read(source_name: str, root: Path, units: list[Unit] | None = None) -> int:
    source = named(source_name)
    count = 0
    for unit in units if units is not None else list(source.units(root)):
        for _ in source.read(unit):
            count += 1
    source.close()
    return count


def say(what: str, measured: str, wanted: str) -> None:
    print(f"{what:<58} {measured:>14}   wanted {wanted}")


def claude() -> None:
    root = made("claude", lambda folder: claude_code.history(folder, sessions=1000, seed=1))
    size = sum(unit.size for unit in named("claude-code").units(root))
    seconds = best(lambda: read("claude-code", root))
    say(f"Claude Code, {size / MB:,.0f} MB read", f"{size / MB / seconds:,.0f} MB/s", "150 MB/s")


def claude_memory() -> None:
    def write(folder: Path) -> None:
        path = folder / "projects" / "-large" / "00000000-0000-4000-8000-000000000001.jsonl"
        claude_code.history(folder / "parts", sessions=900, seed=2)
        path.parent.mkdir(parents=True)
        with path.open("wb") as file:
            for part in sorted((folder / "parts").rglob("*.jsonl")):
                if file.tell() < 450 * MB:
                    file.write(part.read_bytes())
        claude_code.damage.giant_line(path, 50 * MB)

    root = made("claude-large", write)
    code = (
        "from pathlib import Path; from backscroll.sources import named\n"
        f"source = named('claude-code'); root = Path({str(root)!r})\n"
        "for unit in source.units(root):\n"
        "    if '-large' in unit.path:\n"
        "        for item in source.read(unit): pass\n"
    )
    peak = peak_private_memory(code)
    say("Claude Code, a file of 500 MB with a line of 50 MB", f"{peak / MB:,.0f} MB", "300 MB of memory")


def cursor_ide() -> None:
    root = made("cursor", lambda folder: cursor.history(folder))
    units = list(named("cursor").units(root))
    composers = [unit for unit in units if unit.kind == "session"]
    composers.sort(key=lambda unit: unit.size)
    size = (root / "User/globalStorage/state.vscdb").stat().st_size
    listing = best(lambda: list(named("cursor").units(root)))
    say(f"Cursor, {size / MB:,.0f} MB listed", f"{listing * 1000:,.0f} ms", "100 ms")
    seconds = best(lambda: read("cursor", root), runs=2)
    say(f"Cursor, {size / MB:,.0f} MB read completely", f"{seconds:,.2f} s", "3 s")
    for name, unit in (("median", composers[len(composers) // 2]), ("largest", composers[-1])):
        one = best(lambda unit=unit: read("cursor", root, [unit]))
        say(f"Cursor, the {name} session ({unit.size:,} rows)", f"{one * 1000:,.0f} ms", "50 ms")


def cursor_agent() -> None:
    root = made("cursor-cli", lambda folder: cursor_cli.history(folder, sessions=49, messages=65, seed=0))
    seconds = best(lambda: read("cursor-cli", root))
    say("Cursor CLI, 49 stores read", f"{seconds * 1000:,.0f} ms", "-")


if __name__ == "__main__":
    parts = {"claude": claude, "memory": claude_memory, "cursor": cursor_ide, "cursor-cli": cursor_agent}
    for part in sys.argv[1:] or parts:
        parts[part]()

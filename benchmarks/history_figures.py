"""Languages and vocabulary of a history, per megabyte: ``python -m benchmarks.history_figures FOLDER``.

``FOLDER`` is a Claude Code home, generated or real. The figures show whether a generated history
resembles a real one.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from backscroll.model.message import Message, ToolCall
from backscroll.model.stream import ToolResult
from backscroll.sources import named
from benchmarks.generated_histories import MB

_SAMPLE_CHARS = 30_000_000  # different words are counted in the first texts of this total length
_COMPOUND = re.compile(r"(?<=[A-Za-z0-9])_+[A-Za-z0-9]|[a-z][A-Z]")
_WORD = re.compile(r"\w+")
_ASCII = re.compile(r"[\x00-\x7f]+")
_UUID = re.compile(rb'"uuid":"([^"]+)"')
_CHARACTER_CLASSES = {
    "arrows": "→",
    "box drawing": "[\u2500-\u257f]",
    "CJK": "[\u3400-\u4dbf\u4e00-\u9fff]",
    "accented Latin": "[\u00c0-\u024f]",
    "Cyrillic": "[\u0400-\u052f]",
    "kana": "[\u3040-\u30ff]",
}


class HistoryFigures(Struct):
    size: int = 0  # bytes
    texts: int = 0
    words: int = 0
    compound_identifiers: int = 0
    distinct_words: int = 0  # in the first texts
    longest_text: int = 0  # characters
    non_ascii_texts: int = 0
    non_ascii: Counter[str] = msgspec.field(default_factory=Counter)  # by class of characters
    sessions: int = 0
    copies: int = 0  # sessions with records of an earlier file

    def per_mb(self, count: int) -> float:
        return count * MB / self.size


def count_history(root: Path) -> HistoryFigures:
    """Count the texts of all files below a Claude Code home."""
    figures, chars, counted_chars = HistoryFigures(), 0, Counter[str]()
    distinct: set[str] = set()
    for text in _texts(root, figures):
        words: list[str] = _WORD.findall(text)
        figures.texts += 1
        figures.words += len(words)
        figures.compound_identifiers += sum(_COMPOUND.search(word) is not None for word in words)
        figures.longest_text = max(figures.longest_text, len(text))
        if chars < _SAMPLE_CHARS:
            chars += len(text)
            distinct.update(map(str.lower, words))
        if not text.isascii():
            figures.non_ascii_texts += 1
            counted_chars.update(_ASCII.sub("", text))
    figures.distinct_words = len(distinct)
    for char, count in counted_chars.items():
        figures.non_ascii[_character_class(char)] += count
    _count_copies(root, figures)
    return figures


def _texts(root: Path, figures: HistoryFigures) -> Iterator[str]:
    source = named("claude-code")
    # File names are random, so the first texts come from all projects.
    for unit in sorted(source.units(root), key=lambda unit: Path(unit.path).name):
        figures.size += unit.size
        for item in source.read(unit):
            match item:
                case ToolResult():
                    yield item.result
                case Message(tool=ToolCall() as tool):
                    params = [_param_text(value) for value in tool.params.values()]
                    yield from filter(None, [item.content, *params, tool.result])
                case Message():
                    yield item.content


def _param_text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _character_class(char: str) -> str:
    return next((name for name, chars in _CHARACTER_CLASSES.items() if re.match(chars, char)), "other")


def _count_copies(root: Path, figures: HistoryFigures) -> None:
    seen: set[bytes] = set()
    paths = [path for path in root.glob("projects/*/*.jsonl") if not path.stem.startswith("agent-")]
    for path in sorted(paths, key=lambda path: path.stat().st_mtime):
        uuids = set(_UUID.findall(path.read_bytes()))
        figures.sessions += bool(uuids)
        figures.copies += not uuids.isdisjoint(seen)
        seen |= uuids


def main(root: Path) -> None:
    figures = count_history(root)
    non_ascii = figures.non_ascii.total()
    print(f"{figures.size / MB:,.0f} MB, {figures.sessions:,} sessions with messages; per MB:")
    rows = {
        "texts": figures.texts,
        "words": figures.words,
        "compound identifiers": figures.compound_identifiers,
        "texts with a non-ASCII character": figures.non_ascii_texts,
        "non-ASCII characters": non_ascii,
    }
    for label, count in rows.items():
        print(f"  {label:<34}{figures.per_mb(count):10,.0f}")
    print(f"different words in the first 30 M characters {figures.distinct_words:,}")
    print(f"longest text {figures.longest_text:,} characters")
    print(f"sessions that repeat an earlier one {figures.copies / max(figures.sessions, 1):.1%}")
    print("of 1,000 non-ASCII characters:")
    for name in (*_CHARACTER_CLASSES, "other"):
        print(f"  {name:<34}{figures.non_ascii[name] * 1000 / max(non_ascii, 1):10,.0f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

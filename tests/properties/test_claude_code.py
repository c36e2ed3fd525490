"""Damage to one line of a transcript does not change the messages of other lines."""

import json
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.claude_code.damage import DAMAGE
from tests.builders.claude_code.generations import GENERATIONS
from tests.oracle.fold import UnitContent, fold

from backscroll.model.store import Unit
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import Transcript, tool_calls

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
nested = scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.text(max_size=10), scalars, max_size=3)
json_values = (
    nested | st.lists(nested, max_size=3) | st.dictionaries(st.text(max_size=10), nested, max_size=3)
)


def parse(path: Path) -> UnitContent:
    content = fold(ClaudeCode().read(Unit("claude-code", "", str(path))))
    counts = content.counts
    assert counts.records == counts.parsed + counts.ignored + counts.problems == sum(counts.kinds.values())
    return content


def texts(content: UnitContent, *, without_line: int = 0) -> Counter[tuple[str, str, str]]:
    """Return the location, role and content of all messages, except those of one line."""
    return Counter(
        (message.origin.place, message.role, message.content)
        for session in content.sessions
        for message in session.messages
        if message.origin.place != f"line {without_line}" and message.kind != "queued"
    )


@cache
def transcripts() -> list[bytes]:
    """Return the largest transcript of every generation."""
    largest = []
    for generation in GENERATIONS.values():
        with TemporaryDirectory() as folder:
            files = [session.path(Path(folder)).read_bytes() for session in generation(Path(folder), 0)]
            largest.append(max(files, key=len))
    return largest


@given(data=st.data())
def test_truncating_a_file_loses_only_the_truncated_messages(scratch: Path, data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(transcripts()))
    scratch.write_bytes(whole)
    before = texts(parse(scratch))
    cut = data.draw(st.integers(0, len(whole)))
    scratch.write_bytes(whole[:cut])
    content = parse(scratch)
    lines = whole[:cut].count(b"\n")
    expected = Counter({key: n for key, n in before.items() if int(key[0].removeprefix("line ")) <= lines})
    assert not expected - texts(content)
    assert sum(problem.code == "truncated-line" for problem in content.problems) <= 1


@given(data=st.data())
def test_a_changed_byte_affects_only_its_own_line(scratch: Path, data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(transcripts()))
    offset = data.draw(st.integers(0, len(whole) - 1))
    if whole[offset] == 10:
        return
    damaged = bytearray(whole)
    damaged[offset] ^= data.draw(st.integers(1, 255))
    if damaged[offset] == 10:
        return
    scratch.write_bytes(whole)
    line = whole[:offset].count(b"\n") + 1
    before = texts(parse(scratch), without_line=line)
    scratch.write_bytes(damaged)
    assert not before - texts(parse(scratch), without_line=line)


def json_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a document."""
    paths = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            paths += json_paths(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            paths += json_paths(item, (*path, index))
    return paths


def set_value(value: Any, path: tuple[Any, ...], new: Any) -> None:
    for step in path[:-1]:
        value = value[step]
    value[path[-1]] = new


@given(seed=st.integers(0, 2**32), new=json_values, is_ascii=st.booleans())
def test_any_value_in_any_field_affects_only_its_own_line(
    scratch: Path, seed: int, new: Any, is_ascii: bool
) -> None:
    random = Random(seed)
    lines = random.choice(transcripts()).splitlines()
    index = random.randrange(len(lines))
    record = json.loads(lines[index])
    scratch.write_bytes(b"\n".join(lines))
    before = texts(parse(scratch), without_line=index + 1)
    set_value(record, random.choice(json_paths(record)), new)
    lines[index] = json.dumps(record, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    scratch.write_bytes(b"\n".join(lines))
    assert not before - texts(parse(scratch), without_line=index + 1)


@pytest.mark.parametrize(
    "name", [name for name in DAMAGE if name not in ("unreadable", "replaced by another")]
)
def test_known_kinds_of_damage_lose_only_the_damaged_messages(name: str, tmp_path: Path) -> None:
    session = Transcript(version="2.1.97")
    for turn in range(8):
        session.user(f"question {turn} – 日本 🚀").run(tool_calls.bash(f"echo {turn}", str(turn))).assistant(
            f"answer {turn}"
        )
    path = session.write(tmp_path)
    before = parse(path)
    lost = DAMAGE[name](path)
    after = parse(path)
    expected = {m.content for session in before.sessions for m in session.messages if m.content}
    found = {m.content.replace("\ufffd", "") for session in after.sessions for m in session.messages}
    missing = [text for text in expected if text not in found]
    if name not in ("empty file", "only state lines", "shrunk in place"):
        assert len(missing) <= max(lost, 1 if "surrogate" in name or "multibyte" in name else 0)
    assert after.counts.problems <= lost + 1 or name == "odd types and hostile text"

"""Whatever happens to one line of a transcript, the others still say what they said."""

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
from tests.oracle.fold import UnitContent, fold

from backscroll.model import Unit
from backscroll.sources.claude_code import ClaudeCode
from backscroll.testing.claude_code import DAMAGE, GENERATIONS, Transcript, tool_calls

plain = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
nested = plain | st.lists(plain, max_size=3) | st.dictionaries(st.text(max_size=10), plain, max_size=3)
anything = nested | st.lists(nested, max_size=3) | st.dictionaries(st.text(max_size=10), nested, max_size=3)


def tell(path: Path) -> UnitContent:
    told = fold(ClaudeCode().read(Unit("claude-code", "", str(path))))
    tally = told.counts
    assert tally.records == tally.parsed + tally.ignored + tally.problems == sum(tally.kinds.values())
    return told


def spoken(told: UnitContent, *, without: int = 0) -> Counter[tuple[str, str, str]]:
    """Everything said, by the line it was read from; what one line said can be left out."""
    return Counter(
        (message.origin.place, message.role, message.content)
        for reading in told.sessions
        for message in reading.messages
        if message.origin.place != f"line {without}" and message.kind != "queued"
    )


@cache
def transcripts() -> list[bytes]:
    """The largest transcript of every generation."""
    found = []
    for generation in GENERATIONS.values():
        with TemporaryDirectory() as folder:
            written = [one.path(Path(folder)).read_bytes() for one in generation(Path(folder), 0)]
            found.append(max(written, key=len))
    return found


@given(data=st.data())
def test_a_file_cut_anywhere_loses_only_what_was_cut(scratch: Path, data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(transcripts()))
    scratch.write_bytes(whole)
    before = spoken(tell(scratch))
    cut = data.draw(st.integers(0, len(whole)))
    scratch.write_bytes(whole[:cut])
    told = tell(scratch)
    lines = whole[:cut].count(b"\n")
    kept = Counter({key: n for key, n in before.items() if int(key[0].removeprefix("line ")) <= lines})
    assert not kept - spoken(told)
    assert sum(problem.reason.startswith("cut off") for problem in told.problems) <= 1


@given(data=st.data())
def test_a_flipped_byte_harms_only_its_own_line(scratch: Path, data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(transcripts()))
    at = data.draw(st.integers(0, len(whole) - 1))
    if whole[at] == 10:
        return
    broken = bytearray(whole)
    broken[at] ^= data.draw(st.integers(1, 255))
    if broken[at] == 10:
        return
    scratch.write_bytes(whole)
    line = whole[:at].count(b"\n") + 1
    before = spoken(tell(scratch), without=line)
    scratch.write_bytes(broken)
    assert not before - spoken(tell(scratch), without=line)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            found += places(item, (*path, number))
    return found


def put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    for step in path[:-1]:
        value = value[step]
    value[path[-1]] = new


@given(seed=st.integers(0, 2**32), new=anything, is_ascii=st.booleans())
def test_any_value_in_any_field_harms_only_its_own_line(
    scratch: Path, seed: int, new: Any, is_ascii: bool
) -> None:
    random = Random(seed)
    lines = random.choice(transcripts()).splitlines()
    number = random.randrange(len(lines))
    record = json.loads(lines[number])
    scratch.write_bytes(b"\n".join(lines))
    before = spoken(tell(scratch), without=number + 1)
    put(record, random.choice(places(record)), new)
    lines[number] = json.dumps(record, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    scratch.write_bytes(b"\n".join(lines))
    assert not before - spoken(tell(scratch), without=number + 1)


@pytest.mark.parametrize(
    "name", [name for name in DAMAGE if name not in ("unreadable", "replaced by another")]
)
def test_damage_met_in_the_wild_loses_no_more_than_it_must(name: str, tmp_path: Path) -> None:
    session = Transcript(version="2.1.97")
    for turn in range(8):
        session.user(f"question {turn} – 日本 🚀").run(tool_calls.bash(f"echo {turn}", str(turn))).assistant(
            f"answer {turn}"
        )
    path = session.write(tmp_path)
    before = tell(path)
    lost = DAMAGE[name](path)
    after = tell(path)
    words = {m.content for reading in before.sessions for m in reading.messages if m.content}
    kept = {m.content.replace("\ufffd", "") for reading in after.sessions for m in reading.messages}
    missing = [text for text in words if text not in kept]
    if name not in ("empty file", "only state lines", "shrunk in place"):
        assert len(missing) <= max(lost, 1 if "surrogate" in name or "multibyte" in name else 0)
    assert after.counts.problems <= lost + 1 or name == "odd types and hostile text"

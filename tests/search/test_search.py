"""Search through the library: any query has an answer."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backscroll.archive.storage.codec import encode_messages
from backscroll.config import NamedRoot
from backscroll.errors import UsageError
from backscroll.history.history import History
from backscroll.index.pattern import Pattern, exact, regex
from backscroll.model.message import Message, Origin, ToolCall
from backscroll.model.search import SearchBy, searchable_text
from backscroll.search.pattern_search import required_bytes
from backscroll.testing import cursor
from backscroll.testing.claude_code import Transcript, fork, tool_calls
from tests.sources.cursor.reading import write_and_read

Kind = Literal["words", "exact", "regex"]

NAMES = (
    "role:",
    "source:",
    "workspace:",
    "tool:",
    "model:",
    "file:",
    "branch:",
    "since:",
    "until:",
    "is:",
    "has:",
)
PIECES = [
    *NAMES,
    "gone",
    "edits",
    "ferry",
    "x/ferry",
    '"',
    "-",
    "*",
    " ",
    "OR",
    " AND ",
    " NOT ",
    "2026-10",
    "flaky",
    "\ud800",
    "中文",
]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    folder: Path = tmp_path_factory.mktemp("search")
    for number, cwd in enumerate(("/home/zoe/x/ferry", "/srv/x/ferry", "/home/zoe/web")):
        one = Transcript(f"{number}0000000-0000-4000-8000-000000000000", seed=number, cwd=cwd)
        one.user("why is it flaky").run(tool_calls.bash("ls", "a.py")).assistant("Because 中文.").write(
            folder / "claude"
        )
    with History(roots=[NamedRoot("claude-code", folder / "claude")], home=folder / "home") as history:
        history.sync()
        yield history


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=8).map("".join))
@example(text="source:*<")
def test_any_text_with_a_letter_or_digit_can_be_searched_for(history: History, text: str) -> None:
    if not any(map(str.isalnum, text)):
        with pytest.raises(UsageError, match=r"Example: 'flaky test"):
            history.search_sessions(text)
        return
    found = history.search_sessions(text)
    assert len(found.data) <= 3


def test_an_empty_query_with_a_filter_lists_what_matches_the_filter(history: History) -> None:
    assert len(history.search_sessions("", filters={"role": "user"}).data) == 3
    assert len(history.search_sessions("...", since=datetime(2020, 1, 1, tzinfo=UTC)).data) == 3


@given(st.text(min_size=1, max_size=6), st.booleans())
def test_any_substring_can_be_searched_for(history: History, text: str, by_message: bool) -> None:
    found = history.search_sessions(text, pattern="exact", by="message" if by_message else "session")
    assert all(text in match.match or "\n" in text for match in found.data)


@given(st.sampled_from(["why is it flaky", "ls", "a.py", "Because 中文."]), st.data())
def test_any_substring_is_found_in_any_case(history: History, text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    substring = text[start : data.draw(st.integers(start + 1, len(text)))].swapcase()
    assert len(history.search_sessions(substring, pattern="exact", ignore_case=True).data) == 3


def test_a_scan_reports_progress(history: History) -> None:
    calls: list[tuple[int, int]] = []
    history.search_sessions(r"\d\d\d\d\d\d\d\d\d", pattern="regex", progress=lambda *now: calls.append(now))
    assert calls
    assert all(0 < done <= total for done, total in calls)
    history.search_sessions(
        "flaky", pattern="exact", progress=lambda *now: pytest.fail("no progress for a narrow pattern")
    )


def test_a_match_has_the_index_of_its_session_in_the_list(history: History) -> None:
    listed = {one.ref: one.index for one in history.list_sessions().data}
    found = history.search_sessions("flaky").data
    assert len(found) == 3
    assert {match.session_ref: match.session_index for match in found} == listed


def test_messages_added_by_another_process_are_found(tmp_path: Path) -> None:
    roots = [NamedRoot("claude-code", tmp_path / "claude")]
    growing = Transcript("a0000000-0000-4000-8000-000000000000", seed=1).user("a lantern")
    growing.write(tmp_path / "claude")
    with (
        History(roots=roots, home=tmp_path / "home") as one,
        History(roots=roots, home=tmp_path / "home") as other,
    ):
        other.sync()
        assert [match.match for match in one.search_sessions("lantern").data] == ["a lantern"]
        growing.assistant("a second lantern").write(tmp_path / "claude")
        newer = Transcript("b0000000-0000-4000-8000-000000000000", seed=2).user("a beacon")
        newer.write(tmp_path / "claude")
        other.sync()
        found = one.search_sessions("lantern", by="message").data
        assert {match.match for match in found} == {"a lantern", "a second lantern"}
        listed = {session.ref: session.index for session in one.list_sessions().data}
        assert {match.session_index for match in found} == {listed[found[0].session_ref]}
        beacon = one.search_sessions("beacon").data[0]
        assert beacon.session_index == listed[beacon.session_ref] != found[0].session_index


def test_a_session_renamed_between_two_searches_has_its_new_title(tmp_path: Path) -> None:
    roots = [NamedRoot("claude-code", tmp_path / "claude")]
    Transcript(seed=1).user("a lantern").assistant("a beacon").write(tmp_path / "claude")
    with (
        History(roots=roots, home=tmp_path / "home") as one,
        History(roots=roots, home=tmp_path / "home") as other,
    ):
        one.sync()
        ref = one.search_sessions("lantern").data[0].session_ref
        for renaming, title in ((one, "by hand"), (other, "by another")):
            renaming.annotations.rename(ref, title)
            assert [match.title for match in one.search_sessions("lantern").data] == [title]


JSON_VALUES = st.recursive(
    st.text('ab(1"\\\n\t\x1b:é ', max_size=6) | st.integers(-99, 99) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xy", min_size=1), inner, max_size=3),
)


@given(st.dictionaries(st.text("xy", min_size=1), JSON_VALUES, max_size=3), st.text(max_size=8), st.data())
def test_the_byte_prefilter_never_skips_a_match(
    params: dict[str, object], content: str, data: st.DataObject
) -> None:
    origin = Origin("/a", "line 1")
    tool = ToolCall(id="1", name="Bash", params=params, result=content)
    message = Message(id="1", role="tool", content=content, origin=origin, tool=tool)
    text = searchable_text(message)
    start = data.draw(st.integers(0, len(text)))
    some = text[start : start + data.draw(st.integers(1, 12))]
    if some:
        assert all(one in encode_messages([message])[0] for one in required_bytes(exact(some)))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (exact("return==="), [b"eturn==="]),
        (exact("a == return"), [b"return", b"=="]),
        (exact("n: true"), []),
        (exact("-1.5"), []),
        (exact('say "hello_there"'), [b"hello_there", b"say"]),
        (regex(r"class \w+\(return\)"), [b"(return)", b"lass"]),
        (regex(r"return .*\bx9"), [b"eturn", b"x9"]),
        (regex(r"(?i)class"), []),
        (regex(r"class|order"), []),
    ],
)
def test_required_bytes_of_a_pattern(pattern: Pattern, expected: list[bytes]) -> None:
    assert list(required_bytes(pattern)) == expected


def with_titles(folder: Path) -> History:
    """Write a session with a title that no message contains, and a fork with another title."""
    one = Transcript("a0000000-0000-4000-8000-000000000000", seed=1).user("first").assistant("second")
    one.ai_title("Tides: 25:10 and the moon").write(folder / "claude")
    two = fork(one, title="Neaps", seed=2)
    two.user("third").write(folder / "claude")
    history = History(roots=[NamedRoot("claude-code", folder / "claude")], home=folder / "home")
    history.sync()
    return history


@pytest.mark.parametrize(
    ("query", "pattern", "highlighted", "position"),
    [
        ("tides moon", "words", ["Tides", "moon"], 0),
        ("25:10 and", "exact", ["25:10 and"], 0),
        (r"^Tides: \d+", "regex", ["Tides: 25"], 0),
        ("neaps", "words", ["Neaps"], 2),
        ("ps (fork", "exact", ["ps (fork"], 2),
        ("N....", "regex", ["Neaps"], 2),  # no literal to look up
    ],
)
@pytest.mark.parametrize("by", ["session", "message"])
def test_a_title_is_found_with_the_first_message_of_its_own_session(
    tmp_path: Path, query: str, pattern: Kind, highlighted: list[str], position: int, by: SearchBy
) -> None:
    with with_titles(tmp_path) as history:
        (match,) = history.search_sessions(query, pattern=pattern, by=by).data
        assert match.match == match.title
        assert (match.is_title, match.place) == (True, "title")
        assert [match.match[start:end] for start, end in match.highlights] == highlighted
        assert (match.message_index, match.match_count) == (position, 1)


@pytest.mark.parametrize("pattern", ["words", "exact", "regex"])
def test_an_attached_file_is_found_by_its_path(tmp_path: Path, pattern: Kind) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    write_and_read(home, cursor.user("Look", files=["/w/moon/tides.py"]))
    with History(roots=[NamedRoot("cursor", home.root)], home=tmp_path / "home") as history:
        history.sync()
        (match,) = history.search_sessions("moon/tides.py", pattern=pattern).data
        assert [match.match[start:end] for start, end in match.highlights] == ["moon/tides.py"]


def test_two_messages_are_shown_if_the_words_are_spread(tmp_path: Path) -> None:
    one = Transcript("10000000-0000-4000-8000-000000000000", seed=1, cwd="/home/zoe/shop")
    one.user("The ferry was late").assistant("I looked at the weather.").user("It was the fog")
    one.write(tmp_path / "claude")
    with History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path / "home") as history:
        history.sync()
        (match,) = history.search_sessions("ferry late fog").data
        assert match.match == "The ferry was late"
        assert match.also is not None
        assert match.also.match == "It was the fog"
        assert [match.also.match[start:end] for start, end in match.also.highlights] == ["fog"]
        (match,) = history.search_sessions("ferry late").data
        assert match.also is None
        assert history.search_sessions("ferry weather").data[0].also is not None
        (match,) = history.search_sessions("ferry weather role:user").data
        assert match.also is None, "the weather is in an answer"


@pytest.mark.parametrize("query", ["harbor", "harbor fog"])
def test_subagents_follow_after_the_sessions(tmp_path: Path, query: str) -> None:
    root = tmp_path / "root"
    busy = Transcript(version="2.1.230").user("the ferry plan").assistant("The harbor is in fog until noon.")
    for number in range(4):
        busy.delegate(f"harbor fog, harbor fog {number}", "harbor fog", calls=[tool_calls.bash("true")])
    busy.write(root)
    quiet = Transcript(version="2.1.230", seed=7).user("a long text about other things")
    quiet.assistant("Among many other words there is a harbor, and there is also some fog in it.")
    quiet.write(root)
    with History(home=tmp_path / "home", roots=[NamedRoot("claude-code", root)]) as history:
        history.sync()
        result = history.search_sessions(query)
        pages = [history.search_sessions(query, limit=1, offset=offset).data for offset in range(6)]
    refs = [match.session_ref for match in result.data]
    assert result.total == 6
    assert {ref.partition(":")[2] for ref in refs[:2]} == {busy.session_id, quiet.session_id}
    assert [page[0].session_ref for page in pages] == refs

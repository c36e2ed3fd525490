"""An excluded word excludes every session, or message, that contains it, and no other."""

import random
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.search import searchable_text
from backscroll.testing.claude_code import Transcript, fork, resume, tool_calls

WORDS = ("amber", "basil", "cedar", "dunes", "ember", "fjord", "gorse", "heath")
SESSION_COUNT = 20


class RandomHistory:
    """Sessions of random words, many of them resumed or forked, and the words that they contain."""

    def __init__(self, folder: Path) -> None:
        self._random = random.Random(13)
        transcripts: list[Transcript] = []
        for number in range(SESSION_COUNT):
            if transcripts and number % 3:
                copy = (resume, fork)[number % 2]
                session = copy(self._random.choice(transcripts), seed=100 + number)
            else:
                session = Transcript(seed=number, version="1.0.98")
            session.ai_title(f"title{number}")  # without it, a title would contain words of the messages
            for _ in range(2):
                session.user(self._text()).run(tool_calls.bash(self._text(), self._text()))
            session.assistant(self._text()).write(folder / "claude")
            transcripts.append(session)
        self.history = History(roots=[NamedRoot("claude-code", folder / "claude")], home=folder / "home")
        self.history.sync()
        self.words: dict[str, set[str]] = {}  # of each session
        self.own_words: dict[tuple[str, int], set[str]] = {}  # of each message that is not a copy
        for summary in self.history.all_sessions():
            self.words[summary.ref] = set()
            for position, message in enumerate(self.history.get_session(summary.ref).messages):
                words = set(searchable_text(message).split()) & set(WORDS)
                self.words[summary.ref] |= words
                if message.copied_from is None:
                    self.own_words[summary.ref, position] = words

    def _text(self) -> str:
        return f"and {' '.join(self._random.sample(WORDS, self._random.choice((0, 0, 1, 2))))} so"

    def sessions(self, query: str) -> set[str]:
        found = self.history.search_sessions(query, limit=1000)
        assert found.is_relaxed or found.total == len(found.data)
        return {match.session_ref for match in found.data}

    def messages(self, query: str) -> set[tuple[str, int]]:
        found = self.history.search_sessions(query, limit=1000, by="message")
        return {(match.session_ref, match.message_index) for match in found.data}


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RandomHistory]:
    archived = RandomHistory(tmp_path_factory.mktemp("excluded"))
    yield archived
    archived.history.close()


def negate(words: Collection[str], operator: str) -> str:
    return " ".join(f"{operator}{word}" for word in words)


some_words = st.sets(st.sampled_from(WORDS), min_size=1, max_size=3)
operators = st.sampled_from(["-", "NOT ", "AND NOT "])


def test_the_history_has_sessions_with_a_word_only_in_copied_messages(archived: RandomHistory) -> None:
    own = {ref: set[str]() for ref in archived.words}
    for (ref, _), words in archived.own_words.items():
        own[ref] |= words
    assert any(archived.words[ref] - own[ref] for ref in own)


@given(some_words, operators)
def test_excluded_words_alone_list_the_sessions_without_them(
    archived: RandomHistory, excluded: set[str], operator: str
) -> None:
    expected = {ref for ref, words in archived.words.items() if not words & excluded}
    assert archived.sessions(negate(excluded, operator)) == expected


@given(st.sampled_from(WORDS), some_words, operators)
def test_no_session_with_an_excluded_word_is_found(
    archived: RandomHistory, wanted: str, excluded: set[str], operator: str
) -> None:
    found = archived.sessions(f"{wanted} {negate(excluded, operator)}")
    assert found == {ref for ref in archived.sessions(wanted) if not archived.words[ref] & excluded}


@given(st.sampled_from(WORDS), st.sampled_from(WORDS))
def test_an_excluded_alternative_adds_the_sessions_without_the_word(
    archived: RandomHistory, wanted: str, excluded: str
) -> None:
    without = {ref for ref, words in archived.words.items() if excluded not in words}
    assert archived.sessions(f"{wanted} OR NOT {excluded}") == archived.sessions(wanted) | without


@given(some_words, operators)
def test_a_search_by_message_excludes_messages(
    archived: RandomHistory, excluded: set[str], operator: str
) -> None:
    expected = {key for key, words in archived.own_words.items() if not words & excluded}
    assert archived.messages(negate(excluded, operator)) == expected

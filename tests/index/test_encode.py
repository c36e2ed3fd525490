"""Encoding of messages as JSON documents."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from backscroll.index.documents import IndexMessage, IndexSession, encode_message, encode_session
from backscroll.index.schema import tokens_of

SESSION = IndexSession(session=7, source="claude-code", title='Say "hi" \\ twice', workspace_hash="0" * 32)


def test_characters_that_json_escapes_become_spaces() -> None:
    message = IndexMessage(position=0, role="user", text='a "quoted"\tword\n\\ and\x00more')
    document, *_ = encode_session(SESSION, [encode_message(message)], with_title=False)
    assert msgspec.json.decode(document)["prose"] == "a  quoted  word   and more"


def test_the_title_is_added_to_the_first_message() -> None:
    messages = [IndexMessage(position=position, role="user", text=f"word{position}") for position in range(2)]
    first, second, *_ = map(msgspec.json.decode, encode_session(SESSION, map(encode_message, messages)))
    assert tokens_of(first["prose"]) == ["word0", "say", "hi", "twice"]
    assert tokens_of(second["prose"]) == ["word1"]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_word_of_any_text_is_lost(text: str) -> None:
    message = IndexMessage(position=0, role="tool", text=text.encode())
    document, *_ = encode_session(SESSION, [encode_message(message)], with_title=False)
    fields = msgspec.json.decode(document)
    if not fields.get("cjk_bigrams"):
        assert tokens_of(fields["tool_text"]) == tokens_of(text)


@given(st.lists(st.tuples(st.sampled_from("xÉß"), st.sampled_from([1, 100, 127, 128, 200, 255, 256, 600]))))
def test_only_overlong_words_are_dropped(runs: list[tuple[str, int]]) -> None:
    text = "first " + "-".join(letter * length for letter, length in runs) + " last"
    message = IndexMessage(position=0, role="tool", text=text.encode())
    document, *_ = encode_session(SESSION, [encode_message(message)], with_title=False)
    found = msgspec.json.decode(document)["tool_text"].split()
    assert found == tokens_of(text)
    assert max(map(len, map(str.encode, found))) <= 255

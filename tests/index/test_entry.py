"""What a message becomes before the engine sees it."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from backscroll.index.engine.documents import IndexMessage, IndexSession
from backscroll.index.engine.encode import encode_message, encode_session
from backscroll.index.engine.schema import tokens_of

WHOSE = IndexSession(session=7, source="claude-code", title='Say "hi" \\ twice', workspace_hash="0" * 32)


def test_what_would_be_escaped_only_lies_between_words() -> None:
    said = IndexMessage(position=0, role="user", text='a "quoted"\tword\n\\ and\x00more')
    (document,) = encode_session(WHOSE, [encode_message(said)], with_title=False)
    assert msgspec.json.decode(document)["said"] == "a  quoted  word   and more"


def test_a_title_is_found_with_the_first_message() -> None:
    spoken = [IndexMessage(position=place, role="user", text=f"word{place}") for place in range(2)]
    first, second = map(msgspec.json.decode, encode_session(WHOSE, map(encode_message, spoken)))
    assert tokens_of(first["said"]) == ["word0", "say", "hi", "twice"]
    assert tokens_of(second["said"]) == ["word1"]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_word_of_any_text_is_lost_on_the_way(text: str) -> None:
    done = IndexMessage(position=0, role="tool", text=text.encode())
    (document,) = encode_session(WHOSE, [encode_message(done)], with_title=False)
    fields = msgspec.json.decode(document)
    if not fields.get("pairs"):
        assert tokens_of(fields["done"]) == tokens_of(text)


@given(st.lists(st.tuples(st.sampled_from("xÉß"), st.sampled_from([1, 100, 127, 128, 200, 255, 256, 600]))))
def test_only_words_too_long_for_the_dictionary_are_left_out(runs: list[tuple[str, int]]) -> None:
    text = "first " + "-".join(letter * length for letter, length in runs) + " last"
    done = IndexMessage(position=0, role="tool", text=text.encode())
    (document,) = encode_session(WHOSE, [encode_message(done)], with_title=False)
    found = msgspec.json.decode(document)["done"].split()
    assert found == tokens_of(text)
    assert max(map(len, map(str.encode, found))) <= 255

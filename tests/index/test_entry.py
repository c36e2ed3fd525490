"""What a message becomes before the engine sees it."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from backscroll.index.engine.documents import Spoken, Whose
from backscroll.index.engine.encode import entry, whole
from backscroll.index.engine.schema import words_of

WHOSE = Whose(session=7, source="claude-code", title='Say "hi" \\ twice', workspace_hash="0" * 32)


def test_what_would_be_escaped_only_lies_between_words() -> None:
    said = Spoken(position=0, role="user", text='a "quoted"\tword\n\\ and\x00more')
    (document,) = whole(WHOSE, [entry(said)], with_title=False)
    assert msgspec.json.decode(document)["said"] == "a  quoted  word   and more"


def test_a_title_is_found_with_the_first_message() -> None:
    spoken = [Spoken(position=place, role="user", text=f"word{place}") for place in range(2)]
    first, second = map(msgspec.json.decode, whole(WHOSE, map(entry, spoken)))
    assert words_of(first["said"]) == ["word0", "say", "hi", "twice"]
    assert words_of(second["said"]) == ["word1"]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_word_of_any_text_is_lost_on_the_way(text: str) -> None:
    done = Spoken(position=0, role="tool", text=text.encode())
    (document,) = whole(WHOSE, [entry(done)], with_title=False)
    fields = msgspec.json.decode(document)
    if not fields.get("pairs"):
        assert words_of(fields["done"]) == words_of(text)


@given(st.lists(st.tuples(st.sampled_from("xÉß"), st.sampled_from([1, 100, 127, 128, 200, 255, 256, 600]))))
def test_only_words_too_long_for_the_dictionary_are_left_out(runs: list[tuple[str, int]]) -> None:
    text = "first " + "-".join(letter * length for letter, length in runs) + " last"
    done = Spoken(position=0, role="tool", text=text.encode())
    (document,) = whole(WHOSE, [entry(done)], with_title=False)
    found = msgspec.json.decode(document)["done"].split()
    assert found == words_of(text)
    assert max(map(len, map(str.encode, found))) <= 255

"""When a newer version of a row may take the place of the older one."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.archive.storage.row_versions import is_superset

_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=12,
)
_DOCUMENTS = st.dictionaries(_WORDS, _VALUES, min_size=1, max_size=5)


def _bytes(document: Any) -> bytes:
    return msgspec.json.encode(document)


def _grown(draw: st.DrawFn, value: Any) -> Any:
    """The same value with more in it."""
    match value:
        case str():
            return value + draw(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=3))
        case list():
            grown = [_grown(draw, item) for item in value]
            grown.insert(draw(st.integers(0, len(grown))), draw(_WORDS))
            return grown
        case dict():
            return {"more than there was": 1} | {name: _grown(draw, item) for name, item in value.items()}
    return value


@st.composite
def _pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    old = draw(_DOCUMENTS)
    return old, _grown(draw, old)


@given(_DOCUMENTS)
def test_a_row_contains_itself(document: Any) -> None:
    assert is_superset(_bytes(document), _bytes(document))
    assert is_superset(_bytes(dict(reversed(document.items()))), _bytes(document))


@given(_pairs())
def test_a_row_that_only_grew_contains_what_it_was(pair: tuple[Any, Any]) -> None:
    old, new = pair
    assert is_superset(_bytes(new), _bytes(old))


@given(_DOCUMENTS, st.data())
def test_a_row_that_lost_a_field_does_not(document: Any, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(document)))
    assert not is_superset(
        _bytes({key: item for key, item in document.items() if key != name}), _bytes(document)
    )
    assert is_superset(_bytes({}), _bytes({name: document[name]}), (name,))


@given(st.lists(_WORDS, min_size=1, max_size=9), st.data())
def test_a_list_that_lost_an_item_does_not(words: list[str], data: st.DataObject) -> None:
    items = [f"{number} {word}" for number, word in enumerate(words)]
    place = data.draw(st.integers(0, len(items) - 1))
    left = items[:place] + items[place + 1 :]
    assert not is_superset(_bytes({"list": left}), _bytes({"list": items}))
    assert is_superset(_bytes({"list": items}), _bytes({"list": left}))


@given(st.binary(), st.binary())
def test_bytes_contain_what_they_begin_with(old: bytes, more: bytes) -> None:
    assert is_superset(old + more, old)


@given(st.binary(), st.binary())
def test_any_bytes_can_be_compared(one: bytes, other: bytes) -> None:
    is_superset(one, other)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"text": "Totals"}, {"text": "Totals are off"}, True),
        ({"text": "Totals are off"}, {"text": "Totals"}, False),
        ({"text": "yes"}, {"text": "no"}, False),
        ({"at": 1}, {"at": 2}, True),
        ({"data": {"0": 137, "1": 80}}, {"data": {"0": 137, "1": 81}}, False),
        ({"list": [1, 2]}, {"list": [1, 3]}, False),
        ({"text": None}, {"text": "said"}, True),
        ({"text": "said"}, {"text": None}, False),
        ({"params": '{"path":"a.py"}'}, {"params": '{"path":"a.py","range":[1,2]}'}, True),
        ({"params": '{"path":"a.py"}'}, {"params": '{"path":"b.py"}'}, False),
        ({"headers": [{"id": "a"}, {"id": "b"}]}, {"headers": [{"id": "a"}, {"id": "x"}, {"id": "b"}]}, True),
        ({"headers": [{"id": "a"}, {"id": "b"}]}, {"headers": [{"id": "b"}, {"id": "a"}]}, False),
    ],
)
def test_what_counts_as_lost(old: Any, new: Any, expected: bool) -> None:
    assert is_superset(_bytes(new), _bytes(old)) is expected
    assert is_superset(_bytes(new).hex().encode(), _bytes(old).hex().encode()) is expected


def test_what_passes_is_not_lost() -> None:
    old, new = {"status": "generating", "name": "a"}, {"status": "completed", "name": "a"}
    assert not is_superset(_bytes(new), _bytes(old))
    assert is_superset(_bytes(new), _bytes(old), ("status",))
    assert is_superset(b"anything", b"something else", ("",))

"""A newer row version replaces the older one only if it contains all of its content."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.archive.storage.raw_rows import is_superset

_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=12,
)
_DOCUMENTS = st.dictionaries(_TEXTS, _VALUES, min_size=1, max_size=5)


def _encode(document: Any) -> bytes:
    return msgspec.json.encode(document)


def _grow(draw: st.DrawFn, value: Any) -> Any:
    """Return the value with more content."""
    match value:
        case str():
            return value + draw(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=3))
        case list():
            grown = [_grow(draw, item) for item in value]
            grown.insert(draw(st.integers(0, len(grown))), draw(_TEXTS))
            return grown
        case dict():
            return {"new field": 1} | {name: _grow(draw, item) for name, item in value.items()}
    return value


@st.composite
def _pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    old = draw(_DOCUMENTS)
    return old, _grow(draw, old)


@given(_DOCUMENTS)
def test_a_row_is_a_superset_of_itself(document: Any) -> None:
    assert is_superset(_encode(document), _encode(document))
    assert is_superset(_encode(dict(reversed(document.items()))), _encode(document))


@given(_pairs())
def test_a_row_that_only_grew_is_a_superset(pair: tuple[Any, Any]) -> None:
    old, new = pair
    assert is_superset(_encode(new), _encode(old))


@given(_DOCUMENTS, st.data())
def test_a_row_that_lost_a_field_is_no_superset(document: Any, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(document)))
    assert not is_superset(
        _encode({key: item for key, item in document.items() if key != name}), _encode(document)
    )
    assert is_superset(_encode({}), _encode({name: document[name]}), (name,))


@given(st.lists(_TEXTS, min_size=1, max_size=9), st.data())
def test_a_list_that_lost_an_item_is_no_superset(words: list[str], data: st.DataObject) -> None:
    items = [f"{index} {word}" for index, word in enumerate(words)]
    removed = data.draw(st.integers(0, len(items) - 1))
    rest = items[:removed] + items[removed + 1 :]
    assert not is_superset(_encode({"list": rest}), _encode({"list": items}))
    assert is_superset(_encode({"list": items}), _encode({"list": rest}))


@given(st.binary(), st.binary())
def test_bytes_are_a_superset_of_their_prefix(old: bytes, more: bytes) -> None:
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
def test_superset_examples(old: Any, new: Any, expected: bool) -> None:
    assert is_superset(_encode(new), _encode(old)) is expected
    assert is_superset(_encode(new).hex().encode(), _encode(old).hex().encode()) is expected


def test_volatile_fields_may_change() -> None:
    old, new = {"status": "generating", "name": "a"}, {"status": "completed", "name": "a"}
    assert not is_superset(_encode(new), _encode(old))
    assert is_superset(_encode(new), _encode(old), ("status",))
    assert is_superset(b"anything", b"something else", ("",))

"""Kinds of stores and units."""

from collections.abc import Iterator

import pytest

from backscroll.model import store
from backscroll.model.store import STORES, StoreKind, UnitKind, declare, store_rank, stores_with


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Remove what a test declares."""
    stores, unit_kinds = dict(STORES), dict(store.UNIT_KINDS)
    yield
    for known, before in ((STORES, stores), (store.UNIT_KINDS, unit_kinds)):
        known.clear()
        known.update(before)


def test_a_more_complete_store_comes_first() -> None:
    declare([StoreKind("post", "prompts"), StoreKind("tape", "copy"), StoreKind("deck")], [])
    ranks = [store_rank(name) for name in ("deck", "tape", "hooks", "post", "usage")]
    assert ranks == sorted(ranks)


def test_stores_with_the_same_content_keep_their_order() -> None:
    declare([StoreKind("deck"), StoreKind("attic")], [])
    declare([StoreKind("barn")], [])
    assert store_rank("deck") < store_rank("attic") < store_rank("barn")


def test_an_unknown_store_is_the_last() -> None:
    assert store_rank("barn") == len(STORES)
    assert store.store_content("barn") is None


def test_stores_are_found_by_their_content() -> None:
    declare([StoreKind("tape", "copy")], [])
    assert "tape" in stores_with("copy", "text")
    assert "tape" not in stores_with("records")


def test_a_kind_can_be_declared_twice_but_not_with_another_meaning() -> None:
    declare([StoreKind("deck")], [UnitKind("barn")])
    declare([StoreKind("deck")], [UnitKind("barn")])
    with pytest.raises(ValueError, match="'deck'"):
        declare([StoreKind("deck", "copy")], [])
    with pytest.raises(ValueError, match="'barn'"):
        declare([], [UnitKind("barn", is_single=False)])

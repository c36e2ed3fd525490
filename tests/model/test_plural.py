"""Counts with their nouns."""

import pytest

from backscroll.model.text import pluralize
from backscroll.render.humanize import compact_count


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1200, "1,200 rows")]
)
def test_a_noun_agrees_with_its_count(count: int, text: str) -> None:
    assert pluralize(count, "row") == text


def test_a_noun_can_have_an_irregular_plural() -> None:
    assert [pluralize(count, "match", "matches") for count in (1, 2)] == ["1 match", "2 matches"]


def test_a_short_count_agrees_with_its_noun() -> None:
    assert [compact_count(count, "token") for count in (1, 1200)] == ["1 token", "1.2k tokens"]

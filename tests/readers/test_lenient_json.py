"""Lenient JSON: input that a strict parser rejects is repaired or skipped."""

import re

import pytest

from backscroll.readers import lenient_json

STARTS = re.compile(r"[{\[]")


@pytest.mark.parametrize("depth", [100, 600, 900])
@pytest.mark.parametrize("bracket", ["[]", "{}"])
def test_values_after_deep_nesting_are_found(depth: int, bracket: str) -> None:
    opened = "[" if bracket == "[]" else '{"a":'
    text = f"{opened * depth}1{bracket[1] * depth} [2]"
    assert [2] in [value for _, _, value in lenient_json.scan(text, STARTS)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "\\ud800"}', {"a": "\ufffd"}),
        ('{"a": 1e999}', {"a": None}),
        ('{"a": NaN}', {"a": None}),
        (f'{{"a": {10**30}}}', {"a": 1e30}),
        ('"a\tb"', "a\tb"),
        ("\ufeff[1]", [1]),
    ],
)
def test_invalid_values_are_repaired(text: str, value: object) -> None:
    assert lenient_json.load(text.encode()) == value

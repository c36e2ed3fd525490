"""Blanking of secrets in database values."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.sources.secret_fields import blank

KEY = "FAKEsecretNEVERshow="
_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"a":1,"blobEncryptionKey":"%s","b":2}', b'{"a":1,"blobEncryptionKey":"","b":2}'),
        (b'{"blobEncryptionKey" : "%s\\"more" }', b'{"blobEncryptionKey" : "" }'),
        (b'[{"x":{"speculativeSummarizationEncryptionKey":"%s"}}]', None),
        (b'{"blobEncryptionKey":"%s', b'{"blobEncryptionKey":""'),
        (b'{"blobEncryptionKey":"%s\\', b'{"blobEncryptionKey":""'),
        (b'{"blobEncryptionKey":{"data":"%s"}}', b'{"blobEncryptionKey":""}'),
        (b'{"blobEncryptionKey":["%s', b""),
    ],
)
def test_a_key_is_blanked_in_complete_and_truncated_values(value: bytes, expected: bytes | None) -> None:
    blanked, names = blank(value % KEY.encode())
    assert KEY.encode() not in blanked
    assert names
    assert expected is None or blanked == expected


@given(_TEXT, _TEXT, _TEXT)
def test_all_other_values_stay_unchanged(before: str, key: str, after: str) -> None:
    document = {"before": before, "blobEncryptionKey": key, "after": [after, {"blobEncryptionKey": None}]}
    blanked, names = blank(msgspec.json.encode(document))
    assert msgspec.json.decode(blanked) == document | {"blobEncryptionKey": ""}
    assert names == ("blobEncryptionKey",)


@given(_TEXT)
def test_a_key_in_the_text_of_a_message_is_not_blanked(text: str) -> None:
    sentence = f'set "blobEncryptionKey": "{text}" in the settings'
    value = msgspec.json.encode({"text": sentence, "name": "blobEncryptionKey"})
    assert blank(value) == (value, ())


@given(st.binary())
def test_blanking_never_raises(value: bytes) -> None:
    assert blank(value) == (value, ())
    blank(b'"blobEncryptionKey":' + value)

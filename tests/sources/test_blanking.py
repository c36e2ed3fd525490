"""Keys that lie in rows: taken out, and nothing else with them."""

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
def test_a_key_is_taken_out_of_whole_and_torn_rows(value: bytes, expected: bytes | None) -> None:
    told, names = blank(value % KEY.encode())
    assert KEY.encode() not in told
    assert names
    assert expected is None or told == expected


@given(_TEXT, _TEXT, _TEXT)
def test_everything_else_stays_as_it_was(before: str, key: str, after: str) -> None:
    document = {"before": before, "blobEncryptionKey": key, "after": [after, {"blobEncryptionKey": None}]}
    told, names = blank(msgspec.json.encode(document))
    assert msgspec.json.decode(told) == document | {"blobEncryptionKey": ""}
    assert names == ("blobEncryptionKey",)


@given(_TEXT)
def test_what_somebody_said_of_keys_is_no_key(text: str) -> None:
    said = f'set "blobEncryptionKey": "{text}" in the settings'
    value = msgspec.json.encode({"text": said, "name": "blobEncryptionKey"})
    assert blank(value) == (value, ())


@given(st.binary())
def test_any_bytes_can_be_looked_through(value: bytes) -> None:
    assert blank(value) == (value, ())
    blank(b'"blobEncryptionKey":' + value)

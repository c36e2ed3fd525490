"""Images in a record are found by their content."""

import json
from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st

from backscroll.readers.lenient_json import embedded_images

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
JPEG = b"\xff\xd8\xff\xe0" + bytes(40)


def record(*blocks: object) -> bytes:
    return json.dumps({"message": {"content": list(blocks)}}).encode()


def base64_block(content: bytes) -> object:
    source = {"type": "base64", "media_type": "image/png", "data": b64encode(content).decode()}
    return {"type": "image", "source": source}


def test_images_are_found_in_order_and_once() -> None:
    found = list(embedded_images(record(base64_block(PNG), base64_block(JPEG), base64_block(PNG))))
    assert found == [("image/png", PNG), ("image/jpeg", JPEG)]


def test_bytes_as_an_object_with_numbers_are_an_image() -> None:
    numbers = {str(index): byte for index, byte in enumerate(PNG)}
    assert list(embedded_images(record({"images": [{"data": numbers}]}))) == [("image/png", PNG)]


def test_other_content_is_no_image() -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    html = b"<html><script>alert(1)</script></html>" + bytes(20)
    riff = b"RIFF\0\0\0\0WAVE" + bytes(40)
    for content in (svg, html, riff):
        assert list(embedded_images(record(base64_block(content)))) == []
    assert list(embedded_images(b"not JSON")) == []


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    list(embedded_images(data))


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=60),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["data", "base64", "0", "1", "x"]), inner, max_size=4)
        ),
    )
)
def test_any_document_is_read_without_an_error(document: object) -> None:
    list(embedded_images(json.dumps(document).encode()))

"""The table of export formats."""

from typing import get_args

import pytest

from backscroll.model.export import FORMATS, Format, format_of_file, format_titles


def test_the_table_has_every_format() -> None:
    assert set(FORMATS) == set(get_args(Format))


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("session.md", "md"),
        ("SESSION.MARKDOWN", "md"),
        ("a.b.htm", "html"),
        ("lines.ndjson", "jsonl"),
        ("session.doc", None),
        ("session", None),
        (".md", None),
    ],
)
def test_the_ending_of_a_file_names_its_format(name: str, format_: Format | None) -> None:
    assert format_of_file(name) == format_


def test_a_sentence_names_every_format() -> None:
    assert format_titles() == "Markdown, HTML, JSON, JSON Lines or text"

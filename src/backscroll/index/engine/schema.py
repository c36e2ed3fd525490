"""What the index knows of a message: the schema, and how each field's text is cut into terms.

Nothing that was said is stored. What people and assistants said and what tools
put out lie in fields of their own, so that the first can weigh more.
"""

import re
import unicodedata
from functools import cache, lru_cache

import tantivy

from backscroll.index.text.normalize import fold_accents
from backscroll.index.text.tokenize import MAX_WORD_BYTES, bigrams, has_cjk_pair, split_cjk, to_nfc

__all__ = [
    "METADATA_TAG",
    "TEXT_FIELDS",
    "VERSION",
    "open_index",
    "path_tokens",
    "schema",
    "tag",
    "tokenizer",
    "tokens_of",
]

VERSION = 4  # to be raised with every change to the fields, the analysis or the tags

TEXT_FIELDS = ("said", "done")  # of which each message has one: ways.py relies on it
_LONGEST_TAG = 200
_SPACE = re.compile(r"\s+")
_OPEN_SPACE = "\u2423"  # stands for white space within a tag
METADATA_TAG = "note:"  # the tag of the one document that is no message: it holds version and watermark


@cache
def schema() -> tantivy.Schema:
    """The fields of this version."""
    builder = tantivy.SchemaBuilder()
    for name in TEXT_FIELDS:
        builder.add_text_field(name, tokenizer_name="words", index_option="position")
    builder.add_text_field("parts", tokenizer_name="words", index_option="freq")
    builder.add_text_field("pairs", tokenizer_name="spaced", index_option="position")
    builder.add_text_field("files", tokenizer_name="words", index_option="position")
    builder.add_text_field("tags", tokenizer_name="spaced", index_option="basic")
    builder.add_unsigned_field("session", fast=True, indexed=True)
    builder.add_unsigned_field("position", fast=True)
    builder.add_integer_field("at", fast=True)
    builder.add_text_field("note", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


@cache
def tokenizer() -> tantivy.TextAnalyzer:
    """Cuts text without accents into the words that the dictionary may have, in lower case."""
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(MAX_WORD_BYTES + 1))
        .filter(tantivy.Filter.lowercase())
        .build()
    )


def tokens_of(text: str) -> list[str]:
    """The words of a text as the dictionary has them."""
    return tokenizer().analyze(fold_accents(to_nfc(text)))


def path_tokens(path: str, *, is_part: bool = False) -> list[str]:
    """The words of a path, or of a part of one, as the dictionary of files has them.

    Of what is written without spaces there are pairs of characters, and the last one: a part may end before.
    """
    found: list[str] = []
    for place, piece in enumerate(split_cjk(to_nfc(path))):
        found += bigrams(unicodedata.normalize("NFKC", piece)) if place % 2 else tokens_of(piece)
    return found[:-1] if is_part and has_cjk_pair(path[-2:]) else found


def open_index(folder: str, *, is_new: bool = False) -> tantivy.Index:
    """The index in a folder, ready to be read and written; ValueError when it is not one."""
    index = tantivy.Index(schema(), folder, reuse=False) if is_new else tantivy.Index.open(folder)
    # Every step costs for every word: texts come here as words between spaces (`folding.bare`).
    for name in ("words", "spaced"):
        index.register_tokenizer(name, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    index.config_reader("manual")
    return index


@lru_cache(maxsize=1 << 14)
def tag(name: str, value: str = "") -> str:
    """A fact about a message as one term: ``role:user``."""
    return f"{name}:{_SPACE.sub(_OPEN_SPACE, to_nfc(value).lower())}"[:_LONGEST_TAG]

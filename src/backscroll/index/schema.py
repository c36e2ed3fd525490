"""Index schema: fields, tokenizers and version.

No message text is stored. Prose of users and assistants and the text of tools are
separate fields, so that prose can have a higher weight.
"""

import re
import unicodedata
from functools import cache, lru_cache

import msgspec
import tantivy

from backscroll.index.analysis import MAX_WORD_BYTES, bigrams, fold_accents, has_cjk_pair, split_cjk, to_nfc

VERSION = 7  # increment with every change to the fields, the tokenization or the tags
TEXT_FIELDS = ("prose", "tool_text")  # each message has exactly one of them
METADATA_TAG = "metadata:"  # marks the document with version and watermark
SESSION_TAG = "document:session"  # marks the documents of whole sessions
LONG_TAG = "long:"  # marks messages of more than `LONG_TEXT_CHARS` characters
LONG_TEXT_CHARS = 20_000
_MAX_TAG_CHARS = 200
_WHITE_SPACE = re.compile(r"\s+")
_TAG_SPACE = "\u2423"  # replaces white space inside a tag


class IndexMetadata(msgspec.Struct):
    """Version and watermark, stored in the index itself."""

    version: int = VERSION
    watermark: str | None = None


@cache
def schema() -> tantivy.Schema:
    """Return the schema of this version."""
    builder = tantivy.SchemaBuilder()
    for name in TEXT_FIELDS:
        builder.add_text_field(name, tokenizer_name="words", index_option="position")
    builder.add_text_field("subwords", tokenizer_name="words", index_option="freq")
    builder.add_text_field("session_text", tokenizer_name="words", index_option="freq")
    builder.add_text_field("session_title", tokenizer_name="words", index_option="freq")
    builder.add_text_field("cjk_bigrams", tokenizer_name="spaced", index_option="position")
    builder.add_text_field("files", tokenizer_name="words", index_option="position")
    builder.add_text_field("tags", tokenizer_name="spaced", index_option="basic")
    builder.add_unsigned_field("session", fast=True, indexed=True)
    builder.add_unsigned_field("position", fast=True)
    builder.add_integer_field("at", fast=True)
    builder.add_text_field("metadata", stored=True, tokenizer_name="raw", index_option="basic")
    return builder.build()


@cache
def tokenizer() -> tantivy.TextAnalyzer:
    """Return the tokenizer for text without accents. It drops overlong tokens and lowercases the others."""
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(MAX_WORD_BYTES + 1))
        .filter(tantivy.Filter.lowercase())
        .build()
    )


def tokens_of(text: str) -> list[str]:
    """Return the tokens of a text as the term dictionary contains them."""
    return tokenizer().analyze(fold_accents(to_nfc(text)))


def path_tokens(path: str, *, is_part: bool = False) -> list[str]:
    """Return the tokens of a path, or of part of one, as in the ``files`` field.

    CJK runs become bigrams plus the last character. A part may end inside a run, so it omits that last one.
    """
    found: list[str] = []
    for number, piece in enumerate(split_cjk(to_nfc(path))):
        found += bigrams(unicodedata.normalize("NFKC", piece)) if number % 2 else tokens_of(piece)
    return found[:-1] if is_part and has_cjk_pair(path[-2:]) else found


def open_index(folder: str, *, is_new: bool = False) -> tantivy.Index:
    """Open or create the index in a folder. Raises ValueError if the folder contains no index."""
    index = tantivy.Index(schema(), folder, reuse=False) if is_new else tantivy.Index.open(folder)
    # Every filter costs time per token, so texts arrive normalized (`normalize_words`).
    for name in ("words", "spaced"):
        index.register_tokenizer(name, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
    index.config_reader("manual")
    return index


@lru_cache(maxsize=1 << 14)
def tag(name: str, value: str = "") -> str:
    """Return an attribute of a message as one term: ``role:user``."""
    return f"{name}:{_WHITE_SPACE.sub(_TAG_SPACE, to_nfc(value).lower())}"[:_MAX_TAG_CHARS]

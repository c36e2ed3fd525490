"""Search over index and archive: the index finds messages, the archive provides their text.

search             word search
pattern_search     search for a substring or a regular expression
session_matches    all matches in one session
matches            what both return: a hit with its message and the text to show
excluded_sessions  sessions that contain an excluded word
facets             counts of matching messages by property
pattern_counter    number of messages that match a pattern
hit_text           the text of a hit
second_match       another message, if the words are spread over a session
title_hits         session titles that match a pattern
byte_prefilter     skip stored messages that cannot match, without decoding them
recall             sessions that are relevant to a task
excerpts           excerpts of a recalled session within a token budget
known_secrets      named secrets to redact
synonyms           synonyms (data in synonyms.txt)

A word search does not need the names below. They are loaded on first use.
"""

from typing import TYPE_CHECKING

from backscroll.lazy_names import lazy_names

if TYPE_CHECKING:
    from backscroll.search.facets import count_pattern_facets, count_word_facets
    from backscroll.search.known_secrets import learn_named_secrets
    from backscroll.search.pattern_search import compile_pattern, search_pattern

__all__ = [
    "compile_pattern",
    "count_pattern_facets",
    "count_word_facets",
    "learn_named_secrets",
    "search_pattern",
]

__getattr__ = lazy_names(
    __name__,
    {
        ".facets": "count_pattern_facets count_word_facets",
        ".known_secrets": "learn_named_secrets",
        ".pattern_search": "compile_pattern search_pattern",
    },
)

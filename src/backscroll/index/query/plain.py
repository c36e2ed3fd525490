"""Queries that are made of nothing but single terms, which the engine has lists of."""

from collections.abc import Iterable

from msgspec import Struct

from backscroll.index.engine.schema import tag, tokens_of
from backscroll.index.query.parser import Clause, Filter, Term, Word
from backscroll.index.text.tokenize import extract_cjk

__all__ = ["Plain", "plain_of", "plain_tag", "plain_word"]

_ALIASES = {("has", "thinking"): "role:thinking"}


class Plain(Struct, frozen=True):
    """Words in messages of some tags and times."""

    words: list[str]  # all of which a message must have
    tags: list[list[str]]  # of each of which it must have one
    is_timed: bool  # whether it must be of a certain time


def plain_of(words: Iterable[Clause], filters: Iterable[Clause], *, is_timed: bool) -> Plain | None:
    """What some clauses ask for; None when that is more than single words, or none at all."""
    found: list[str] = []
    for clause in words:
        word = plain_word(clause.any_of[0])
        if word is None or len(clause.any_of) > 1:
            return None
        found.append(word)
    tags: list[list[str]] = []
    for clause in filters:
        some = [one for term in clause.any_of if (one := plain_tag(term)) is not None]
        if len(some) < len(clause.any_of):
            return None
        tags.append(some)
    return Plain(found, tags, is_timed) if found else None


def plain_word(term: Term) -> str | None:
    """A single word as the dictionary has it; None for anything else."""
    if not isinstance(term, Word) or term.is_prefix or extract_cjk(term.text)[1]:
        return None
    tokens = tokens_of(term.text)
    return tokens[0] if len(tokens) == 1 else None


def plain_tag(term: Term) -> str | None:
    """The one tag that a filter asks for; None when it asks for several words, tags or a pattern."""
    if not isinstance(term, Filter) or term.name in ("file", "model") or "*" in term.value:
        return None
    if term.name == "workspace" and "/" in term.value:
        return None
    return _ALIASES.get((term.name, term.value)) or tag(term.name, term.value)

"""Split prose into sentences and classify them.

Classification uses English words. For other languages a handoff still contains what follows from the order of
messages: the requests, the last answer, files and commands.
"""

import re
from collections.abc import Iterator

__all__ = [
    "information_score",
    "is_constraint",
    "is_open_item",
    "is_question",
    "sentences",
    "verbatim_sentences",
]

_CODE_BLOCK = re.compile(r"^(```|~~~).*?(?:^\1\s*$|\Z)", re.MULTILINE | re.DOTALL)
_LIST_MARKER = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)]|>)\s+")
# Table rows, headings, introductions of lists.
_NOT_PROSE = re.compile(r"^\s*(?:\||#{1,6}\s|[-=*_]{3,}\s*$)|:\**\s*$")
_BOLD = re.compile(r"\*\*|__(?=\S)|(?<=\S)__")
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)"
    r"(?! (?:Januar|Februar|März|April|Mai|Ju[nl]i|August|September|Oktober|November|Dezember)\b)"  # „3. Mai“
    r"[\"')*`]*\s+(?=[\"'(*\[]*(?:`|(?![a-zß-öø-ÿа-яёα-ω_])\w))|(?<=[。！？])"
)
_MIN_SENTENCE_CHARS = 3
_MAX_SENTENCE_CHARS = 1000  # the rest of a longer one is ignored

_OPEN = re.compile(
    r"\bopen(?:: | is | for | question)|\b(?:is|are|remains?|stays?|left) open\b|"
    r"\bnot\b[^.;]{0,40}\byet\b|"
    r"\b(?:(?-i:TODO|FIXME)|yet to|unresolved|undecided|follow[- ]?ups?|missing|untested|blocked|"
    r"(?:is|are|was|were|has been|have been) not (?:done|tested|committed|pushed|fixed|written|imported)|"
    r"still (?:has|have|needs?|carr\w+|fails?|missing|open|to)|remain(?:s|ing)|"
    r"some(?:one|body) (?:has|needs|must|should))\b|(?:^|\b)left: ",
    re.IGNORECASE,
)
# Words that indicate an open item only in the last answer of a session.
_MAYBE_OPEN = re.compile(
    r"\b(?:open|left(?! out| alone| behind)|still|unclear|unknown|pending|next(?: steps?)?|for later|"
    r"there (?:is|are) no|needs? to|has to|have to|someone|until|unless|come back|waiting)\b",
    re.IGNORECASE,
)
_NOT_OPEN = re.compile(r"\b(?:nothing|none)\b[^.]*\b(?:left|open|missing|remains?)\b", re.IGNORECASE)
_CONSTRAINT = re.compile(
    r"\b(?:don't|do not|doesn't|must|should|shall|never|always|only|instead|rather|prefer|let's|let us|keep|"
    r"avoid|without|no longer|not|no|use|stop|make sure|at (?:least|most)|has to|as a|counts? as|opt-in)\b",
    re.IGNORECASE,
)
_CONCLUSION = re.compile(
    r"\b(?:because|so that|therefore|instead|rather than|must|should|decid\w+|turns? out|cause[sd]?|never|"
    r"always|only|fixed|corrected|fail\w*|broken|broke|killed|works?|propos\w+|drops?|dropped|keeps?|uses?|chosen|"
    r"done|added|removed|replaced|means|exit code|not \w+ but|no longer)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d")
_IDENTIFIER = re.compile(r"`[^`]+`|\b\w+_\w+\b|\b\w+\.\w{1,4}\b|\b[a-z]+[A-Z]\w+\b|\b[A-Z]{2,}\b")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text without code and bold type. A list item is a sentence of its own."""
    for line in _prose_lines(text):
        for part in _SENTENCE_END.split(_BOLD.sub("", line).strip()):
            part = part.strip(" *_")[:_MAX_SENTENCE_CHARS]
            if _is_sentence(part):
                yield part


def verbatim_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text without code blocks. Each is an exact part of the text."""
    for line in _prose_lines(text):
        start = 0
        ends = [found.start() + len(found[0].rstrip()) for found in _SENTENCE_END.finditer(line)]
        for end in [*ends, len(line)]:
            part = line[start:end].strip()
            start = end
            if _is_sentence(part):
                yield part


def _prose_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text that are neither code, tables nor headings, without list markers."""
    for line in _CODE_BLOCK.sub("\n", text).splitlines():
        if not _NOT_PROSE.search(line):
            yield _LIST_MARKER.sub("", line).strip()


def _is_sentence(part: str) -> bool:
    return len(part) >= _MIN_SENTENCE_CHARS and any(map(str.isalnum, part))


def is_question(sentence: str) -> bool:
    """Return whether a sentence ends with a question mark."""
    return sentence.rstrip("\"'`)* ").endswith(("?", "？"))


def is_open_item(sentence: str, *, is_last: bool = False) -> bool:
    """Return whether a sentence mentions unfinished work. More words count in the last answer."""
    if _NOT_OPEN.search(sentence):
        return False
    return bool(_OPEN.search(sentence) or (is_last and _MAYBE_OPEN.search(sentence)))


def is_constraint(sentence: str) -> bool:
    """Return whether a sentence states a requirement or a preference."""
    return _CONSTRAINT.search(sentence) is not None


def information_score(sentence: str) -> int:
    """Score the information in a sentence from 0 to 4: conclusions, numbers, names."""
    conclusions = min(2, len(_CONCLUSION.findall(sentence)))
    return conclusions + (_NUMBER.search(sentence) is not None) + (_IDENTIFIER.search(sentence) is not None)

"""Prose cut into sentences, and what a sentence sounds like.

The marks are English words; in another language a briefing still has what the
order of a session tells: who spoke last, what was asked, what came of it.
"""

import re
from collections.abc import Iterator

__all__ = ["information_score", "is_constraint", "is_open_item", "is_question", "sentences"]

_FENCED = re.compile(r"^(```|~~~).*?(?:^\1\s*$|\Z)", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)]|>)\s+")
_NO_PROSE = re.compile(r"^\s*(?:\||#{1,6}\s|[-=*_]{3,}\s*$)|:\**\s*$")  # rows of tables, headings, lead-ins
_STRONG = re.compile(r"\*\*|__(?=\S)|(?<=\S)__")
_ENDED = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)[\"')*`]*\s+(?=[\"'(`*\[]*[A-Z0-9À-Þ])|(?<=[。！？])")
_SHORTEST = 3  # characters
_LONGEST = 1000  # what is longer is no sentence, and all of it is not looked at

_OPEN = re.compile(
    r"\bopen(?:: | is | for | question)|\b(?:is|are|remains?|stays?|left) open\b|"
    r"\bnot\b[^.;]{0,40}\byet\b|"
    r"\b(?:todo|fixme|yet to|unresolved|undecided|follow[- ]?ups?|missing|untested|blocked|"
    r"(?:is|are|was|were|has been|have been) not (?:done|tested|committed|pushed|fixed|written|imported)|"
    r"still (?:has|have|needs?|carr\w+|fails?|missing|open|to)|remain(?:s|ing)|"
    r"some(?:one|body) (?:has|needs|must|should))\b|(?:^|\b)left: ",
    re.IGNORECASE,
)
# What may speak of something open when it is said at the end, and otherwise mostly does not.
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
_NAME = re.compile(r"`[^`]+`|\b\w+_\w+\b|\b\w+\.\w{1,4}\b|\b[a-z]+[A-Z]\w+\b|\b[A-Z]{2,}\b")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, code aside; an item of a list is one by itself."""
    for line in _FENCED.sub("\n", text).splitlines():
        if _NO_PROSE.search(line):
            continue
        line = _STRONG.sub("", _ITEM.sub("", line)).strip()
        for part in _ENDED.split(line):
            part = part.strip(" *_")[:_LONGEST]
            if len(part) >= _SHORTEST and any(map(str.isalnum, part)):
                yield part


def is_question(sentence: str) -> bool:
    return sentence.rstrip("\"'`)* ").endswith(("?", "？"))


def is_open_item(sentence: str, *, is_last: bool = False) -> bool:
    """Whether it speaks of something that is not done; words at the end of a session do so sooner."""
    if _NOT_OPEN.search(sentence):
        return False
    return bool(_OPEN.search(sentence) or (is_last and _MAYBE_OPEN.search(sentence)))


def is_constraint(sentence: str) -> bool:
    """Whether it says how something is to be, or not to be."""
    return _CONSTRAINT.search(sentence) is not None


def information_score(sentence: str) -> int:
    """How much a sentence tells, from 0 to 4: conclusions, numbers, names."""
    said = min(2, len(_CONCLUSION.findall(sentence)))
    return said + (_NUMBER.search(sentence) is not None) + (_NAME.search(sentence) is not None)

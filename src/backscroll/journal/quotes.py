"""Check that quotes are verbatim."""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from backscroll.journal.material import Material, is_spoken
from backscroll.model.code.journal import Quote, QuoteProblem, Speaker
from backscroll.render.handoff.sentences import verbatim_sentences

__all__ = ["QuoteBook", "quoted_texts"]

_QUOTED = re.compile(r"“([^”]+)”|„([^“”]+)[“”]|«([^»]+)»|「([^」]+)」|(?<![\w`])\"([^\"\n]+)\"(?!\w)")
_BLOCK_LINE = re.compile(r"^\s*>\s?(.*)$")
_SPEAKER = re.compile(
    r"^\*{0,2}(?:user|assistant|human|you|ai|me)\*{0,2}(?:(?:,| at)? ?[\d:.T -]+)?:\*{0,2}\s*", re.IGNORECASE
)
_TYPOGRAPHY = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "\u00a0": " "}
)
_MIN_QUOTE_WORDS = 3  # shorter texts between quotation marks are names
_SIMILARITY = 0.75


class QuoteBook:
    """The messages that may be quoted."""

    def __init__(self, material: Material) -> None:
        self._messages: list[tuple[str, Quote]] = []  # normalized text, and the whole message as a quote
        for turn in material.turns:
            for part in turn.parts:
                message, tool = part.message, part.message.tool
                speaker: Speaker = "user" if message.role == "user" else "assistant"
                texts = [message.content] if is_spoken(message) or message.role == "error" else []
                if tool is not None:
                    texts += [text for text in (tool.result, *_texts(tool.params.values())) if text]
                for text in texts:
                    quote = Quote(speaker, text, message.timestamp, turn.session.ref, part.position)
                    self._messages.append((_normalize(text), quote))
        self._sentences: dict[str, str] | None = None

    def find(self, text: str) -> Quote | None:
        """Return a text as a quote, with speaker and time; None if it is in no message."""
        wanted = _normalize(text)
        if not wanted:
            return None
        for normalized, quote in self._messages:
            if wanted in normalized:
                return Quote(quote.speaker, text, quote.at, quote.session_ref, quote.position)
        return None

    def suggest(self, text: str) -> str | None:
        """Return the sentence that is most similar to a text, if one is similar enough."""
        if self._sentences is None:
            spoken = (quote.text for _, quote in self._messages if len(quote.text) < 20_000)
            self._sentences = {_normalize(s): s for message in spoken for s in verbatim_sentences(message)}
        close = get_close_matches(_normalize(text), self._sentences, 1, _SIMILARITY)
        return self._sentences[close[0]] if close else None

    def check(self, texts: Iterable[str]) -> tuple[list[Quote], list[QuoteProblem]]:
        """Return the verbatim quotes, and the texts that are none."""
        quotes, problems = [], []
        for text in texts:
            quote = self.find(text)
            if quote is not None:
                quotes.append(quote)
            else:
                problems.append(QuoteProblem(text, self.suggest(text)))
        return quotes, problems


def quoted_texts(markdown: str) -> Iterator[str]:
    """Yield the texts that Markdown presents as quotes: block quotes, and text between quotation marks."""
    block: list[str] = []
    for line in [*markdown.splitlines(), ""]:
        inside = _BLOCK_LINE.match(line)
        if inside is not None and inside[1].strip():
            if _SPEAKER.match(inside[1]) and block:
                yield "\n".join(block)
                block = []
            block.append(_SPEAKER.sub("", inside[1]))
            continue
        if block:
            yield _unquoted("\n".join(block))
            block = []
        for found in _QUOTED.finditer(line):
            text = next(group for group in found.groups() if group)
            if len(text.split()) >= _MIN_QUOTE_WORDS or not text.isascii():
                yield text


def _unquoted(text: str) -> str:
    return text.strip().strip('“”"„«»')


def _texts(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from _texts(value.values())
        elif isinstance(value, list):
            yield from _texts(value)


def _normalize(text: str) -> str:
    """Return a text with plain quotation marks, without escapes, in one line."""
    return " ".join(text.replace("\\<", "<").translate(_TYPOGRAPHY).split())

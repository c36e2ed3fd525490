"""Random text. The same seed gives the same text."""

from random import Random

_WORDS = tuple(
    word
    for line in (
        "basket total rounding invoice session token parser buffer thread socket render layout query index",
        "migrate schema column worker queue retry timeout deploy rollback branch merge commit fixture assert",
        "the a of to and in is it that for on with as this by from at or an be are was not but if then when",
        "file folder module class method return value error warning test build release version config cursor",
    )
    for word in line.split()
)
_POOL_CHARS = 1_000_000


class LoremText:
    """Random text, cut from a pool because choosing each word would dominate the time of a large history."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        words: list[str] = []
        length = 0
        while length < _POOL_CHARS:
            word = rng.choice(_WORDS) + (".\n" if rng.random() < 0.08 else " ")
            words.append(word)
            length += len(word)
        self._pool = "".join(words)

    def word(self) -> str:
        return self._rng.choice(_WORDS)

    def title(self) -> str:
        return " ".join(self._rng.choice(_WORDS) for _ in range(4)).capitalize()

    def text(self, length: int) -> str:
        """Return a text of ``length`` characters."""
        start = self._rng.randrange(_POOL_CHARS)
        text = self._pool[start : start + length]
        while len(text) < length:
            text += self._pool[: length - len(text)]
        return text

"""Session documents: what was said in a session, independent of single messages.

Beside its messages, the index contains one document for each window of 512 messages of a session. It has
the words of the prompts, answers and notes in the window, and the title and workspace of the session. A
query whose words are spread over several messages finds the session by this document.
"""

from collections.abc import Iterable, Iterator

from backscroll.index.engine.documents import IndexSession
from backscroll.index.engine.schema import SESSION_TAG

__all__ = ["SessionText", "prose_in", "window_start"]

WINDOW_MESSAGES = 512  # an appended message rewrites one window; a very long session is not one document

_PROSE = b',"prose":"'
_BIGRAMS = b',"cjk_bigrams":"'


def window_start(position: int) -> int:
    """Return the first position of the window of a message."""
    return position - position % WINDOW_MESSAGES


def prose_in(fields: bytes) -> bytes:
    """Return the words and bigrams of an encoded prompt, answer or note; empty for other messages."""
    return b" ".join([fields[start:end] for start, end in _values(fields)])


def _values(fields: bytes) -> Iterator[tuple[int, int]]:
    """Return where the values are. They contain no escaped quotes: words and bigrams have no punctuation."""
    at = fields.find(_PROSE)
    if at < 0:
        return
    for key, found in ((_PROSE, at), (_BIGRAMS, fields.find(_BIGRAMS, 0, at))):
        if found >= 0:
            start = found + len(key)
            yield start, fields.index(b'"', start)


class SessionText:
    """Collects the prose of a session, in the order of its messages, and returns its documents."""

    def __init__(
        self, session: IndexSession, title: bytes, earlier: Iterable[bytes] = (), window: int | None = None
    ) -> None:
        self._session = session.session
        self._title = title  # words of title and workspace
        self._window = window  # written even if no message follows
        self._pieces = [piece for piece in earlier if piece]  # of this window

    def add(self, position: int, fields: bytes) -> Iterator[bytes]:
        """Add an encoded message. Return the document of the window before it, if it starts a new one."""
        prose = prose_in(fields)
        window = window_start(position)
        if self._window is not None and window != self._window:
            yield from self.finish()
        self._window = window
        if prose:
            self._pieces.append(prose)

    def finish(self) -> Iterator[bytes]:
        """Return the document of the last window, unless nothing was said in it."""
        if self._window is not None and (self._pieces or self._window == 0):
            yield b'{"session":%d,"position":%d,"session_text":"%b","session_title":"%b","tags":"%b"}' % (
                self._session,
                self._window,
                b" ".join(self._pieces),
                self._title,
                SESSION_TAG.encode(),
            )
        self._pieces = []

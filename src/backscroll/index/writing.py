"""Writing the index: messages in, whole sessions out, one commit at a time."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import msgspec
import tantivy

from backscroll.index.document import Document
from backscroll.index.fields import NOTE, VERSION, schema, tag, word_analyser
from backscroll.index.folding import fold_accents
from backscroll.index.words import Analysed, analyse

__all__ = ["Note", "Writer", "is_busy"]

_HEAP_PER_THREAD = 30_000_000  # with what merging needs, under 200 MB in all
_SMALL_HEAP = 15_000_000
_MOST_THREADS = 2
_SAID = ("user", "assistant")
_TALK = (None, "queued")  # kinds of messages that are what somebody said, and not a summary or a notice


class Note(msgspec.Struct):
    """What an index says of itself."""

    version: int = VERSION
    watermark: str | None = None


def is_busy(error: ValueError) -> bool:
    """Whether an index could not be written because another process is writing it."""
    return "LockBusy" in str(error)


class Writer:
    """The index, held for writing; nobody else can write before it is closed."""

    def __init__(self, index: tantivy.Index, *, is_small: bool = False) -> None:
        threads = 1 if is_small else min(_MOST_THREADS, os.cpu_count() or 1)
        heap = _SMALL_HEAP if is_small else threads * _HEAP_PER_THREAD
        self._writer = index.writer(heap, threads)
        self._is_committed = True

    def forget(self, sessions: Iterable[int]) -> None:
        """Take out every message of these sessions that was added before."""
        numbers = list(sessions)
        if numbers:
            self._is_committed = False
            # A term of a number is not deleted by its value in this binding; a query is.
            query = tantivy.Query.term_set_query(schema(), "session", numbers)
            self._writer.delete_documents_by_query(query)

    def add(self, documents: Iterable[Document]) -> None:
        self._is_committed = False
        for document in documents:
            if not document.is_copy:
                with _said_plainly():
                    self._writer.add_json(_prepared(document))

    def commit(self, watermark: str | None) -> None:
        """Let everybody see what was added and forgotten, all at once and for good."""
        note = tantivy.Document()
        note.add_text("tags", NOTE)
        note.add_text("note", msgspec.json.encode(Note(watermark=watermark)).decode())
        with _said_plainly():
            self._writer.delete_documents_by_term("tags", NOTE)
            self._writer.add_document(note)
            self._writer.commit()
        self._is_committed = True

    def close(self) -> None:
        """Tidy up what commits left in pieces, and let others write. What was not committed is dropped."""
        with suppress(ValueError):  # of an engine that has already given up, for example on a full disk
            if not self._is_committed:
                self._writer.rollback()  # this also stops the tidying of earlier commits
            self._writer.wait_merging_threads()


@contextmanager
def _said_plainly() -> Iterator[None]:
    """The engine says ValueError when a file cannot be written."""
    try:
        yield
    except ValueError as error:
        raise OSError(f"the index cannot be written: {error}") from error


class _Fields(msgspec.Struct, omit_defaults=True, gc=False):
    """A message as the engine reads it, which takes text written as JSON with the least copying."""

    session: int
    position: int
    at: int | None = None
    said: str = ""
    done: str = ""
    parts: str = ""
    pairs: str = ""
    files: list[str] = []
    tags: str = ""


_encode = msgspec.json.Encoder().encode


def _prepared(document: Document) -> str:
    text = document.text
    more = [path for path in document.paths if path not in text]
    if document.title or more:
        text = "\n".join([text, *filter(None, [document.title]), *more])
    found = analyse(text)
    fields = _Fields(
        document.session,
        document.position,
        document.at,
        parts=fold_accents(found.parts),
        pairs=found.pairs,
        files=[_cuttable(analyse(path)) for path in document.paths],
        tags=" ".join(_tags(document, is_odd=found.is_odd)),
    )
    if document.role in _SAID and document.kind in _TALK:
        fields.said = _cuttable(found)
    else:
        fields.done = _cuttable(found)
    return _encode(fields).decode()


def _cuttable(text: Analysed) -> str:
    """A text that the engine can cut into words without looking at them: no accents, no overlong words."""
    words = fold_accents(text.words) if text.is_accented else text.words
    return " ".join(word_analyser().analyze(words)) if text.has_long_run else words


def _tags(document: Document, *, is_odd: bool) -> Iterator[str]:
    yield tag("role", document.role)
    yield tag("source", document.source)
    yield tag("workspace", document.workspace_hash)
    for name, value in (
        ("workspace", document.workspace_name),
        ("tool", document.tool),
        ("model", document.model),
        ("branch", document.branch),
        ("kind", document.kind),
    ):
        if value:
            yield tag(name, value)
    if document.is_error:
        yield tag("is", "error")
    if document.is_edit:
        yield tag("is", "edit")
    if is_odd:
        yield tag("odd")

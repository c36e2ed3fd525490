"""Documents of the index: a message and its session, encoded as JSON for Tantivy.

A message is encoded where it is parsed, before the id and the title of its session
are known. The attributes of the session are added around the encoded message when it
is written, without parsing the text again.

Beside its messages, the index contains one document for each window of 512 messages of a session. It has
the words of the prompts, answers and notes in the window, and the title and workspace of the session. A
query whose words are spread over several messages finds the session by this document.

Reading the messages back from the archive for the index would cost as much as storing them. In a large sync,
a worker therefore writes the documents of its shard to a spool file. The process that merges the shard
indexes them from there, by fragment id.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec import Struct

from backscroll.index.analysis import MAX_WORD_BYTES, AnalyzedText, analyze, non_ascii_bytes, normalize_words
from backscroll.index.schema import LONG_TAG, LONG_TEXT_CHARS, SESSION_TAG, path_tokens, tag
from backscroll.model.message import ANNOTATIONS_POSITION, TYPED_KINDS, Message
from backscroll.model.search import annotations_text, annotations_time, paths_of, searchable_text
from backscroll.model.session import SessionSummary

WINDOW_MESSAGES = 512  # an appended message rewrites one window; a very long session is not one document
_PROSE_KEY = b',"prose":"'
_BIGRAMS_KEY = b',"cjk_bigrams":"'
_PROSE_ROLES = ("user", "assistant", "note")  # other kinds than TYPED_KINDS are summaries and notices
FRAME_CHARS = 1024 * 1024  # documents are spooled in frames of about this size
_encode = msgspec.json.Encoder().encode
_pack = msgspec.msgpack.Encoder().encode
Frame = tuple[int, int]  # offset in the file, and bytes
Frames = dict[int, list[Frame]]  # by fragment id


class IndexMessage(Struct, frozen=True, kw_only=True, gc=False):
    """A message to index. The text is searchable and not stored."""

    position: int
    role: str
    kind: str | None = None
    at: int | None = None  # milliseconds since 1970
    text: str | bytes  # prose, or a tool's name, arguments and result; str or UTF-8
    tool: str | None = None
    model: str | None = None
    branch: str | None = None
    paths: tuple[str, ...] = ()
    is_error: bool = False
    is_edit: bool = False


class IndexSession(Struct, frozen=True, kw_only=True, gc=False):
    """The session of indexed messages. It may be known later than the messages."""

    session: int
    source: str
    title: str | None = None  # indexed with the first message
    branch: str | None = None  # for messages without a branch
    workspace_hash: str
    workspace_name: str | None = None


class EncodedMessage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message without the attributes of its session."""

    position: int
    has_branch: bool
    fields: bytes  # JSON, which Tantivy copies least; incomplete, so that tags can follow


class _Fields(msgspec.Struct, gc=False):
    """The content of `EncodedMessage.fields`."""

    position: int
    at: int | None = None
    prose: str | None = None  # either this or tool_text
    tool_text: str | None = None
    subwords: str = ""
    cjk_bigrams: str = ""
    files: list[str] = []
    tags: str = ""  # the last field; never empty


_decode = msgspec.json.Decoder(_Fields).decode
_unpack = msgspec.msgpack.Decoder(list[EncodedMessage]).decode


def message_document(position: int, message: Message) -> IndexMessage:
    """Return the document of a message."""
    tool = message.tool
    return IndexMessage(
        position=position,
        role=message.role,
        kind=message.kind,
        at=int(message.timestamp.timestamp() * 1000) if message.timestamp is not None else None,
        text=_text(message),
        tool=tool.name if tool else None,
        model=message.model,
        branch=message.git_branch,
        paths=paths_of(message),
        is_error=message.role == "error" or (tool is not None and tool.is_error),
        is_edit=bool(tool and tool.edits),
    )


def _text(message: Message) -> str | bytes:
    """Return the searchable text as UTF-8. Faster than `searchable_text`: strings cache their UTF-8 form."""
    tool = message.tool
    try:
        if tool is None:
            return message.content.encode()
        parts = [tool.name.encode()]
        for name, value in tool.params.items():
            parts += (name.encode(), value.encode() if type(value) is str else _encode(value))
        parts += (message.content.encode(), tool.result.encode() if tool.result else b"")
        return b"\n".join(parts)
    except UnicodeEncodeError:
        return searchable_text(message)


def annotations_document(summary: SessionSummary) -> IndexMessage | None:
    """Return the document of a session's annotations, indexed like one more message."""
    text = annotations_text(summary)
    if not text:
        return None
    last = annotations_time(summary)
    at = int(last.timestamp() * 1000) if last is not None else None
    return IndexMessage(position=ANNOTATIONS_POSITION, role="note", at=at, text=text)


def encode_message(message: IndexMessage) -> EncodedMessage:
    """Analyze and encode a message. All work that depends on the text happens here."""
    text, files = _with_files(message) if message.paths else (message.text, [])
    analyzed = analyze(text)
    fields = _join_fields(
        message.position,
        message.at,
        _words(analyzed),
        is_prose=message.role in _PROSE_ROLES and message.kind in TYPED_KINDS,
        subwords=_normalized_subwords(analyzed) if analyzed.subwords else b"",
        cjk_bigrams=analyzed.cjk_bigrams,
        files=files,
        tags=_tags(
            message.role,
            message.tool,
            message.model,
            message.branch,
            message.kind,
            message.is_error,
            message.is_edit,
            analyzed.is_irregular,
            len(text) > LONG_TEXT_CHARS,
        ),
    )
    return EncodedMessage(message.position, message.branch is not None, fields)


def encode_session(
    session: IndexSession,
    messages: Iterable[EncodedMessage],
    *,
    with_title: bool = True,
    earlier_prose: Iterable[bytes] = (),
    window: int | None = None,
) -> Iterator[str]:
    """Complete encoded messages of one session to JSON documents, followed by the session documents.

    The title is added to the first message. ``earlier_prose`` is what was said before the first message in
    its window, which ``window`` names. That session document is written even if there are no messages.
    """
    tags = [tag("source", session.source), tag("workspace", session.workspace_hash)]
    if session.workspace_name:
        tags.append(tag("workspace", session.workspace_name))
    branch = [tag("branch", session.branch)] if session.branch else []
    start = b'{"session":%d,' % session.session
    end, end_with_branch = _end(tags), _end([*tags, *branch])
    title = session.title if with_title else None
    session_text = _SessionText(session, _title_words(session), earlier_prose, window)
    for message in messages:
        fields = message.fields
        for document in session_text.add(message.position, fields):
            yield document.decode()
        if title:
            fields = _add_title(fields, title)
            title = None
        yield b"".join((start, fields, end if message.has_branch else end_with_branch)).decode()
    for document in session_text.finish():
        yield document.decode()


def _title_words(session: IndexSession) -> bytes:
    """Return the words and bigrams of title and workspace, as JSON without quotes."""
    analyzed = analyze(" ".join(filter(None, (session.title, session.workspace_name))))
    return b"%b %b" % (_words(analyzed), _encode(analyzed.cjk_bigrams)[1:-1])


def _join_fields(
    position: int,
    at: int | None,
    words: bytes,
    *,
    is_prose: bool,
    subwords: bytes,
    cjk_bigrams: str,
    files: list[bytes],
    tags: bytes,
) -> bytes:
    """Return the fields as JSON without the opening brace and without the closing quote and brace.

    Only tags and bigrams may contain characters to escape; `_tags` has escaped its result.
    """
    pieces = [b'"position":%d' % position]
    if at is not None:
        pieces.append(b',"at":%d' % at)
    pieces += (b',"prose":"' if is_prose else b',"tool_text":"', words)
    if subwords:
        pieces += (b'","subwords":"', subwords)
    if files:
        pieces += (b'","files":["', b'","'.join(files), b'"],"tags":"', tags)
    else:
        pieces += (b'","tags":"', tags)
    if cjk_bigrams:
        pieces.insert(1, b',"cjk_bigrams":%b' % _encode(cjk_bigrams))
    return b"".join(pieces)


def _end(tags: list[str]) -> bytes:
    return b" %b}" % _encode(" ".join(tags))[1:]


def _add_title(encoded: bytes, title: str) -> bytes:
    fields = _decode(b'{%b"}' % encoded)
    analyzed = analyze(title)
    words = (fields.tool_text if fields.prose is None else fields.prose) or ""
    subwords = fields.subwords.split()
    subwords += [word for word in _normalized_subwords(analyzed).decode().split() if word not in subwords]
    return _join_fields(
        fields.position,
        fields.at,
        b"%b %b" % (words.encode(), _words(analyzed)),
        is_prose=fields.prose is not None,
        subwords=" ".join(subwords).encode(),
        cjk_bigrams=f"{fields.cjk_bigrams} {analyzed.cjk_bigrams}".strip(),
        files=[file.encode() for file in fields.files],
        tags=_encode(f"{fields.tags} {tag('irregular')}" if analyzed.is_irregular else fields.tags)[1:-1],
    )


def _with_files(message: IndexMessage) -> tuple[str | bytes, list[bytes]]:
    """Return the text with the paths that it does not contain, and the tokens of each path."""
    text, paths = message.text, message.paths
    files = [_encode_path(path) for path in paths]
    tokens = [tokens for _, tokens in files]
    if isinstance(text, str):
        return "\n".join([text, *(path for path in paths if path not in text)]), tokens
    missing = [raw for raw, _ in files if raw not in text]
    return b"\n".join([text, *missing]) if missing else text, tokens


@lru_cache(maxsize=1 << 12)
def _encode_path(path: str) -> tuple[bytes, bytes]:
    """Return a path as UTF-8, and its tokens. A few paths occur in many messages."""
    return path.encode("utf-8", "replace"), " ".join(path_tokens(path)).encode()


def _words(text: AnalyzedText) -> bytes:
    """Return the normalized words of a text without overlong ones."""
    words = normalize_words(text.words, text.non_ascii)
    if not text.has_long_word:
        return words
    return b" ".join([word for word in words.split() if len(word) <= MAX_WORD_BYTES])


def _normalized_subwords(text: AnalyzedText) -> bytes:
    subwords = text.subwords.encode()
    return normalize_words(subwords, non_ascii_bytes(subwords))


@lru_cache(maxsize=1 << 12)
def _tags(
    role: str,
    tool: str | None,
    model: str | None,
    branch: str | None,
    kind: str | None,
    is_error: bool,
    is_edit: bool,
    is_irregular: bool,
    is_long: bool,
) -> bytes:
    """Return the tags of a message as JSON without quotes. Many messages share the same tags."""
    optional = (("tool", tool), ("model", model), ("branch", branch), ("kind", kind))
    tags = [tag("role", role), *(tag(name, value) for name, value in optional if value)]
    if is_error:
        tags.append(tag("is", "error"))
    if is_edit:
        tags.append(tag("is", "edit"))
    if is_irregular:
        tags.append(tag("irregular"))
    if is_long:
        tags.append(LONG_TAG)
    return _encode(" ".join(tags))[1:-1]


def window_start(position: int) -> int:
    """Return the first position of the window of a message."""
    return position - position % WINDOW_MESSAGES


def prose_in(fields: bytes) -> bytes:
    """Return the words and bigrams of an encoded prompt, answer or note; empty for other messages."""
    return b" ".join([fields[start:end] for start, end in _prose_values(fields)])


def _prose_values(fields: bytes) -> Iterator[tuple[int, int]]:
    """Return where the values are. They contain no escaped quotes: words and bigrams have no punctuation."""
    at = fields.find(_PROSE_KEY)
    if at < 0:
        return
    for key, found in ((_PROSE_KEY, at), (_BIGRAMS_KEY, fields.find(_BIGRAMS_KEY, 0, at))):
        if found >= 0:
            start = found + len(key)
            yield start, fields.index(b'"', start)


class _SessionText:
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


class DocumentSpool:
    """Observes the writes of a shard and writes their documents to a file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._frames: Frames = {}
        self._fragment_id = 0
        self._buffer: list[EncodedMessage] = []
        self._size = 0

    def begin_fragment(self, fragment_id: int) -> None:
        """Start a fragment. An earlier one with this id was rolled back."""
        self._flush()
        self._buffer, self._size = [], 0
        self._fragment_id = fragment_id
        self._frames[fragment_id] = []

    def add_messages(self, first_position: int, messages: Sequence[Message]) -> None:
        """Add messages of the current fragment, from a position on."""
        if self._fragment_id not in self._frames:
            return
        documents = [
            encode_message(message_document(position, message))
            for position, message in enumerate(messages, start=first_position)
        ]
        self._buffer += documents
        self._size += sum([len(document.fields) for document in documents])
        if self._size >= FRAME_CHARS:
            self._flush()

    def invalidate_fragment(self) -> None:
        """Drop the documents of the current fragment: a message changed after it was added."""
        self._frames.pop(self._fragment_id, None)

    def close(self, fragment_ids: Collection[int]) -> Frames:
        """Close the file. Return the frames of the given fragments."""
        self._flush()
        self._file.close()
        return {id_: frames for id_, frames in self._frames.items() if id_ in fragment_ids}

    def _flush(self) -> None:
        if self._buffer and self._fragment_id in self._frames:
            packed = _pack(self._buffer)
            self._frames[self._fragment_id].append((self._file.tell(), len(packed)))
            self._file.write(packed)
        self._buffer, self._size = [], 0


class SpooledDocuments:
    """Documents of merged shards that are not indexed yet."""

    def __init__(self, total_size: int = 0) -> None:
        self.size = 0  # bytes
        self.total_size = total_size  # bytes, including earlier rounds
        self._frames: dict[int, tuple[Path, list[Frame]]] = {}
        self._files: list[Path] = []

    def add(self, path: Path, frames: Frames, offset: int) -> None:
        """Add a spool file. The merge has added ``offset`` to its fragment ids."""
        size = path.stat().st_size
        self.size += size
        self.total_size += size
        self._files.append(path)
        for fragment_id, fragment_frames in frames.items():
            self._frames[fragment_id + offset] = (path, fragment_frames)

    def __contains__(self, fragment_id: int) -> bool:
        return fragment_id in self._frames

    def documents(self, fragment_id: int) -> Iterator[EncodedMessage]:
        """Yield the documents of a fragment in order."""
        path, frames = self._frames[fragment_id]
        with path.open("rb") as file:
            for offset, size in frames:
                file.seek(offset)
                yield from _unpack(file.read(size))

    def clear(self) -> None:
        """Delete the files."""
        for path in self._files:
            path.unlink(missing_ok=True)

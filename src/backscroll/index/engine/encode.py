"""Messages as the engine takes them.

An entry is made where a message is read, long before it is known what its session
is called and which number it has. What the session adds is put around it when it
is written, without looking at the text again.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from backscroll.index.engine.documents import IndexMessage, IndexSession
from backscroll.index.engine.schema import path_tokens, tag
from backscroll.index.text.normalize import normalize_words
from backscroll.index.text.tokenize import MAX_WORD_BYTES, AnalyzedText, analyze, non_ascii_bytes

__all__ = ["EncodedMessage", "encode_message", "encode_session"]

_SAID = ("user", "assistant", "note")
_TALK = (None, "queued")  # kinds of messages that are what somebody said, and not a summary or a notice


class EncodedMessage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message, all but whose it is."""

    position: int
    has_branch: bool
    fields: bytes  # JSON, which the engine takes with the least copying; open where tags may follow


class _Fields(msgspec.Struct, gc=False):
    """What is in them."""

    position: int
    at: int | None = None
    said: str | None = None  # or done
    done: str | None = None
    parts: str = ""
    pairs: str = ""
    files: list[str] = []
    tags: str = ""  # the last one; never empty


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Fields).decode


def encode_message(message: IndexMessage) -> EncodedMessage:
    """Do all the work that a message needs."""
    text, files = _with_files(message) if message.paths else (message.text, [])
    found = analyze(text)
    fields = _written(
        message.position,
        message.at,
        _cuttable(found),
        is_said=message.role in _SAID and message.kind in _TALK,
        parts=_bare_parts(found) if found.parts else b"",
        pairs=found.pairs,
        files=files,
        tags=_tags(
            message.role,
            message.tool,
            message.model,
            message.branch,
            message.kind,
            message.is_error,
            message.is_edit,
            found.is_odd,
        ),
    )
    return EncodedMessage(message.position, message.branch is not None, fields)


def encode_session(
    whose: IndexSession, entries: Iterable[EncodedMessage], *, with_title: bool = True
) -> Iterator[str]:
    """Entries of one session as documents of the engine."""
    common = [tag("source", whose.source), tag("workspace", whose.workspace_hash)]
    if whose.workspace_name:
        common.append(tag("workspace", whose.workspace_name))
    branch = [tag("branch", whose.branch)] if whose.branch else []
    begin = b'{"session":%d,' % whose.session
    end, end_with_branch = _tail(common), _tail([*common, *branch])
    title = whose.title if with_title else None
    for one in entries:
        fields = one.fields
        if title:
            fields = _titled(fields, title)
            title = None
        yield b"".join((begin, fields, end if one.has_branch else end_with_branch)).decode()


def _written(
    position: int,
    at: int | None,
    words: bytes,
    *,
    is_said: bool,
    parts: bytes,
    pairs: str,
    files: list[bytes],
    tags: bytes,
) -> bytes:
    """Fields as JSON, without the brace that begins it, and the quote and the brace that end it.

    Only tags and pairs of characters may have something to escape; `_tags` has done it.
    """
    pieces = [b'"position":%d' % position]
    if at is not None:
        pieces.append(b',"at":%d' % at)
    pieces += (b',"said":"' if is_said else b',"done":"', words)
    if parts:
        pieces += (b'","parts":"', parts)
    if files:
        pieces += (b'","files":["', b'","'.join(files), b'"],"tags":"', tags)
    else:
        pieces += (b'","tags":"', tags)
    if pairs:
        pieces.insert(1, b',"pairs":%b' % _encode(pairs))
    return b"".join(pieces)


def _tail(tags: list[str]) -> bytes:
    return b" %b}" % _encode(" ".join(tags))[1:]


def _titled(told: bytes, title: str) -> bytes:
    fields = _decode(b'{%b"}' % told)
    found = analyze(title)
    words = (fields.done if fields.said is None else fields.said) or ""
    parts = fields.parts.split()
    parts += [part for part in _bare_parts(found).decode().split() if part not in parts]
    return _written(
        fields.position,
        fields.at,
        b"%b %b" % (words.encode(), _cuttable(found)),
        is_said=fields.said is not None,
        parts=" ".join(parts).encode(),
        pairs=f"{fields.pairs} {found.pairs}".strip(),
        files=[file.encode() for file in fields.files],
        tags=_encode(f"{fields.tags} {tag('odd')}" if found.is_odd else fields.tags)[1:-1],
    )


def _with_files(message: IndexMessage) -> tuple[str | bytes, list[bytes]]:
    """What a message is found by, its text and those paths that the text does not name; and its paths."""
    text, paths = message.text, message.paths
    files = [_file(path) for path in paths]
    if isinstance(text, str):
        return "\n".join([text, *(path for path in paths if path not in text)]), [words for _, words in files]
    missing = [raw for raw, _ in files if raw not in text]
    return b"\n".join([text, *missing]) if missing else text, [words for _, words in files]


@lru_cache(maxsize=1 << 12)
def _file(path: str) -> tuple[bytes, bytes]:
    """A path, and the words of it. Few are told of again and again."""
    return path.encode("utf-8", "replace"), " ".join(path_tokens(path)).encode()


def _cuttable(text: AnalyzedText) -> bytes:
    """The words of a text between spaces: small, without accents, none overlong."""
    words = normalize_words(text.words, text.beyond)
    if not text.has_long_run:
        return words
    return b" ".join([word for word in words.split() if len(word) <= MAX_WORD_BYTES])


def _bare_parts(text: AnalyzedText) -> bytes:
    parts = text.parts.encode()
    return normalize_words(parts, non_ascii_bytes(parts))


@lru_cache(maxsize=1 << 12)
def _tags(
    role: str,
    tool: str | None,
    model: str | None,
    branch: str | None,
    kind: str | None,
    is_error: bool,
    is_edit: bool,
    is_odd: bool,
) -> bytes:
    """Facts about a message, as JSON without the quotes. Most messages share them with many others."""
    named = (("tool", tool), ("model", model), ("branch", branch), ("kind", kind))
    tags = [tag("role", role), *(tag(name, value) for name, value in named if value)]
    if is_error:
        tags.append(tag("is", "error"))
    if is_edit:
        tags.append(tag("is", "edit"))
    if is_odd:
        tags.append(tag("odd"))
    return _encode(" ".join(tags))[1:-1]

"""Messages as the engine takes them.

An entry is made where a message is read, long before it is known what its session
is called and which number it has. What the session adds is put around it when it
is written, without looking at the text again.
"""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import UNSET, Raw, UnsetType

from backscroll.index.document import Spoken, Whose
from backscroll.index.fields import tag, word_analyser
from backscroll.index.folding import bare, fold_accents
from backscroll.index.words import Analysed, analyse

__all__ = ["Entry", "entry", "whole"]

_SAID = ("user", "assistant", "note")
_TALK = (None, "queued")  # kinds of messages that are what somebody said, and not a summary or a notice


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message, all but whose it is."""

    position: int
    names_branch: bool
    fields: bytes  # JSON, which the engine takes with the least copying; open where tags may follow


class _Fields(msgspec.Struct, omit_defaults=True, gc=False):
    position: int
    at: int | None = None
    said: Raw | UnsetType = UNSET
    done: Raw | UnsetType = UNSET
    parts: str = ""
    pairs: str = ""
    files: list[str] = []
    tags: str = ""  # the last one; never empty


_encode = msgspec.json.Encoder().encode


def entry(message: Spoken) -> Entry:
    """Do all the work that a message needs."""
    found = analyse(_with_paths(message))
    fields = _Fields(
        message.position,
        message.at,
        parts=fold_accents(found.parts),
        pairs=found.pairs,
        files=[_cuttable(analyse(path)).decode() for path in message.paths],
        tags=" ".join(_tags(message, is_odd=found.is_odd)),
    )
    if message.role in _SAID and message.kind in _TALK:
        fields.said = _quoted(_cuttable(found))
    else:
        fields.done = _quoted(_cuttable(found))
    return Entry(message.position, message.branch is not None, _opened(fields))


def whole(whose: Whose, entries: Iterable[Entry], *, with_title: bool = True) -> Iterator[str]:
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
        yield b"".join((begin, fields, end if one.names_branch else end_with_branch)).decode()


def _opened(fields: _Fields) -> bytes:
    """Without the brace that begins it, and the quote and the brace that end it."""
    return _encode(fields)[1:-2]


def _tail(tags: list[str]) -> bytes:
    return b" %b}" % _encode(" ".join(tags))[1:]


def _titled(told: bytes, title: str) -> bytes:
    fields = msgspec.json.decode(b'{%b"}' % told, type=_Fields)
    found = analyse(title)
    if fields.done is UNSET:
        fields.said = _longer(fields.said, found)
    else:
        fields.done = _longer(fields.done, found)
    fields.parts = " ".join(sorted({*fields.parts.split(), *fold_accents(found.parts).split()}))
    fields.pairs = f"{fields.pairs} {found.pairs}".strip()
    if found.is_odd:
        fields.tags = f"{fields.tags} {tag('odd')}"
    return _opened(fields)


def _with_paths(message: Spoken) -> str | bytes:
    """What a message is found by: its text, and those paths that the text does not name."""
    text, paths = message.text, message.paths
    if isinstance(text, str):
        return "\n".join([text, *(path for path in paths if path not in text)])
    found = [path.encode("utf-8", "replace") for path in paths]
    return b"\n".join([text, *(path for path in found if path not in text)])


def _cuttable(text: Analysed) -> bytes:
    """A text that the engine can cut into words without looking at them: no accents, no overlong words."""
    words = bare(text.words, text.beyond)
    return " ".join(word_analyser().analyze(words.decode())).encode() if text.has_long_run else words


def _quoted(words: bytes) -> Raw:
    """Words as JSON."""
    return Raw(b'"%b"' % words)


def _longer(quoted: Raw | UnsetType, more: Analysed) -> Raw:
    before = bytes(quoted)[1:-1] if isinstance(quoted, Raw) else b""
    return _quoted(b"%b %b" % (before, _cuttable(more)))


def _tags(message: Spoken, *, is_odd: bool) -> Iterator[str]:
    yield tag("role", message.role)
    for name, value in (
        ("tool", message.tool),
        ("model", message.model),
        ("branch", message.branch),
        ("kind", message.kind),
    ):
        if value:
            yield tag(name, value)
    if message.is_error:
        yield tag("is", "error")
    if message.is_edit:
        yield tag("is", "edit")
    if is_odd:
        yield tag("odd")

"""Input of the index: a message and the session that contains it."""

from msgspec import Struct

__all__ = ["Document", "IndexMessage", "IndexSession"]


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


class Document(IndexMessage, frozen=True, kw_only=True, gc=False):
    """A message together with its session."""

    session: int
    source: str
    title: str | None = None  # set on the first message of a session only
    workspace_hash: str
    workspace_name: str | None = None
    is_copy: bool = False  # another session contained the message first; not indexed

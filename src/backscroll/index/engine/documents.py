"""One message, ready to be indexed."""

from msgspec import Struct

__all__ = ["Document", "IndexMessage", "IndexSession"]


class IndexMessage(Struct, frozen=True, kw_only=True, gc=False):
    """What the index is told of one message, by whoever has it in hand. The text is searched and not kept."""

    position: int
    role: str
    kind: str | None = None
    at: int | None = None  # milliseconds since 1970
    text: str | bytes  # everything searchable: words, or a tool's name, arguments and result; as UTF-8 or not
    tool: str | None = None
    model: str | None = None
    branch: str | None = None
    paths: tuple[str, ...] = ()
    is_error: bool = False
    is_edit: bool = False


class IndexSession(Struct, frozen=True, kw_only=True, gc=False):
    """What the index is told of the session that messages are from, which may be known only later."""

    session: int
    source: str
    title: str | None = None  # found with the first message
    branch: str | None = None  # of messages that name none themselves
    workspace_hash: str
    workspace_name: str | None = None


class Document(IndexMessage, frozen=True, kw_only=True, gc=False):
    """A message with all that the index is told of it."""

    session: int
    source: str
    title: str | None = None  # given with one message of a session, its first: found with that message
    workspace_hash: str
    workspace_name: str | None = None
    is_copy: bool = False  # held by another session first; never indexed

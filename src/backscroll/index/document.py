"""One message, ready to be indexed."""

from msgspec import Struct

__all__ = ["Document"]


class Document(Struct, frozen=True, kw_only=True, gc=False):
    """What the index is told of one message. The text is searched and not kept."""

    session: int
    position: int
    role: str
    kind: str | None = None
    source: str
    at: int | None = None  # milliseconds since 1970
    text: str  # everything searchable: words, or a tool's name, arguments and result
    title: str | None = None  # given with one message of a session, its first: found with that message
    tool: str | None = None
    model: str | None = None
    branch: str | None = None
    workspace_hash: str
    workspace_name: str | None = None
    paths: tuple[str, ...] = ()
    is_error: bool = False
    is_edit: bool = False
    is_copy: bool = False  # held by another session first; never indexed

"""Options of one server process."""

from msgspec import Struct

__all__ = ["ServerOptions"]


class ServerOptions(Struct, frozen=True, kw_only=True):
    """Options that apply to all calls."""

    is_redacted: bool = True  # replace secrets in results
    is_structured: bool = False  # results have documents
    allow_writes: bool = False  # offer the tools that change files
    command: tuple[str, ...] = ("backscroll",)  # starts the command line with the same archive and roots

"""What continues a session in the tool that held it."""

from msgspec import Struct

__all__ = ["Command", "Refusal", "Resumable", "Store"]


class Store(Struct, frozen=True):
    """One of the places that tell of a session."""

    source: str
    root: str
    path: str
    kind: str  # one of STORES
    is_gone: bool


class Resumable(Struct, frozen=True):
    """What a tool is asked to continue."""

    id: str
    title: str | None
    folder: str | None  # the workspace
    authority: str | None  # the other machine that the folder is on
    folders: tuple[str, ...]  # all that the session was held in
    stores: tuple[Store, ...]  # the fullest first


class Command(Struct, frozen=True):
    """A program to run, where, and what to know before."""

    argv: tuple[str, ...]
    folder: str | None = None
    environ: dict[str, str] = {}
    note: str | None = None


class Refusal(Struct, frozen=True):
    """Why the tool cannot continue a session, as a clause: "only a text copy of it is left"."""

    why: str

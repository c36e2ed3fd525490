"""Resume a session in its own tool."""

import shlex

from msgspec import Struct

from backscroll.model.session import SessionSummary


class Store(Struct, frozen=True):
    """One of the stores that contain a session."""

    source: str
    root: str
    path: str
    kind: str  # name of a `StoreKind`
    is_gone: bool


class Resumable(Struct, frozen=True):
    """A session to resume."""

    id: str
    title: str | None
    folder: str | None  # the workspace
    authority: str | None  # the remote host of the folder
    folders: tuple[str, ...]  # all folders of the session
    stores: tuple[Store, ...]  # the most complete first


class Command(Struct, frozen=True):
    """A command line with its folder, environment and notes for the user."""

    argv: tuple[str, ...]
    folder: str | None = None
    environ: dict[str, str] = {}
    note: str | None = None
    install_hint: str | None = None  # a sentence: how to install the program or put it on the PATH

    @property
    def shell_line(self) -> str:
        """Return the command as typed in a shell, with its folder and environment."""
        words = [f"{name}={shlex.quote(value)}" for name, value in self.environ.items()]
        typed = " ".join([*words, shlex.join(self.argv)])
        return f"cd {shlex.quote(self.folder)} && {typed}" if self.folder is not None else typed

    @property
    def missing_program(self) -> str:
        """Return a message for the case that the program is not found, with what to do next."""
        missing = f"{self.argv[0]} is not installed or not on the PATH."
        return f"{missing} {self.install_hint}" if self.install_hint is not None else missing


class Refusal(Struct, frozen=True):
    """Why a session cannot be resumed, as a clause without a full stop: "it has no transcript"."""

    reason: str


class RestorePlan(Struct, frozen=True):
    """Deleted files and database rows of a session that can be restored."""

    files: tuple[str, ...]
    size: int  # bytes of the files
    obstacle: str | None = None  # a sentence: why they cannot be restored now
    row_count: int = 0


class Resumption(Struct, frozen=True):
    """How a session is resumed. Without a command it cannot be; the obstacle gives the reason."""

    session: SessionSummary
    command: Command | None
    obstacle: str | None
    is_installed: bool  # whether the program is on the PATH
    returning: RestorePlan | None  # set if the tool has deleted the session's files

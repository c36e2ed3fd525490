"""Projects and sessions of the demo."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from backscroll.testing import cursor
from backscroll.testing.claude_code import Prompt, Transcript
from backscroll.testing.claude_code.side_files import write_prompts, write_settings
from backscroll.testing.cursor import Workspace
from backscroll.testing.cursor_cli import Home as CliHome
from backscroll.testing.demo.claude_session import ClaudeSession
from backscroll.testing.demo.cursor_cli_session import CursorCliSession, StoredIn
from backscroll.testing.demo.cursor_session import CursorIdeSession, milliseconds
from backscroll.testing.demo.project import Repository
from backscroll.testing.demo.session import DemoSession

S = TypeVar("S", bound=DemoSession)

_YEAR = 2026


def utc_time(month: int, date: int, clock: str = "09:00") -> datetime:
    """Return a time of the demo's year, in UTC."""
    hour, _, minute = clock.partition(":")
    return datetime(_YEAR, month, date, int(hour), int(minute), tzinfo=UTC)


class SampleHistory:
    """Projects and sessions of one user.

    ``home`` is the home folder in the content of the files. ``folder`` is the folder into
    which they are written.
    """

    def __init__(self, home: str, folder: Path) -> None:
        self.home = home
        self.repositories = {
            name: Repository(home, name) for name in ("tideline", "saltern", "lintel", "website")
        }
        self.sessions: list[DemoSession] = []
        self.orphaned_prompts: list[Prompt] = []  # prompts of a deleted session
        self.claude_root = folder / ".claude"
        self._cursor_home = cursor.Home(folder / ".config/Cursor", generation=5, is_upgraded=True)
        self._cli_home = CliHome(folder / ".cursor")

    def claude_session(
        self,
        name: str,
        title: str,
        at: datetime,
        *,
        version: str,
        model: str,
        repository: Repository | None = None,
        transcript: Transcript | None = None,
    ) -> ClaudeSession:
        """Add a session in Claude Code. Its name starts with the name of its project."""
        return self._add(
            ClaudeSession(
                name,
                title,
                repository or self.project(name),
                at=at,
                version=version,
                model=model,
                transcript=transcript,
            )
        )

    def cursor_session(
        self,
        name: str,
        title: str,
        at: datetime,
        *,
        model: str,
        workspace: Workspace | None = None,
        is_archived: bool = False,
    ) -> CursorIdeSession:
        """Add a session in the Cursor IDE. Its name starts with the name of its project."""
        project = self.project(name)
        inode = 1_835_000 + sorted(self.repositories).index(project.name)
        return self._add(
            CursorIdeSession(
                self._cursor_home,
                name,
                title,
                project,
                at=at,
                model=model,
                workspace=workspace or cursor.local_folder(project.path, inode=inode),
                is_archived=is_archived,
            )
        )

    def cursor_cli_session(
        self,
        name: str,
        title: str,
        at: datetime,
        *,
        model: str,
        stored_in: StoredIn = "store",
        is_acp: bool = False,
    ) -> CursorCliSession:
        """Add a session in the Cursor CLI. Its name starts with the name of its project."""
        return self._add(
            CursorCliSession(
                self._cli_home,
                name,
                title,
                self.project(name),
                at=at,
                model=model,
                stored_in=stored_in,
                is_acp=is_acp,
            )
        )

    def project(self, name: str) -> Repository:
        return self.repositories[name.partition("/")[0]]

    def write(self) -> None:
        """Write all sessions in the format of their tool."""
        for session in self.sessions:
            session.close()
        prompts = list(self.orphaned_prompts)
        for session in self.sessions:
            if isinstance(session, ClaudeSession):
                session.transcript.write(self.claude_root)
                prompts += session.typed_prompts
        write_prompts(self.claude_root, sorted(prompts, key=lambda prompt: prompt.at))
        write_settings(self.claude_root, cleanup_days=180)
        self._cursor_home.put_secrets()
        self._cursor_home.write()
        self._write_search()
        cli_prompts = [
            text
            for session in self.sessions
            if isinstance(session, CursorCliSession)
            for text in session.prompts
        ]
        self._cli_home.write_prompts(cli_prompts[-20:])

    def _write_search(self) -> None:
        """Write the search database of the IDE. It contains the prompts."""
        sessions = [session for session in self.sessions if isinstance(session, CursorIdeSession)]
        rows = [(session.id, session.title, "\n".join(session.prompts)) for session in sessions]
        last = max(milliseconds(session.now) for session in sessions)
        cursor.write_search(self._cursor_home.root, rows, at=last)

    def _add(self, session: S) -> S:
        self.sessions.append(session)
        return session

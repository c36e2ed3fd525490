"""Everything that is told: the projects, the sessions, and where each tool keeps them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from backscroll.testing import cursor
from backscroll.testing.claude_code import Prompt, Transcript
from backscroll.testing.claude_code.side_files import write_prompts, write_settings
from backscroll.testing.cursor import Workspace
from backscroll.testing.cursor_cli import Home as CliHome
from backscroll.testing.demo.claude_session import ClaudeScene
from backscroll.testing.demo.cursor_cli_session import Kept, TerminalScene
from backscroll.testing.demo.cursor_session import EditorScene, milliseconds
from backscroll.testing.demo.project import Repository
from backscroll.testing.demo.session import Scene

__all__ = ["Story", "day"]

S = TypeVar("S", bound=Scene)

_YEAR = 2026


def day(month: int, date: int, clock: str = "09:00") -> datetime:
    """A moment of the year everything happens in, in UTC."""
    hour, _, minute = clock.partition(":")
    return datetime(_YEAR, month, date, int(hour), int(minute), tzinfo=UTC)


class Story:
    """A person's work of some months.

    ``home`` is the home folder that the history speaks of; ``folder`` is where it
    is written.
    """

    def __init__(self, home: str, folder: Path) -> None:
        self.home = home
        self.repositories = {
            name: Repository(home, name) for name in ("tideline", "saltern", "lintel", "website")
        }
        self.scenes: list[Scene] = []
        self.lost: list[Prompt] = []  # prompts whose session is gone
        self.claude_root = folder / ".claude"
        self._editor = cursor.Home(folder / ".config/Cursor", generation=5, is_upgraded=True)
        self._terminal = CliHome(folder / ".cursor")

    def claude(
        self,
        name: str,
        title: str,
        at: datetime,
        *,
        version: str,
        model: str,
        repository: Repository | None = None,
        transcript: Transcript | None = None,
    ) -> ClaudeScene:
        """A session in Claude Code; its name begins with its project's."""
        return self._begin(
            ClaudeScene(
                name,
                title,
                repository or self.project(name),
                at=at,
                version=version,
                model=model,
                transcript=transcript,
            )
        )

    def editor(
        self,
        name: str,
        title: str,
        at: datetime,
        *,
        model: str,
        workspace: Workspace | None = None,
        is_archived: bool = False,
    ) -> EditorScene:
        """A session in Cursor; its name begins with its project's."""
        project = self.project(name)
        inode = 1_835_000 + sorted(self.repositories).index(project.name)
        return self._begin(
            EditorScene(
                self._editor,
                name,
                title,
                project,
                at=at,
                model=model,
                workspace=workspace or cursor.local_folder(project.path, inode=inode),
                is_archived=is_archived,
            )
        )

    def terminal(
        self,
        name: str,
        title: str,
        at: datetime,
        *,
        model: str,
        kept: Kept = "store",
        is_acp: bool = False,
    ) -> TerminalScene:
        """A session in Cursor's command line; its name begins with its project's."""
        return self._begin(
            TerminalScene(
                self._terminal,
                name,
                title,
                self.project(name),
                at=at,
                model=model,
                kept=kept,
                is_acp=is_acp,
            )
        )

    def project(self, name: str) -> Repository:
        return self.repositories[name.partition("/")[0]]

    def write(self) -> None:
        """Write down every session, where its tool keeps it."""
        for scene in self.scenes:
            scene.close()
        typed = list(self.lost)
        for scene in self.scenes:
            if isinstance(scene, ClaudeScene):
                scene.transcript.write(self.claude_root)
                typed += scene.typed
        write_prompts(self.claude_root, sorted(typed, key=lambda prompt: prompt.at))
        write_settings(self.claude_root, cleanup_days=180)
        self._editor.put_secrets()
        self._editor.write()
        self._write_search()
        spoken = [text for scene in self.scenes if isinstance(scene, TerminalScene) for text in scene.prompts]
        self._terminal.write_prompts(spoken[-20:])

    def _write_search(self) -> None:
        """The editor's own search, which holds what was asked."""
        found = [scene for scene in self.scenes if isinstance(scene, EditorScene)]
        told = [(scene.id, scene.title, "\n".join(scene.prompts)) for scene in found]
        last = max(milliseconds(scene.now) for scene in found)
        cursor.write_search(self._editor.root, told, at=last)

    def _begin(self, scene: S) -> S:
        self.scenes.append(scene)
        return scene

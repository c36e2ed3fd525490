"""Claude Code sessions that change the files of a real checkout, with the times of both in step."""

from datetime import datetime
from pathlib import Path

from backscroll.testing.claude_code import Transcript, tool_calls
from tests.builders.git_repository import GitRepository


class CodingSession:
    """A session that edits and commits. Call `save` to write its transcript."""

    def __init__(
        self, checkout: GitRepository, session_id: str, at: datetime, *, branch: str = "main", seed: int = 0
    ) -> None:
        self.checkout = checkout
        self.id = session_id
        self.ref = f"claude-code:{session_id}"
        self.transcript = Transcript(
            session_id, cwd=str(checkout.folder), branch=branch, start=at, seed=seed, version="2.1.105"
        )

    @property
    def now(self) -> datetime:
        """The time of the next message."""
        return self.transcript.now

    def prompt(self, text: str) -> None:
        """Add a prompt."""
        self.transcript.user(text)

    def wait(self, minutes: float) -> None:
        """Advance the clock."""
        self.transcript.wait(60 * minutes)

    def write(self, path: str, text: str, *, checkout: GitRepository | None = None) -> None:
        """Write a file with the tool Write. A path is relative to the checkout."""
        checkout = checkout or self.checkout
        file = checkout.folder / path
        original = file.read_text() if file.exists() else None
        checkout.write(path, text)
        self.transcript.run(tool_calls.write(str(file), text, original=original))

    def edit(self, path: str, old: str, new: str, *, checkout: GitRepository | None = None) -> None:
        """Replace text with the tool Edit."""
        checkout = checkout or self.checkout
        file = checkout.folder / path
        original = file.read_text()
        checkout.write(path, original.replace(old, new, 1))
        self.transcript.run(tool_calls.edit(str(file), old, new, original=original))

    def shell(self, command: str, output: str = "") -> None:
        """Add a shell command. It is not run."""
        self.transcript.run(tool_calls.bash(command, output))

    def commit(self, message: str, *, is_quiet: bool = False, checkout: GitRepository | None = None) -> str:
        """Commit all changes of the checkout, in a shell command of the session. Return the hash."""
        checkout = checkout or self.checkout
        command = f"git add -A && git commit {'-q ' if is_quiet else ''}-m {_quote(message)}"
        self.transcript.assistant(tools=[tool_calls.bash(command)])
        self.transcript.wait(1)
        sha = checkout.commit(message, self.now)
        branch = checkout.run("branch", "--show-current").strip()
        subject = message.partition("\n")[0]
        output = "" if is_quiet else f"[{branch} {sha[:7]}] {subject}\n 1 file changed, 1 insertion(+)"
        result = tool_calls.bash(command, output)
        self.transcript.result(
            self.transcript.tool_ids[-1], result.content, tool_use_result=result.tool_use_result
        )
        return sha

    def save(self, root: Path) -> None:
        """Write the transcript below a Claude Code folder."""
        self.transcript.write(root)


def _quote(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'

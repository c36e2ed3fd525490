"""What sessions belong to, and what belongs to them: workspaces and subagents."""

from typing import TYPE_CHECKING

from backscroll.errors import SessionNotFoundError, WorkspaceNotFoundError
from backscroll.history.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backscroll.model.session import AgentSession
    from backscroll.model.workspace import WorkspaceSummary

__all__ = ["Belonging"]


_NAMED = 5  # workspaces that are named when another was meant


def _most_like(called: str, every: "Iterable[WorkspaceSummary]") -> list[str]:
    """The paths of workspaces that somebody may have meant: around or below a path, or of a similar name."""
    from difflib import get_close_matches

    path = called.casefold().rstrip("/")
    name = path.rpartition("/")[2]
    paths = {one.path: one.path.casefold().rstrip("/") for one in every}
    names = {one: known.rpartition("/")[2] for one, known in paths.items()}
    around = [one for one, known in paths.items() if path.startswith(f"{known}/")]
    below = [one for one, known in paths.items() if path and known.startswith(f"{path}/")]
    similar = [one for one in paths if name and name in names[one]]
    close = get_close_matches(name, names.values())
    similar += [one for one in paths if names[one] in close]
    return list(dict.fromkeys([*sorted(around, key=len, reverse=True), *similar, *below]))


class Belonging(Sessions):
    """What sessions belong to, and what belongs to them: workspaces and subagents."""

    def list_workspaces(self) -> "list[WorkspaceSummary]":
        """Every workspace that a session belongs to, the one used last first."""
        return self._archive.sessions.workspaces()

    def find_workspace(self, called: str) -> list[str]:
        """The hashes of the workspaces that somebody means by a path, a name, the end of a path or a host.

        Raises `WorkspaceNotFoundError` when it may be several, or none; then it names those most like it.
        """
        if found := self._archive.sessions.workspace_hashes(called):
            return found
        from backscroll.model.sanitize import one_line

        alike = _most_like(called, self._archive.sessions.workspaces())
        told = "".join(f"\n  {one_line(one, 300)}" for one in alike[:_NAMED])
        rest = f"; most like it:{told}" if told else ""
        raise WorkspaceNotFoundError(f"no session was held in a workspace called {called!r}{rest}", called)

    def get_agent_session(self, ref: str) -> "AgentSession":
        """A subagent with every message of it. Raises `SessionNotFoundError` when it is no subagent."""
        from backscroll.model.session import AgentSession

        summary = self.find(ref)
        if summary.parent_ref is None:
            started = ", ".join(summary.agent_ids)
            rest = f"its subagents are {started}" if started else "it started none"
            raise SessionNotFoundError(f"{summary.ref} is a session, not a subagent; {rest}", ref)
        messages = tuple(self._archive.messages.of_session(summary))
        times = [message.timestamp for message in messages if message.timestamp is not None]
        prompts = (message.content for message in messages if message.role == "user")
        took = round((max(times) - min(times)).total_seconds() * 1000) if times else None
        return AgentSession(
            agent_id=summary.id,
            parent_session_id=summary.parent_ref.partition(":")[2],
            prompt=next(prompts, None),
            model=summary.models[0] if summary.models else None,
            messages=messages,
            total_duration_ms=took,
            total_tokens=summary.total_tokens,
            total_tool_use_count=sum(message.tool is not None for message in messages),
        )

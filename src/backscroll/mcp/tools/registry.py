"""The tools: name, what a model reads of them, what they take and give, and who answers."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from backscroll.mcp.call import Call
from backscroll.mcp.tools import arguments, results, search, sessions
from backscroll.mcp.tools.results import Answer

__all__ = ["TOOLS", "Tool"]


class Tool(Struct, frozen=True):
    """A tool that only reads."""

    name: str
    title: str
    description: str
    takes: type
    gives: type
    answer: Callable[[Call, Any], Answer]


_EVERY = (
    Tool(
        "recall",
        "Recall earlier work on a task",
        "Find what earlier sessions with coding assistants have to say about a task or a question: of each"
        " session that bears on it what was asked, what was said and what came of it, best first, within a"
        " budget of tokens. Call this first when starting on something that may have been worked on, decided"
        " or debugged before. Write the task in plain words. Read on with get_session, using a session's ref"
        " and the message's number.",
        arguments.Recall,
        results.RecallAnswer,
        search.recall,
    ),
    Tool(
        "search_sessions",
        "Search sessions",
        "Find the earlier sessions where all these words were said together: names, error messages, file"
        " names, phrases. Gives the best message of each session with its ref and position, best first. Use"
        " pattern=exact for punctuation and pattern=regex for expressions; use recall for a task in plain"
        " words.",
        arguments.SearchSessions,
        results.SearchAnswer,
        search.search_sessions,
    ),
    Tool(
        "list_sessions",
        "List sessions",
        "List earlier sessions with coding assistants, newest first, all of them or those of a workspace, a"
        " tool or a time. Gives refs to pass to get_session.",
        arguments.ListSessions,
        results.SessionsAnswer,
        sessions.list_sessions,
    ),
    Tool(
        "get_session",
        "Read a session",
        "Read an earlier session message by message, a page at a time. Long texts and tool output are cut;"
        " to have the rest of one message ask for it alone: from=its position, count=1, and max_chars or"
        " from_char. roles=[user, assistant] gives the talk without the tool calls. next_from is where the"
        " next page begins.",
        arguments.GetSession,
        results.SessionAnswer,
        sessions.get_session,
    ),
    Tool(
        "get_agent_session",
        "Read a subagent's session",
        "Read what a subagent was asked and did, by one of the agent_ids that get_session names.",
        arguments.GetAgentSession,
        results.AgentAnswer,
        sessions.get_agent_session,
    ),
    Tool(
        "export_session",
        "Export a session",
        "Give a whole session as Markdown, text, JSON, JSON lines or HTML, in pieces: pass next_from_char as"
        " from_char to go on. To answer a question, recall and get_session cost far less.",
        arguments.ExportSession,
        results.ExportAnswer,
        sessions.export_session,
    ),
    Tool(
        "list_workspaces",
        "List workspaces",
        "List the folders that sessions were held in, the one used last first, with how many sessions each"
        " has. Their names and paths are what other tools take as workspace.",
        arguments.ListWorkspaces,
        results.WorkspacesAnswer,
        sessions.list_workspaces,
    ),
    Tool(
        "stats",
        "Add up sessions",
        "Add up sessions, messages, tokens, cost, lines changed and tool calls, of everything or of a"
        " workspace, a tool or a time; with by, a row for each day, week, month, source, workspace, model or"
        " tool. What nobody counted is missing, never 0.",
        arguments.Stats,
        results.StatsAnswer,
        search.stats,
    ),
)

TOOLS = {tool.name: tool for tool in _EVERY}

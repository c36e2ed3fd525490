"""The MCP tools. To add one, add its argument and result types and an entry here."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from backscroll.mcp.call import Call
from backscroll.mcp.tools import arguments, results, search, sessions
from backscroll.mcp.tools.results import ToolAnswer

__all__ = ["TOOLS", "Tool"]


class Tool(Struct, frozen=True):
    """A read-only tool."""

    name: str
    title: str
    description: str
    arguments: type
    result: type
    run: Callable[[Call, Any], ToolAnswer]


_TOOLS = (
    Tool(
        "recall",
        "Recall earlier work on a task",
        "Find earlier sessions with coding assistants that are relevant to a task or question. Returns the"
        " question, the answer and the outcome of each, best first, within a token budget. Call this first"
        " when you start something that may have been worked on, decided or debugged before. Describe the"
        " task in plain words. Read more with get_session, using the session's ref and the message position.",
        arguments.Recall,
        results.RecallAnswer,
        search.recall,
    ),
    Tool(
        "search_sessions",
        "Search sessions",
        "Search earlier sessions for words in one message: names, error messages, file names, phrases."
        " Returns the best message of each session with its ref and position, best first. Use pattern=exact"
        " for punctuation and pattern=regex for regular expressions. Use recall for a task in plain words.",
        arguments.SearchSessions,
        results.SearchAnswer,
        search.search_sessions,
    ),
    Tool(
        "list_sessions",
        "List sessions",
        "List earlier sessions with coding assistants, newest first, optionally by workspace, tool or time"
        " range. Returns refs for get_session.",
        arguments.ListSessions,
        results.SessionsAnswer,
        sessions.list_sessions,
    ),
    Tool(
        "get_session",
        "Read a session",
        "Read the messages of an earlier session, one page at a time. Long text and tool output is cut. To"
        " read all of one message, pass from=its position, count=1 and max_chars or from_char."
        " roles=[user, assistant] omits tool calls. next_from is the start of the next page.",
        arguments.GetSession,
        results.SessionAnswer,
        sessions.get_session,
    ),
    Tool(
        "get_agent_session",
        "Read a subagent's session",
        "Read the prompt and messages of a subagent, by one of the agent_ids that get_session returns.",
        arguments.GetAgentSession,
        results.AgentAnswer,
        sessions.get_agent_session,
    ),
    Tool(
        "export_session",
        "Export a session",
        "Return a whole session as Markdown, text, JSON, JSON lines or HTML, in parts. Pass next_from_char"
        " as from_char for the next part. To answer a question, recall and get_session cost far less.",
        arguments.ExportSession,
        results.ExportAnswer,
        sessions.export_session,
    ),
    Tool(
        "list_workspaces",
        "List workspaces",
        "List the folders of all sessions, most recently used first, with their number of sessions. Other"
        " tools accept these names and paths as workspace.",
        arguments.ListWorkspaces,
        results.WorkspacesAnswer,
        sessions.list_workspaces,
    ),
    Tool(
        "stats",
        "Statistics",
        "Count sessions, messages, tokens, cost, changed lines and tool calls, optionally by workspace, tool"
        " or time range. With by, returns one row per day, week, month, source, workspace, model or tool."
        " Unknown values are missing, never 0.",
        arguments.Stats,
        results.StatsAnswer,
        search.stats,
    ),
)

TOOLS = {tool.name: tool for tool in _TOOLS}

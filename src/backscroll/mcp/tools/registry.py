"""The MCP tools. To add one, add its argument and result types and an entry here."""

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from backscroll.documents import MatchPage, RecallDocument, SessionPage
from backscroll.mcp.call import Call
from backscroll.mcp.tools import arguments, backups, commits, journal, migrations, results, search, sessions
from backscroll.mcp.tools.results import ToolAnswer
from backscroll.model.export import format_titles

Effect = Literal["reads", "adds", "changes"]


class Tool(Struct, frozen=True, kw_only=True):
    """A tool. One that writes answers with a plan first, or only adds what it was given."""

    name: str
    title: str
    description: str
    search_hint: str  # words by which a client that hides tools finds this one
    is_always_loaded: bool = False  # clients that hide tools do not hide this one
    arguments: type[Struct]
    result: type[Struct]  # the document, without the fields of every document
    run: Callable[[Call, Any], ToolAnswer]
    effect: Effect = "reads"  # on files
    is_idempotent: bool = True  # a second call with the same arguments changes nothing more


_TOOLS = (
    Tool(
        name="recall",
        title="Recall earlier work on a task",
        description="Find earlier sessions with coding assistants that are relevant to a task or question."
        " Call this first when you start something that may have been worked on, decided or debugged before."
        " Returns sessions, best first: what the user asked, the relevant message with its [position], and"
        " the outcome. Read more with get_session, using the ref (claude-code:…) and the position.",
        search_hint="backscroll memory: past conversations, earlier work, previous session history, what did"
        " we decide, have we done this before",
        is_always_loaded=True,
        arguments=arguments.Recall,
        result=RecallDocument,
        run=search.recall,
    ),
    Tool(
        name="search_sessions",
        title="Search sessions",
        description="Search earlier sessions for words that occur in one message: names, error messages, file"
        " names, phrases. Returns the best message of each session with ref and [position], best first. Use"
        " pattern=exact for punctuation and pattern=regex for regular expressions. For a task or question in"
        " plain words, use recall.",
        search_hint="backscroll search in past conversations, earlier work and session history: what did we"
        " decide, have we done this before, error message, file name",
        arguments=arguments.SearchSessions,
        result=MatchPage,
        run=search.search_sessions,
    ),
    Tool(
        name="list_sessions",
        title="List sessions",
        description="List earlier sessions with coding assistants, newest first: ref, title, workspace, date,"
        " number of messages. Can be limited to a workspace, a tool or a time range.",
        search_hint="recent sessions of this project, yesterday, last week",
        arguments=arguments.ListSessions,
        result=SessionPage,
        run=sessions.list_sessions,
    ),
    Tool(
        name="get_session",
        title="Read a session",
        description="Read messages of an earlier session, one page at a time, starting at a position. Long"
        " messages and tool output are cut; the result says how to read the rest. roles=[user, assistant]"
        " omits tool calls.",
        search_hint="read the transcript of a session, old messages",
        arguments=arguments.GetSession,
        result=results.SessionAnswer,
        run=sessions.get_session,
    ),
    Tool(
        name="get_agent_session",
        title="Read a subagent's session",
        description="Read the prompt and the messages of a subagent. get_session lists the refs of a"
        " session's subagents.",
        search_hint="read the transcript of a subagent",
        arguments=arguments.GetAgentSession,
        result=results.AgentAnswer,
        run=sessions.get_agent_session,
    ),
    Tool(
        name="export_session",
        title="Export a session",
        description=f"Return a complete session as {format_titles()}, in parts. The"
        " result says how to get the next part. To answer a question, recall and get_session need far fewer"
        " tokens.",
        search_hint="session as Markdown, HTML or JSON",
        arguments=arguments.ExportSession,
        result=results.ExportAnswer,
        run=sessions.export_session,
    ),
    Tool(
        name="list_workspaces",
        title="List workspaces",
        description="List the folders that sessions belong to, most recently used first: name, path, number"
        " of sessions, last use. Other tools accept the names and paths as workspace.",
        search_hint="projects and folders that have sessions",
        arguments=arguments.ListWorkspaces,
        result=results.WorkspacesAnswer,
        run=sessions.list_workspaces,
    ),
    Tool(
        name="stats",
        title="Statistics",
        description="Count sessions, prompts, messages, tokens, cost, changed lines and tool calls, in total"
        " or per day, week, month, source, workspace, model or tool. Unknown values are missing, never 0.",
        search_hint="token usage, cost and activity",
        arguments=arguments.Stats,
        result=results.StatsAnswer,
        run=search.stats,
    ),
    Tool(
        name="sessions_for_code",
        title="Find the sessions behind code",
        description="Find out why lines of a file are as they are: for each range of lines the commit, the"
        " session that wrote it, and the user's words that asked for it. Use before you change code that you"
        " do not understand.",
        search_hint="backscroll blame: why was this line written, who asked for this code, which session",
        arguments=arguments.SessionsForCode,
        result=results.CodeAnswer,
        run=commits.sessions_for_code,
    ),
    Tool(
        name="sessions_for_commit",
        title="Find the sessions behind a commit",
        description="Find the sessions that led to a commit, best first, with the evidence and the user's"
        " prompts.",
        search_hint="backscroll git commit: why was this changed, conversation behind a commit",
        arguments=arguments.SessionsForCommit,
        result=results.CommitAnswer,
        run=commits.sessions_for_commit,
    ),
    Tool(
        name="journal_context",
        title="Material for a journal entry",
        description="Return what is needed to write the journal entry of a commit: its message and files, the"
        " conversations that led to it, errors, tests, decisions, and the user's own notes.",
        search_hint="backscroll journal of commits, why was this commit made, commit story",
        arguments=arguments.JournalContext,
        result=results.JournalContextAnswer,
        run=journal.journal_context,
    ),
)

_WRITE_TOOLS = (
    Tool(
        name="create_backup",
        title="Create a backup",
        description="Back up the histories of the coding assistants and the archive into one file. Returns a"
        " plan first; writes the file when called again with plan_id.",
        search_hint="backscroll back up sessions and history",
        arguments=arguments.CreateBackup,
        result=results.PlanAnswer,
        run=backups.create_backup,
        effect="adds",
        is_idempotent=False,
    ),
    Tool(
        name="validate_backup",
        title="Check a backup",
        description="Read a whole backup and compare every file with its manifest. Returns valid, warnings or"
        " invalid, and the damaged files.",
        search_hint="backscroll verify a backup file",
        arguments=arguments.ValidateBackup,
        result=results.ValidationAnswer,
        run=backups.validate_backup,
    ),
    Tool(
        name="restore_backup",
        title="Restore a backup",
        description="Add what is missing from a backup: files, sessions, tags. What differs is kept unless"
        " force. Returns a plan first; changes files when called again with plan_id. Can be undone.",
        search_hint="backscroll restore lost sessions from a backup",
        arguments=arguments.RestoreBackup,
        result=results.PlanAnswer,
        run=backups.restore_backup,
        effect="changes",
    ),
    Tool(
        name="restore_session",
        title="Restore deleted sessions",
        description="Write sessions that their tool has deleted back to its store, so that it resumes them:"
        " those of refs, else all that match. Returns a plan first; changes files when called again with"
        " plan_id. Can be undone.",
        search_hint="backscroll bring back a deleted or lost session",
        arguments=arguments.RestoreSession,
        result=results.PlanAnswer,
        run=migrations.restore_session,
        effect="changes",
    ),
    Tool(
        name="migrate_session",
        title="Move or copy sessions",
        description="Move or copy sessions to another folder, so that their tool lists and resumes them"
        " there. Returns a plan first; changes files when called again with plan_id. Can be undone.",
        search_hint="backscroll move or copy a session to another project folder",
        arguments=arguments.MigrateSession,
        result=results.PlanAnswer,
        run=migrations.migrate_session,
        effect="changes",
        is_idempotent=False,
    ),
    Tool(
        name="migrate_workspace",
        title="Move or copy all sessions of a folder",
        description="Move or copy all sessions of a folder to another one, for example after the project was"
        " moved. Returns a plan first; changes files when called again with plan_id. Can be undone.",
        search_hint="backscroll project folder was moved or renamed",
        arguments=arguments.MigrateWorkspace,
        result=results.PlanAnswer,
        run=migrations.migrate_workspace,
        effect="changes",
        is_idempotent=False,
    ),
    Tool(
        name="journal_write_entry",
        title="Write a journal entry",
        description="Write the journal entry of a commit. Call journal_context first. Everything in quotation"
        " marks or block quotes must be verbatim from the conversations. Otherwise nothing is written, and"
        " the result names the quotes. An entry that the user edited is kept.",
        search_hint="backscroll write the journal entry of a commit",
        arguments=arguments.JournalWriteEntry,
        result=results.JournalWriteAnswer,
        run=journal.journal_write_entry,
        effect="adds",
    ),
    Tool(
        name="journal_add_reflection",
        title="Add a reflection to the journal",
        description="Append a thought of the user to the journal of today, in the user's words.",
        search_hint="backscroll journal reflection, note to self",
        arguments=arguments.JournalNote,
        result=results.JournalWriteAnswer,
        run=journal.journal_add_reflection,
        effect="adds",
        is_idempotent=False,
    ),
    Tool(
        name="journal_capture_context",
        title="Capture context in the journal",
        description="Append context to the journal of today: what a later reader of the code should know.",
        search_hint="backscroll journal, remember context for later",
        arguments=arguments.JournalNote,
        result=results.JournalWriteAnswer,
        run=journal.journal_capture_context,
        effect="adds",
        is_idempotent=False,
    ),
)

TOOLS = {tool.name: tool for tool in _TOOLS}
WRITE_TOOLS = {tool.name: tool for tool in _WRITE_TOOLS}  # offered with --allow-writes only


def available_tools(*, allow_writes: bool) -> dict[str, Tool]:
    """Return the tools of a server, by name."""
    return TOOLS | WRITE_TOOLS if allow_writes else TOOLS

"""Session values for tests, with any text in any field."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from backscroll.model.message import Attachment, Edit, Hunk, Message, Origin, ToolCall
from backscroll.model.session import SessionSummary
from backscroll.render.turns import MessageItem, SubagentEnd, SubagentStart, TranscriptItem

AT = datetime(2026, 10, 3, 7, 0, tzinfo=UTC)
SUMMARY = SessionSummary(
    ref="claude-code:5e551011",
    id="5e551011-0000-4000-8000-0000000000aa",
    index=1,
    source="claude-code",
    platform="claude_code",
    title="Why is the timetable off by one hour?",
    workspace_path="/home/zoe/ferry",
    workspace_name="ferry",
    message_count=3,
    created_at=AT,
    updated_at=AT,
    first_message_preview=None,
    git_branch="main",
    models=("claude-opus-4-8",),
    version="2.1.290",
    agent_ids=(),
    parent_ref=None,
    interaction_count=1,
    acceptance_rate=None,
    total_tokens=1234,
    total_changes=2,
    completeness="complete",
    is_gone=False,
)


def message(role: Any, content: str = "", **fields: Any) -> Message:
    return Message(id="m", role=role, content=content, origin=Origin("/x", "line 1"), timestamp=AT, **fields)


def session(text: str) -> tuple[SessionSummary, list[TranscriptItem]]:
    """Return a session with this text in every field that comes from a tool's file."""
    summary = replace(
        SUMMARY, title=text, workspace_path=text, workspace_name=text, git_branch=text, models=(text,)
    )
    edit = Edit(text, (Hunk((text,), (text, text)),))
    call = ToolCall(id="c", name=text, params={text: text, "command": text}, result=text, status="completed")
    attachment = Attachment("image", text)
    messages = [
        message("user", text, attachments=(attachment,)),
        message("thinking", text),
        message("assistant", text),
        message("tool", text, tool=call),
        message("tool", "", tool=replace(call, edits=(edit,), params={}), attachments=(attachment,)),
        message("error", text),
        message("system", text, kind=text, is_active=False),
    ]
    nested = replace(summary, parent_ref=summary.ref)
    return summary, [
        *(MessageItem(position, 1, entry) for position, entry in enumerate(messages)),
        SubagentStart(nested, True),
        *(MessageItem(position, 1, entry) for position, entry in enumerate(messages[:3])),
        SubagentEnd(nested),
        MessageItem(7, 1, message("assistant", "The end of it.")),
    ]


def items(*messages: Message) -> list[TranscriptItem]:
    return [MessageItem(position, 1, message) for position, message in enumerate(messages)]


_PIECES = [
    "<script>alert(1)</script>", "</script>", "</pre>", "</details>", "<details>", "<!--", "-->",
    "<![CDATA[", "<?", "<img src=x onerror=alert(1)>", "```", "````", "~~~", "`", "``", "\n", "\n\n",
    "    ", "> ", "- ", "1. ", "# ", "=====", "---", "| a | b |\n|---|---|\n| <b> | c |",
    "[x](javascript:alert(1))", "[x]: javascript:a", "![x](http://x/y.png)",
    "![x](data:image/png;base64,AA)", "<http://x>", "[x][y]", "[y]: http://z \"<b>\"", "&lt;script&gt;",
    "&#60;b&#62;", "\\<b>", "\\`", "\x1b[31m", "\x1b]0;x\x07", "\u202e", "\u200b", "\u2028", "\x00", "\r\n",
    "\r", "\x85", "$x$", "@zoe", "é", "日本", "word", " ", "[", "](", ")", "*", "_", "<", ">", "&", "\"", "'",
]  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=8)), max_size=12).map("".join)

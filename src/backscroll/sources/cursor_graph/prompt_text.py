"""Separate the text that the user typed from the context that the tool adds for the model."""

import re
from datetime import datetime

from msgspec import Struct

from backscroll.model import Attachment
from backscroll.readers import timestamps

__all__ = ["Prompt", "is_injected", "parse_prompt", "workspace_folders"]

_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_GREEDY_QUERY = re.compile(r"<user_query>(.*)</user_query>", re.DOTALL)
_UNCLOSED_QUERY = re.compile(r"<user_query>\s*(.*)", re.DOTALL)
_TIMESTAMP = re.compile(r"<timestamp>(.*?)</timestamp>", re.DOTALL)
_IMAGES = re.compile(r"<image_files>(.*?)</image_files>", re.DOTALL)
_IMAGE_PATH = re.compile(r"^\s*(?:\d+\.|[-*])?\s*(\S.*?\.\w{2,5})\s*$", re.MULTILINE)
_WORKSPACE_PATH = re.compile(r"^\s*Workspace Path:\s*(\S.*?)\s*$", re.MULTILINE)
_IMAGE_PLACEHOLDER = re.compile(r"^\s*\[Image\]\s*$", re.MULTILINE)

# Blocks that the tool adds for the model.
_CONTEXT_TAGS = (
    "additional_data",
    "agent_requestable_workspace_rules",
    "agent_skills",
    "agent_transcripts",
    "always_applied_workspace_rules",
    "attached_files",
    "available_skills",
    "cursor_rules_context",
    "custom_instructions",
    "environment_details",
    "external_links",
    "git_status",
    "image_files",
    "manually_attached_skills",
    "mcp_instructions",
    "mcp_file_system",
    "memories",
    "open_and_recently_viewed_files",
    "project_layout",
    "rules",
    "system_reminder",
    "system-reminder",
    "task_notification",
    "terminal_files_information",
    "timestamp",
    "user_info",
    "user_rules",
    "workspace_rules",
)
_CONTEXT = re.compile(rf"<({'|'.join(_CONTEXT_TAGS)})\b[^>]*>.*?</\1>", re.DOTALL)

# Prompts that the tool writes itself: a subagent or background task has finished, or a fork starts.
_INJECTED = re.compile(
    r"\s*(?:<(?:task|subagent|background)[\w-]*>"
    r"|(?:The |A )?(?:subagent|background (?:task|shell|agent|command))\b.{0,120}?"
    r"\b(?:completed|finished|failed|exited|result)"
    r"|You are (?:now )?(?:a|the) (?:forked )?subagent\b"
    r"|The (?:previous|last) (?:turn|response|request) was interrupted\b)",
    re.IGNORECASE,
)


class Prompt(Struct, frozen=True):
    """The parsed parts of a user message."""

    text: str  # as typed; empty if the user typed nothing
    at: datetime | None  # from the context, with a resolution of one minute
    attachments: tuple[Attachment, ...] = ()
    is_tagged: bool = False  # the typed text is in <user_query> tags

    @property
    def is_context(self) -> bool:
        """Whether the message has only context: no typed text, no attachment."""
        return not self.text and not self.attachments


def parse_prompt(raw: str) -> Prompt:
    """Return the typed text of a user message. Without tags, it is the text outside of context blocks."""
    stamp = _TIMESTAMP.search(raw)
    at = timestamps.from_english(stamp[1]) if stamp else None
    images = [
        Attachment("image", name=re.split(r"[\\/]", path)[-1], path=path)
        for block in _IMAGES.findall(raw)
        for path in _IMAGE_PATH.findall(block)
    ]
    queries = _tagged_queries(raw)
    outside = raw if not queries else _GREEDY_QUERY.sub("", raw)
    text, placeholder_count = _IMAGE_PLACEHOLDER.subn("", _CONTEXT.sub("", outside))
    images += [Attachment("image")] * max(0, placeholder_count - len(images))
    if queries:
        return Prompt("\n\n".join(dict.fromkeys(queries)), at, tuple(images), is_tagged=True)
    return Prompt(text.replace("<user_query>", "").replace("</user_query>", "").strip(), at, tuple(images))


def _tagged_queries(raw: str) -> list[str]:
    """Return the texts in <user_query> tags.

    With one opening tag, the text ends at the last closing tag, because the typed text may quote the tags.
    """
    pattern = _GREEDY_QUERY if raw.count("<user_query>") == 1 else _QUERY
    queries = [query.strip() for query in pattern.findall(raw) if query.strip()]
    if not queries and "</user_query>" not in raw and (unclosed := _UNCLOSED_QUERY.search(raw)):
        queries = [unclosed[1]]
    return queries


def is_injected(text: str) -> bool:
    """Return whether the tool wrote this prompt instead of the user."""
    return _INJECTED.match(text) is not None


def workspace_folders(context: str) -> list[str]:
    """Return the workspace paths in the context."""
    return list(_WORKSPACE_PATH.findall(context))

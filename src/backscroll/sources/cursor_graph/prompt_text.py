"""What a person typed, out of everything the tool wraps around it for the model."""

import re
from datetime import datetime

from msgspec import Struct

from backscroll.model import Attachment
from backscroll.readers import timestamps

__all__ = ["Prompt", "is_injected", "parse_prompt", "workspace_folders"]

_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_WHOLE_QUERY = re.compile(r"<user_query>(.*)</user_query>", re.DOTALL)
_CUT_QUERY = re.compile(r"<user_query>\s*(.*)", re.DOTALL)
_TIMESTAMP = re.compile(r"<timestamp>(.*?)</timestamp>", re.DOTALL)
_IMAGES = re.compile(r"<image_files>(.*?)</image_files>", re.DOTALL)
_IMAGE_PATH = re.compile(r"^\s*(?:\d+\.|[-*])?\s*(\S.*?\.\w{2,5})\s*$", re.MULTILINE)
_FOLDER = re.compile(r"^\s*Workspace Path:\s*(\S.*?)\s*$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"^\s*\[Image\]\s*$", re.MULTILINE)

# Blocks that are written for the model and not by the person.
_CONTEXT_NAMES = (
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
_CONTEXT = re.compile(rf"<({'|'.join(_CONTEXT_NAMES)})\b[^>]*>.*?</\1>", re.DOTALL)

# How the tool itself speaks in the person's place: a subagent or a background task is done, a fork begins.
_INJECTED = re.compile(
    r"\s*(?:<(?:task|subagent|background)[\w-]*>"
    r"|(?:The |A )?(?:subagent|background (?:task|shell|agent|command))\b.{0,120}?"
    r"\b(?:completed|finished|failed|exited|result)"
    r"|You are (?:now )?(?:a|the) (?:forked )?subagent\b"
    r"|The (?:previous|last) (?:turn|response|request) was interrupted\b)",
    re.IGNORECASE,
)


class Prompt(Struct, frozen=True):
    """A user record taken apart."""

    text: str  # as typed; empty when nothing was
    at: datetime | None  # told to the model, to the minute
    attachments: tuple[Attachment, ...] = ()
    is_quoted: bool = False  # the tool itself marked the typed part

    @property
    def is_context(self) -> bool:
        """Whether nobody typed or attached anything."""
        return not self.text and not self.attachments


def parse_prompt(raw: str) -> Prompt:
    """Take the typed part out of a user record; without a mark, whatever no known block encloses."""
    told = _TIMESTAMP.search(raw)
    at = timestamps.from_english(told[1]) if told else None
    images = [
        Attachment("image", name=re.split(r"[\\/]", path)[-1], path=path)
        for block in _IMAGES.findall(raw)
        for path in _IMAGE_PATH.findall(block)
    ]
    queries = _queries(raw)
    around = raw if not queries else _WHOLE_QUERY.sub("", raw)
    rest, drawn = _PLACEHOLDER.subn("", _CONTEXT.sub("", around))
    images += [Attachment("image")] * max(0, drawn - len(images))
    if queries:
        return Prompt("\n\n".join(dict.fromkeys(queries)), at, tuple(images), is_quoted=True)
    return Prompt(rest.replace("<user_query>", "").replace("</user_query>", "").strip(), at, tuple(images))


def _queries(raw: str) -> list[str]:
    """What stands between the marks; if only one opens, up to the last that closes, for people quote."""
    pattern = _WHOLE_QUERY if raw.count("<user_query>") == 1 else _QUERY
    queries = [query.strip() for query in pattern.findall(raw) if query.strip()]
    if not queries and "</user_query>" not in raw and (cut := _CUT_QUERY.search(raw)):
        queries = [cut[1]]
    return queries


def is_injected(text: str) -> bool:
    """Whether the tool wrote this in the person's place."""
    return _INJECTED.match(text) is not None


def workspace_folders(context: str) -> list[str]:
    """The workspace paths that the context names."""
    return list(_FOLDER.findall(context))

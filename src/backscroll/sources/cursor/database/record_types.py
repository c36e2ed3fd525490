"""The records of Cursor's databases, as far as anything here needs them.

Every field takes any JSON value: which types a version really wrote is decided
where the value is used. What is large and seldom needed stays undecoded
(`Raw`); what is not declared (file snapshots, encryption keys) is never decoded
at all.
"""

from typing import Any

from msgspec import Raw, Struct, field

__all__ = [
    "NEWEST_BUBBLE_VERSION",
    "NEWEST_COMPOSER_VERSION",
    "Bubble",
    "BubbleHeader",
    "CodeBlock",
    "Composer",
    "ComposerHeader",
    "InlineConversation",
    "Tab",
]

NEWEST_COMPOSER_VERSION = 18  # the newest record versions whose meaning is known
NEWEST_BUBBLE_VERSION = 3


class ComposerHeader(Struct, rename="camel", gc=False):
    """An entry of a session list: of the header table, of the older JSON list, or of a workspace's own."""

    composer_id: Any = None
    name: Any = None
    subtitle: Any = None
    created_at: Any = None
    last_updated_at: Any = None
    unified_mode: Any = None
    total_lines_added: Any = None
    total_lines_removed: Any = None
    files_changed_count: Any = None
    is_archived: Any = None
    is_draft: Any = None
    is_best_of_n_subcomposer: Any = None
    tracked_git_repos: Any = None
    created_on_branch: Any = None
    committed_to_branch: Any = None
    workspace_identifier: Any = None
    subagent_info: Any = None
    parent_composer_id: Any = None
    root_composer_id: Any = None
    created_from_background_agent: Any = None
    agent_location: Any = None
    draft_target: Any = None
    source: Any = None


class InlineConversation(Struct, rename="camel", gc=False):
    """Whether a list entry carries its conversation with it, as the earliest builds wrote it."""

    composer_id: Any = None
    conversation: Raw = Raw()


class Composer(Struct, rename="camel", gc=False):
    """``composerData:<composerId>``: one session without the bodies of its messages."""

    v: Any = field(default=None, name="_v")
    composer_id: Any = None
    name: Any = None
    subtitle: Any = None
    text: Any = None
    created_at: Any = None
    last_updated_at: Any = None
    status: Any = None
    conversation: Raw = Raw()
    full_conversation_headers_only: Raw = Raw()
    conversation_map: Raw = Raw()
    conversation_state: Any = None
    latest_conversation_summary: Any = None
    unified_mode: Any = None
    model_config: Any = None
    context_tokens_used: Any = None
    context_token_limit: Any = None
    usage_data: Any = None
    token_count: Any = None
    total_lines_added: Any = None
    total_lines_removed: Any = None
    files_changed_count: Any = None
    capabilities: Raw = Raw()
    code_block_data: Raw = Raw()
    todos: Any = None
    sub_composer_ids: Any = None
    subagent_composer_ids: Any = None
    subagent_info: Any = None
    parent_composer_id: Any = None
    is_best_of_n_subcomposer: Any = None
    best_of_n_judge_winner: Any = None
    git_worktree: Any = None
    created_on_branch: Any = None
    workspace_identifier: Any = None
    tracked_git_repos: Any = None
    agent_location: Any = None
    is_archived: Any = None
    is_draft: Any = None
    agent_backend: Any = None


class BubbleHeader(Struct, rename="camel", gc=False):
    """An entry of the ordered list of a session's bubbles."""

    bubble_id: Any = None
    type: Any = None
    created_at: Any = None
    started_at_ms: Any = None
    grouping: Raw = Raw()


class Bubble(Struct, rename="camel", gc=False):
    """``bubbleId:<composerId>:<bubbleId>``: text, thinking or a tool call, or several of them."""

    v: Any = field(default=None, name="_v")
    bubble_id: Any = None
    type: Any = None
    text: Any = None
    raw_text: Any = None
    content: Any = None
    message: Any = None
    rich_text: Any = None
    created_at: Any = None
    timestamp: Any = None
    timing_info: Any = None
    capability_type: Any = None
    thinking: Any = None
    all_thinking_blocks: Any = None
    tool_former_data: Any = None
    error_details: Any = None
    code_blocks: Raw = Raw()
    token_count: Any = None
    usage: Any = None
    model_info: Any = None
    model_type: Any = None
    is_simulated_msg: Any = None
    images: Raw = Raw()
    context: Raw = Raw()
    workspace_uris: Any = None


class CodeBlock(Struct, rename="camel", gc=False):
    """Code that an answer proposed for a file, and what became of it."""

    uri: Any = None
    version: Any = None
    status: Any = None
    bubble_id: Any = None
    code_block_idx: Any = None
    diff_id: Any = None
    language_id: Any = None
    content: Raw = Raw()


class Tab(Struct, rename="camel", gc=False):
    """A conversation of the chat panel that came before composers, in both of its spellings."""

    tab_id: Any = None
    id: Any = None
    chat_title: Any = None
    title: Any = None
    last_send_time: Any = None
    timestamp: Any = None
    created_at: Any = None
    bubbles: Raw = Raw()
    messages: Raw = Raw()

"""Records of Cursor's databases, with the fields that are used.

``session/bubble.py`` uses the fields of a message, ``session/session_facts.py`` those of a session.

Every field accepts any JSON value, because types differ between versions; the code that uses a value checks
its type. Large, rarely used fields stay undecoded (`Raw`). Undeclared fields, such as file snapshots and
encryption keys, are never decoded.
"""

from typing import Any

from msgspec import Raw, Struct, field

NEWEST_COMPOSER_VERSION = 18  # newest known record versions
NEWEST_BUBBLE_VERSION = 3


class ComposerHeader(Struct, rename="camel", gc=False):
    """Entry of a session list: the header table, the older JSON list or the list of a workspace."""

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
    """List entry that contains its conversation, as the earliest builds stored it."""

    composer_id: Any = None
    conversation: Raw = Raw()


class Composer(Struct, rename="camel", gc=False):
    """``composerData:<composerId>``: a session without the content of its messages."""

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
    copied_from: Any = None  # written by Backscroll: id and time of a copy
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
    """Entry of the ordered list of a session's bubbles."""

    bubble_id: Any = None
    type: Any = None
    created_at: Any = None
    started_at_ms: Any = None
    grouping: Raw = Raw()


class Bubble(Struct, rename="camel", gc=False):
    """``bubbleId:<composerId>:<bubbleId>``: text, thinking, a tool call, or several of these."""

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
    """Code that an answer proposed for a file, with its status."""

    uri: Any = None
    version: Any = None
    status: Any = None
    bubble_id: Any = None
    diff_id: Any = None
    language_id: Any = None
    content: Raw = Raw()


class Tab(Struct, rename="camel", gc=False):
    """Conversation of the chat panel, the predecessor of composers. Two formats share this type."""

    tab_id: Any = None
    id: Any = None
    chat_title: Any = None
    title: Any = None
    last_send_time: Any = None
    timestamp: Any = None
    created_at: Any = None
    bubbles: Raw = Raw()
    messages: Raw = Raw()
    copied_from: Any = None  # written by Backscroll: id of the original, and how many messages it had

"""Cursor's conversation graph: a root record, and blobs that it refers to by their SHA-256.

The CLI and the IDE store the same graph in different files.

conversation      Conversation: the messages of a conversation
state             ConversationState: the fields of the root
blobs             BlobLoader: load blobs in batches
reachable         find all blobs that a root refers to
compactions       restore messages that compactions removed
message_parts     split a stored message into prompts, texts, thinking and tool calls
prompt_text       separate typed text from context
tool_calls        arguments and results of tool calls
calls_without_id  join tool calls and results without ids
pending_calls     CallTracker: join tool calls and results by id
edits             file edits of a tool call
turns             turns and their steps
steps             build messages from steps
prescan           outline each message before it is parsed
timeline          match turns with messages, and assign times
record_lookup     find the stored record of a message
"""

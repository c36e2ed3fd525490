"""Parse one session: its messages, its workspace and its title.

composer       read a session from all its records, also if it has lost its messages
chat_tabs      read a conversation of the chat panel or of a workspace's list
prompt_log     prompts of a workspace that has no session
messages       order the bubbles, and build their messages
bubble         parse one bubble: its messages, its time and its attachments
tool_calls     calls of a bubble: arguments, decisions and edits
tool_results   results of tool calls as text
agent_record   the agent's own record of the conversation
session_facts  title, times, visibility, metadata and closing
workspace      the folder of a session
"""

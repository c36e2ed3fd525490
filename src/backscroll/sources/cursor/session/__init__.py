"""Parse one session: its messages, its workspace and its title.

composer       read a session from its rows, or from the list of a workspace
chat_tabs      read a conversation of the chat panel
prompt_log     prompts of a workspace that has no session
messages       order the bubbles, and build their messages
bubble         parse one bubble: its messages, its time and its attachments
tool_calls     calls of a bubble: arguments, results as text, decisions and edits
agent_record   the agent's own record of the conversation
session_facts  title, times, visibility, metadata and closing
workspace      the folder of a session
"""

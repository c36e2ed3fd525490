"""Parse one session: its messages, its workspace and its title.

composer         read a session from all its records
chat_tabs        read a conversation of the chat panel or of a workspace's list
order            order of the bubbles
messages         build the messages from the bubbles
bubble           parse one bubble
attachments      attachments of a bubble
tool_calls       tool calls, with tool_results, edits, decisions and code_proposals
timestamps       time of a bubble
agent_record     the agent's own record of the conversation
recovery         content of a session that has lost its messages
session_facts    title, times, visibility and metadata
closing          the closing of a session's stream
unit_report      counts and problems while a unit is read
"""

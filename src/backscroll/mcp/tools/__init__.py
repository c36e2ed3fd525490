"""The MCP tools.

registry       name, description, argument and result type of every tool
arguments      argument types with their limits
results        result types
schemas        JSON schemas of arguments and results
validation     errors for invalid arguments
message_pages  pages of messages
search         search_sessions, recall, stats
plans          plans that a tool returns before it changes files
commits        sessions_for_commit, sessions_for_code
backups        create_backup, validate_backup, restore_backup
migrations     migrate_session, migrate_workspace
journal        journal_context, journal_write_entry, journal_add_reflection, journal_capture_context
sessions       list_sessions, get_session, get_agent_session, export_session, list_workspaces
"""

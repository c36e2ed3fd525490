"""The MCP tools.

registry     name, description, argument and result type of every tool
arguments    argument types with their limits, and errors for invalid arguments
results      result types, and quotation of history
plans        plans that a tool returns before it changes files
sessions     list_sessions, get_session, get_agent_session, export_session, list_workspaces
search       search_sessions, recall, stats
commits      sessions_for_commit, sessions_for_code
journal      journal_context, journal_write_entry, journal_add_reflection, journal_capture_context
backups      create_backup, validate_backup, restore_backup
migrations   restore_session, migrate_session, migrate_workspace
"""

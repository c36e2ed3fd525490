"""The MCP server.

tools/             the tools; registry.py lists them
prompts            prompts that a user can select
resources          sessions as resources
completions        completion of arguments
quoting            quotation of history in results
errors             error types with their next steps
server             protocol handlers
options            options of a server process
workers, call      worker threads and the context of a call
background_sync    keeps the archive up to date
stdio, http        transports
install            add the server to a client's settings
"""

"""The MCP server.

tools/       the tools; registry.py lists them
server       protocol handlers; standard input and output as transport
http         HTTP transport
call         the context of a call, and the options of a server process
workers      worker threads, and the sync that keeps the archive up to date
prompts      prompts that a user can select, and completion of arguments
resources    sessions as resources
errors       error types with their next steps
install      add the server to a client's settings
"""

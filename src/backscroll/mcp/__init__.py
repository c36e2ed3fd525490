"""The MCP server.

tools/       the tools; registry.py lists them
server       protocol handlers, errors with their next steps; standard input and output as transport
http         HTTP transport
call         what a call gets, the worker threads that run it, and the sync beside them
prompts      prompts that a user can select, and completion of arguments
resources    sessions as resources
install      add the server to a client's settings
"""

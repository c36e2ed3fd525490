"""Output for terminals, and plain lines for pipes.

session_table  sessions as columns that fit the terminal, or as tab-separated values, using:
  session_columns  the columns
transcript     a session with its messages, using:
  prose          message text with light Markdown styling
  tool_calls     tool calls and diffs
  options        width, styling and detail
records        original records of messages
style, width, humanize  ANSI styles; cell widths; short numbers, ages and durations
"""

"""What a source returns for a unit.

items       the items of the stream
closing     facts about a session that are known at its end
tool_calls  merge tool calls with their results
"""

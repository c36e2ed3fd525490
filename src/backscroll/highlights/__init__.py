"""What matters in a session: decisions, open items, failed commands, changed files, tasks.

The handoff and the journal select from it, each with its own weights and words.

sentences  split prose into sentences and classify them
calls      what tool calls record: questions and plans, commands, files, tasks
handoff    select what another assistant needs, within a token budget
"""

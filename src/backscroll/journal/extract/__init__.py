"""Build an entry from its material, without a language model.

exchanges     a conversation as prompts, notes and replies
phrases       phrases that mark decisions, reasons, open items and corrections, in ten languages
conversation  decisions, results, explanations and open items from what was said
choices       questions with options, and plans
failures      commands that failed and how it ended; tests that passed
points        points of an entry, selected by weight
entry         the sections of an entry
"""

"""The journal: a written record of each commit and the conversations behind it.

journal    `Journal`: write entries of commits, notes, summaries of periods
material   the conversation behind a commit: turns, with secrets redacted, and exchanges
entry      build an entry without a language model: choose quotes, print it as Markdown
story      prose: the prompt for a language model, and the check of its answer
files      the files of the journal: places, markers, locks
summaries  periods, and the summary of a period
"""

"""The journal: a written record of each commit and the conversations behind it.

material        the messages of sessions that belong to a commit, with secrets redacted
extract         build an entry from the material, without a language model
story           prose: the prompt for a language model, and the check of its answer
quotes          check that quotes are verbatim
language_model  run a model through the `llm` program
markup          quotes, times and entries as Markdown
files           the files of the journal: days, summaries, locks
writer          write the journal of one repository
"""

"""One module per command, or group of commands. `backscroll.cli.app` lists them and imports what runs.

Modules with several commands:

annotate.py  rename, note, tag, untag, tags, star, unstar
changes.py   changes, undo
commits.py   commits, commit, blame, survival
export.py    export, secrets
help.py      help, completion
migrate.py   migrate, migrate-workspace
resume.py    resume, open, handoff
search.py    search, recall
sync.py      sync, watch, tail
"""
